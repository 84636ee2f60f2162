//===- RotationMiss.cpp - what resembles a rotation -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RotationMiss.h"

#include "Elements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cstdlib>

using namespace mlir;
using namespace mlir::posenc::raise;

/// Larger sums are those of convolutions and of unrolled reductions.
static constexpr size_t kMaxTerms = 3;

/// How many operations are inspected for sums and products: as many as are
/// tried as the rotated tensor.
static constexpr unsigned kMaxReached = 64;

namespace {
/// The kinds of scalar operations in the body of an operation.
struct Arithmetic {
  /// Whether there are sums, and what may be a product or a sign.
  bool adds = false, multiplies = false;
  /// Whether each element of the result is a function, such as a maximum, that
  /// is no sum of products.
  bool isOpaque = false;
};
} // namespace

static Arithmetic getArithmetic(Operation *op) {
  Arithmetic found;
  auto add = [&](Operation *scalar) {
    found.adds |=
        isa<arith::AddFOp, arith::SubFOp, math::FmaOp>(scalar) ||
        isa_and_present<complex::ComplexDialect>(scalar->getDialect());
    found.multiplies |=
        !isa<arith::AddFOp, arith::ConstantOp, linalg::YieldOp>(scalar);
  };
  auto isFunction = [](Operation *last) {
    return last && !isa<math::FmaOp>(last) &&
           (isa<math::MathDialect>(last->getDialect()) ||
            isa<arith::DivFOp, arith::MaximumFOp, arith::MaxNumFOp,
                arith::MinimumFOp, arith::MinNumFOp>(last));
  };
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (!structured) {
    if (OpTrait::hasElementwiseMappableTraits(op))
      add(op);
    found.isOpaque = isFunction(op);
    return found;
  }
  structured.getBlock()->walk(add);
  Value yielded = structured.getBlock()->getTerminator()->getOperand(0);
  found.isOpaque =
      structured.getNumDpsInits() == 1 && isFunction(yielded.getDefiningOp());
  return found;
}

bool mlir::posenc::raise::mayBeLinear(Operation *op) {
  if (getArithmetic(op).isOpaque)
    return false;
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (!structured)
    return true;
  int64_t numTerms = 1;
  for (auto [size, kind] : llvm::zip_equal(structured.getStaticLoopRanges(),
                                           structured.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction) {
      if (ShapedType::isDynamic(size) || size > 2)
        return false;
      numTerms *= size;
    }
  return numTerms <= 2;
}

bool mlir::posenc::raise::mayAddProducts(Operation *root) {
  llvm::SmallSetVector<Operation *, 16> reached;
  reached.insert(root);
  bool adds = false, multiplies = false;
  for (unsigned next = 0; next < reached.size() && next < kMaxReached; ++next) {
    Arithmetic found = getArithmetic(reached[next]);
    if (found.isOpaque)
      continue;
    adds |= found.adds;
    multiplies |= found.multiplies;
    if (adds && multiplies)
      return true;
    for (Value read : getReadTensors(reached[next]))
      if (Operation *producer = read.getDefiningOp())
        reached.insert(producer);
  }
  return false;
}

bool mlir::posenc::raise::mayAddLanes(Operation *root, Value x,
                                      llvm::function_ref<bool(Value)> depends) {
  llvm::SmallSetVector<Operation *, 16> reached;
  reached.insert(root);
  for (unsigned next = 0; next < reached.size(); ++next) {
    if (next == kMaxReached)
      return true;
    Arithmetic found = getArithmetic(reached[next]);
    if (found.adds)
      return true;
    if (found.isOpaque)
      continue;
    for (Value read : getReadTensors(reached[next]))
      if (Operation *producer = read.getDefiningOp();
          producer && read != x && depends(read))
        reached.insert(producer);
  }
  return false;
}

static const Expr *stripSigns(const Expr *expr) {
  while (expr->is<arith::ExtFOp, arith::TruncFOp, arith::NegFOp>())
    expr = expr->operands[0];
  return expr;
}

/// Whether the expression has an element of a tensor, with `ofRow` one that
/// depends on the row: its lane is a constant, so that another index is that of
/// the row.
static bool isTable(const Expr *expr, bool ofRow) {
  return expr->hasPart([&](const Expr *part) {
    return part->kind == Expr::Kind::Element &&
           (!ofRow || llvm::any_of(part->operands, [](const Expr *index) {
             return !index->getIndexConstant();
           }));
  });
}

void RotationMiss::addLanes(const Expr *expr, Term &term, bool &isDependent,
                            llvm::SmallPtrSetImpl<const Expr *> &seen) {
  // Expressions share parts: without this, their number is that of all paths.
  if (!seen.insert(expr).second)
    return;
  if (expr->kind == Expr::Kind::Element && expr->tensor == x) {
    isDependent = true;
    term.rows.insert(expr->operands.drop_back(numLaneDims));
    if (std::optional<int64_t> lane = getLane(expr->operands))
      term.lanes.insert(*lane);
    else
      term.hasOther = true;
    return;
  }
  if (expr->kind == Expr::Kind::Element && depends(expr->tensor)) {
    isDependent = true;
    // Several are a function of x.
    term.hasOther |= term.opaque != nullptr;
    term.opaque = expr->tensor;
    return;
  }
  for (const Expr *operand : expr->operands)
    addLanes(operand, term, isDependent, seen);
}

void RotationMiss::addFactors(const Expr *expr, Term &term) {
  expr = stripSigns(expr);
  if (expr->is<arith::MulFOp>()) {
    term.isProduct = true;
    addFactors(expr->operands[0], term);
    addFactors(expr->operands[1], term);
    return;
  }
  bool isDependent = false;
  llvm::SmallPtrSet<const Expr *, 16> seen;
  addLanes(expr, term, isDependent, seen);
  term.hasTable |= !isDependent && isTable(expr, /*ofRow=*/false);
  term.hasRows |= !isDependent && isTable(expr, /*ofRow=*/true);
  // A function of an element, such as the reciprocal of a norm.
  if (isDependent && term.opaque && expr->kind != Expr::Kind::Element)
    term.hasOther = true;
}

bool RotationMiss::addTerms(const Expr *expr, SmallVectorImpl<Term> &terms) {
  expr = stripSigns(expr);
  if (expr->is<arith::AddFOp, arith::SubFOp>())
    return addTerms(expr->operands[0], terms) &&
           addTerms(expr->operands[1], terms);
  if (terms.size() == kMaxTerms)
    return false;
  bool isSum = expr->is<math::FmaOp>();
  Term &term = terms.emplace_back();
  term.isProduct = isSum;
  for (const Expr *factor :
       isSum ? expr->operands.take_front(2) : ArrayRef<const Expr *>(expr))
    addFactors(factor, term);
  return !isSum || addTerms(expr->operands[2], terms);
}

bool RotationMiss::isSumOfProducts(const Expr *lane) {
  SmallVector<Term> terms;
  return addTerms(lane, terms) && llvm::count_if(terms, [](const Term &term) {
                                    return term.isProduct && term.hasTable;
                                  }) >= 2;
}

bool RotationMiss::resembles(ArrayRef<const Expr *> lanes) {
  // Lanes that are in a sum with others, by the number of the result's lane.
  SmallVector<std::pair<int64_t, llvm::SmallDenseSet<int64_t, 4>>> sums;
  llvm::SmallSetVector<ArrayRef<const Expr *>, 2> rows;
  bool hasRows = true;
  int64_t numLanes = lanes.size(), numOpaque = 0;
  Value tensor;
  for (auto [number, lane] : llvm::enumerate(lanes)) {
    SmallVector<Term> terms;
    if (!addTerms(lane, terms))
      continue;
    llvm::erase_if(terms, [](const Term &term) {
      return !term.isProduct || !term.hasTable;
    });
    if (terms.size() != 2)
      continue;
    Term *self = &terms[0], *other = &terms[1];
    if (self->opaque)
      std::swap(self, other);
    if (!self->opaque && other->opaque && !self->hasOther && !other->hasOther &&
        self->hasRows && other->hasRows && other->lanes.empty() &&
        self->lanes.size() == 1) {
      tensor = other->opaque;
      ++numOpaque;
      continue;
    }
    // An element of another tensor is taken for the lane itself.
    if (self->lanes.size() > other->lanes.size())
      std::swap(self, other);
    if (self->lanes.size() > 1 || other->lanes.empty())
      continue;
    if (other->lanes.size() == 1 && other->lanes.contains(number) &&
        !self->lanes.empty())
      std::swap(self, other);
    int64_t own = self->lanes.empty() ? number : *self->lanes.begin();
    if (other->lanes.contains(own))
      continue;
    // All lanes are computed from the same rows, in either order.
    llvm::SmallSetVector<ArrayRef<const Expr *>, 2> of = self->rows;
    of.insert_range(other->rows);
    if (sums.empty())
      rows = of;
    if (of.size() != rows.size() ||
        !llvm::all_of(of, [&](auto row) { return rows.contains(row); }))
      return false;
    sums.push_back({own, other->lanes});
    hasRows &= self->hasRows && other->hasRows;
  }
  if (numOpaque == numLanes) {
    added = tensor;
    return true;
  }
  // Each lane has a partner of its own.
  llvm::SmallDenseSet<int64_t> partners;
  if (hasRows && int64_t(sums.size()) == numLanes &&
      llvm::all_of(sums, [&](const auto &sum) {
        return sum.second.size() == 1 &&
               partners.insert(*sum.second.begin()).second;
      }))
    return true;
  // Two lanes are sums of the same two.
  auto isSame = [](const auto &a, const auto &b) {
    return (a.first == b.first && a.second == b.second) ||
           (a.second.contains(b.first) && b.second.contains(a.first));
  };
  auto isExchanged = [&](const auto &sum) {
    return llvm::any_of(sum.second,
                        [&](int64_t lane) {
                          return std::abs(lane - sum.first) * 2 == numLanes;
                        }) ||
           llvm::count_if(sums, [&](const auto &other) {
             return isSame(sum, other);
           }) == 2;
  };
  return sums.size() >= 2 &&
         2 * llvm::count_if(sums, isExchanged) >= int64_t(sums.size());
}
