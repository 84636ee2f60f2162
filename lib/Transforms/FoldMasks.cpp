//===- FoldMasks.cpp - masks by relative position to attributes -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The region `where` is a conjunction of conditions. Those that compare affine
// functions of the query position `i` and the key index `j` are solved for
// `i - j`. If the solution is what `causal` and the windows express, it becomes
// these attributes, for which all kernels skip tiles of keys.
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"
#include "posenc/IR/Remarks.h"
#include "posenc/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCFOLDMASKSPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-fold-masks"

//===----------------------------------------------------------------------===//
// Affine functions of query and key
//===----------------------------------------------------------------------===//

namespace {
/// The numbers from `min` to `max`.
struct Limits {
  int64_t min, max;
};

/// `query * i + key * j + constant`, exactly: no operation wrapped.
struct Affine {
  int64_t query = 0, key = 0, constant = 0;

  bool isConstant() const { return query == 0 && key == 0; }
  /// Whether it is `i - j` or `j - i` plus a constant.
  bool isRelativePosition() const {
    return query == -key && (query == 1 || query == -1);
  }
};
} // namespace

/// Bounds of coefficients and constants, so that sums of products with
/// positions fit in 64 bits.
static constexpr int64_t kMaxFactor = 16;
static constexpr int64_t kMaxConstant = int64_t{1} << 58;

/// Whether the number is between `-max` and `max`. The absolute value of the
/// smallest number would wrap.
static bool isWithin(int64_t number, int64_t max) {
  return -max <= number && number <= max;
}

static std::optional<Affine> limit(Affine sum) {
  if (!isWithin(sum.query, kMaxFactor) || !isWithin(sum.key, kMaxFactor) ||
      !isWithin(sum.constant, kMaxConstant))
    return std::nullopt;
  return sum;
}

static Affine add(const Affine &a, const Affine &b, int64_t factor) {
  return {a.query + factor * b.query, a.key + factor * b.key,
          a.constant + factor * b.constant};
}

/// Returns the values of an affine function if positions are at most
/// `maxPosition`. Relative positions are then in the same range, as queries are
/// aligned to the end of the keys.
static Limits getRange(const Affine &affine, int64_t maxPosition) {
  int64_t query = affine.query, key = affine.key, relative = 0;
  if ((query > 0) != (key > 0))
    relative = std::min(std::abs(query), std::abs(key));
  if (relative > 0) {
    query += query > 0 ? -relative : relative;
    key += key > 0 ? -relative : relative;
  }
  // A query position may be negative; a key index is not.
  int64_t either = (relative + std::abs(query)) * maxPosition;
  return {affine.constant - either + std::min<int64_t>(key, 0) * maxPosition,
          affine.constant + either + std::max<int64_t>(key, 0) * maxPosition};
}

/// Whether the values fit in a signed integer of the type. No sequence has 2^56
/// rows; narrower integers require that positions fit in 32 bits.
static bool fits(const Affine &affine, Type type) {
  unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  if (bits >= 64)
    return true;
  if (bits < 32)
    return affine.isConstant() && llvm::isIntN(bits, affine.constant);
  Limits range = getRange(affine, std::numeric_limits<int32_t>::max());
  return llvm::isIntN(bits, range.min) && llvm::isIntN(bits, range.max);
}

static Limits getWidestRange(const Affine &affine) {
  return getRange(affine, int64_t{1} << 56);
}

namespace {
/// The affine functions among the values of a `where` region.
class AffineValues {
public:
  explicit AffineValues(Region &region) {
    values[region.getArgument(2)] = {/*query=*/1, /*key=*/0, 0};
    values[region.getArgument(3)] = {/*query=*/0, /*key=*/1, 0};
    for (Operation &op : region.front().without_terminator()) {
      if (op.getNumResults() != 1 || !op.getResult(0).getType().isIntOrIndex())
        continue;
      std::optional<Affine> affine = compute(op);
      if (affine && limit(*affine) && fits(*affine, op.getResult(0).getType()))
        values[op.getResult(0)] = *affine;
    }
  }

  /// Returns the value's affine function, or nullopt if it is none.
  std::optional<Affine> get(Value value) const {
    auto it = values.find(value);
    if (it != values.end())
      return it->second;
    APInt constant;
    if (!matchPattern(value, m_ConstantInt(&constant)) ||
        constant.getSignificantBits() > 64)
      return std::nullopt;
    return limit({0, 0, constant.getSExtValue()});
  }

private:
  std::optional<Affine> compute(Operation &op) const;

  DenseMap<Value, Affine> values;
};
} // namespace

std::optional<Affine> AffineValues::compute(Operation &op) const {
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op))
    return get(op.getOperand(0));
  if (isa<arith::IndexCastUIOp, arith::ExtUIOp>(op)) {
    std::optional<Affine> affine = get(op.getOperand(0));
    return affine && getWidestRange(*affine).min >= 0 ? affine : std::nullopt;
  }
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<Affine> left = get(op.getOperand(0)),
                        right = get(op.getOperand(1));
  if (!left || !right)
    return std::nullopt;
  if (!isa<arith::MulIOp>(op))
    return add(*left, *right, isa<arith::AddIOp>(op) ? 1 : -1);
  if (left->isConstant())
    std::swap(left, right);
  if (!right->isConstant() || !isWithin(right->constant, kMaxFactor))
    return std::nullopt;
  return add({}, *left, right->constant);
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

namespace {
/// The keys that a condition leaves visible: `i - left <= j <= i + right`, as
/// far as they are present.
struct Window {
  std::optional<int64_t> left, right;

  void narrow(const Window &other) {
    auto narrowSide = [](std::optional<int64_t> &side,
                         std::optional<int64_t> by) {
      if (by)
        side = side ? std::min(*side, *by) : *by;
    };
    narrowSide(left, other.left);
    narrowSide(right, other.right);
  }
};
} // namespace

/// Narrows the window by `affine <= 0`. Returns failure if no window expresses
/// this condition.
static LogicalResult requireNotPositive(const Affine &affine, Window &window) {
  Limits range = getWidestRange(affine);
  if (range.max <= 0)
    return success();
  if (!affine.isRelativePosition())
    return failure();
  // With `i - j <= -constant` the window extends to the left, and with
  // `j - i <= -constant` to the right.
  int64_t size = -affine.constant;
  if (size < 0)
    return failure();
  Window side;
  (affine.query > 0 ? side.left : side.right) = size;
  window.narrow(side);
  return success();
}

/// Like `requireNotPositive`, for `min <= affine <= max`.
static LogicalResult requireRange(const Affine &affine, Limits range,
                                  Window &window) {
  if (failed(requireNotPositive(add({0, 0, range.min}, affine, -1), window)))
    return failure();
  return requireNotPositive(add(affine, {0, 0, range.max}, -1), window);
}

/// Returns the window that an order of two values expresses, if any: `left <=
/// right`, or `left < right` if `isStrict`.
static std::optional<Window> getWindowOfOrder(const AffineValues &values,
                                              Value left, Value right,
                                              bool isStrict, bool isUnsigned) {
  Window window;
  Affine step{0, 0, isStrict ? 1 : 0};
  std::optional<Affine> upper = values.get(right);
  if (!upper)
    return std::nullopt;
  // |x| <= c is -c <= x <= c; the absolute value of a relative position does
  // not wrap.
  if (auto abs = left.getDefiningOp<math::AbsIOp>()) {
    std::optional<Affine> inner = values.get(abs.getOperand());
    int64_t max = upper->constant - step.constant;
    if (!inner || !upper->isConstant() || max < 0 ||
        failed(requireRange(*inner, {-max, max}, window)))
      return std::nullopt;
    return window;
  }
  std::optional<Affine> lower = values.get(left);
  if (!lower)
    return std::nullopt;
  if (isUnsigned && getWidestRange(*lower).min < 0) {
    // As unsigned numbers, negative numbers are larger than all others, so the
    // order with a constant is 0 <= x < c.
    int64_t max = upper->constant - step.constant;
    if (!upper->isConstant() || max < 0 ||
        failed(requireRange(*lower, {0, max}, window)))
      return std::nullopt;
    return window;
  }
  if (isUnsigned && getWidestRange(*upper).min < 0)
    return std::nullopt;
  if (failed(requireNotPositive(add(add(*lower, *upper, -1), step, 1), window)))
    return std::nullopt;
  return window;
}

/// Returns the window that a condition expresses, if any; a window without
/// limits if the condition always holds.
static std::optional<Window> getWindow(const AffineValues &values,
                                       Value condition) {
  if (matchPattern(condition, m_One()))
    return Window();
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return std::nullopt;
  Value left = compare.getLhs(), right = compare.getRhs();
  using arith::CmpIPredicate;
  switch (compare.getPredicate()) {
  case CmpIPredicate::eq: {
    std::optional<Affine> a = values.get(left), b = values.get(right);
    Window window;
    if (!a || !b || failed(requireRange(add(*a, *b, -1), {0, 0}, window)))
      return std::nullopt;
    return window;
  }
  case CmpIPredicate::ne:
    return std::nullopt;
  case CmpIPredicate::slt:
  case CmpIPredicate::sle:
  case CmpIPredicate::ult:
  case CmpIPredicate::ule:
    break;
  case CmpIPredicate::sgt:
  case CmpIPredicate::sge:
  case CmpIPredicate::ugt:
  case CmpIPredicate::uge:
    std::swap(left, right);
    break;
  }
  CmpIPredicate predicate = compare.getPredicate();
  bool isStrict =
      predicate == CmpIPredicate::slt || predicate == CmpIPredicate::sgt ||
      predicate == CmpIPredicate::ult || predicate == CmpIPredicate::ugt;
  bool isUnsigned =
      predicate == CmpIPredicate::ult || predicate == CmpIPredicate::ule ||
      predicate == CmpIPredicate::ugt || predicate == CmpIPredicate::uge;
  return getWindowOfOrder(values, left, right, isStrict, isUnsigned);
}

/// Returns the conditions of a conjunction, in order and without duplicates.
static SmallVector<Value> getConditions(Value conjunction) {
  SmallVector<Value> conditions, stack{conjunction};
  llvm::SmallDenseSet<Value> seen;
  while (!stack.empty()) {
    Value value = stack.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (auto both = value.getDefiningOp<arith::AndIOp>()) {
      llvm::append_values(stack, both.getRhs(), both.getLhs());
      continue;
    }
    auto select = value.getDefiningOp<arith::SelectOp>();
    if (select && matchPattern(select.getFalseValue(), m_Zero())) {
      llvm::append_values(stack, select.getTrueValue(), select.getCondition());
      continue;
    }
    conditions.push_back(value);
  }
  return conditions;
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// Narrows `causal`, `window_left` and `window_right` of the operation.
static void narrowWindows(AttentionOp op, const Window &by) {
  Window window;
  if (op.getWindowLeft())
    window.left = *op.getWindowLeft();
  if (op.getWindowRight())
    window.right = *op.getWindowRight();
  window.narrow(by);
  Builder builder(op);
  if (by.left)
    op.setWindowLeftAttr(builder.getI64IntegerAttr(*window.left));
  if (by.right == 0)
    op.setCausal(true);
  else if (by.right && !op.getCausal())
    op.setWindowRightAttr(builder.getI64IntegerAttr(*window.right));
}

/// Replaces the yielded conjunction by that of `conditions`, and erases what
/// is no longer used. Without conditions, erases the region.
static void setConditions(IRRewriter &rewriter, AttentionOp op,
                          ArrayRef<Value> conditions) {
  Block &block = op.getWhere().front();
  if (conditions.empty()) {
    rewriter.eraseBlock(&block);
    return;
  }
  auto yield = cast<YieldOp>(block.getTerminator());
  rewriter.setInsertionPoint(yield);
  Value all = conditions.front();
  for (Value condition : conditions.drop_front())
    all = arith::AndIOp::create(rewriter, yield.getLoc(), all, condition);
  yield.setOperand(all);
  // Users come after the operations that they use.
  SmallVector<Operation *> inner(
      llvm::make_pointer_range(block.without_terminator()));
  for (Operation *candidate : llvm::reverse(inner))
    if (isOpTriviallyDead(candidate))
      rewriter.eraseOp(candidate);
}

static void foldMask(IRRewriter &rewriter, AttentionOp op) {
  auto yield = cast<YieldOp>(op.getWhere().front().getTerminator());
  AffineValues values(op.getWhere());
  SmallVector<Value> all = getConditions(yield.getValue()), kept;
  Window window;
  for (Value condition : all) {
    if (std::optional<Window> folded = getWindow(values, condition))
      window.narrow(*folded);
    else
      kept.push_back(condition);
  }
  if (kept.size() == all.size())
    return reportMissed(op, DEBUG_TYPE, "no condition of 'where' is a window");
  reportChoice(op, DEBUG_TYPE,
               llvm::formatv("{0} of {1} conditions of 'where' folded into "
                             "causal and windows",
                             all.size() - kept.size(), all.size()));
  narrowWindows(op, window);
  setConditions(rewriter, op, kept);
}

namespace {
struct PosencFoldMasksPass
    : mlir::posenc::impl::PosencFoldMasksPassBase<PosencFoldMasksPass> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](AttentionOp op) {
      if (!op.getWhere().empty())
        foldMask(rewriter, op);
    });
  }
};
} // namespace
