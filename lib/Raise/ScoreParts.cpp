//===- ScoreParts.cpp - logits as scores, biases and masks ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreParts.h"

#include "ConstantFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc::raise;

/// Finite numbers below this hide a key as minus infinity does, if another key
/// is visible.
static constexpr double kLargestHidden = -1e9;
/// The lowest finite number of f16 hides a key, too.
static constexpr double kMinF16 = -65504;

static bool contains(const Expr *expr, const Expr *part) {
  return expr->hasPart([&](const Expr *other) { return other == part; });
}

/// Returns the expression with operands that `change` maps to others. `change`
/// returns null to descend.
static const Expr *
rebuild(ExprContext &exprs, const Expr *expr,
        llvm::DenseMap<const Expr *, const Expr *> &known,
        llvm::function_ref<const Expr *(const Expr *)> change) {
  if (const Expr *done = known.lookup(expr))
    return done;
  const Expr *result = change(expr);
  if (!result && expr->operands.empty())
    result = expr;
  if (!result) {
    SmallVector<const Expr *> operands;
    for (const Expr *operand : expr->operands)
      operands.push_back(rebuild(exprs, operand, known, change));
    result = exprs.getLike(expr, operands);
  }
  return known[expr] = result;
}

const Expr *mlir::posenc::raise::replaceLoop(ExprContext &exprs,
                                             const Expr *expr, unsigned loop,
                                             AffineExpr index) {
  llvm::DenseMap<const Expr *, const Expr *> known;
  AffineExpr from = getAffineDimExpr(loop, exprs.getContext());
  return rebuild(exprs, expr, known, [&](const Expr *part) -> const Expr * {
    if (part->kind != Expr::Kind::Index)
      return nullptr;
    return exprs.getIndex(part->index.replace(from, index), part->type);
  });
}

const Expr *mlir::posenc::raise::widen(ExprContext &exprs, const Expr *expr,
                                       FloatType type) {
  auto isNarrow = [&](Type other) {
    auto number = dyn_cast<FloatType>(other);
    return number && number.getWidth() < type.getWidth();
  };
  llvm::DenseMap<const Expr *, const Expr *> known;
  std::function<const Expr *(const Expr *)> change =
      [&](const Expr *part) -> const Expr * {
    if (part->is<arith::ExtFOp, arith::TruncFOp>() &&
        (part->type == type || isNarrow(part->type))) {
      const Expr *number = rebuild(exprs, part->operands[0], known, change);
      // A wider number is still truncated.
      return number->type == type
                 ? number
                 : exprs.getOperation(*part->name, part->properties, type,
                                      number);
    }
    if (!isNarrow(part->type))
      return nullptr;
    if (std::optional<double> number = part->getFloatConstant())
      return exprs.getConstant(FloatAttr::get(type, *number));
    if (part->kind == Expr::Kind::Element)
      return exprs.getOperation(
          OperationName(arith::ExtFOp::getOperationName(), exprs.getContext()),
          Attribute(), type, part);
    SmallVector<const Expr *> operands;
    for (const Expr *operand : part->operands)
      operands.push_back(rebuild(exprs, operand, known, change));
    return exprs.getOperation(*part->name, part->properties, type, operands);
  };
  return rebuild(exprs, expr, known, change);
}

/// Whether a key is visible at the diagonal for every query: then no row is
/// empty.
static bool holdsOnDiagonal(ExprContext &exprs, const Visibility &visibility,
                            const AttentionLoops &loops) {
  if (!loops.offset || *loops.offset < 0)
    return false;
  AffineExpr query = getAffineDimExpr(loops.query, exprs.getContext());
  const Expr *condition = replaceLoop(exprs, visibility.condition, loops.key,
                                      query + *loops.offset);
  std::optional<bool> truth = condition->getBoolConstant();
  return truth && *truth != visibility.isHidden;
}

namespace {
/// Takes the logits apart, from the outside to the product.
class Splitter {
public:
  /// Finite numbers hide keys if `finiteHides`.
  Splitter(ExprContext &exprs, const Expr *product, const AttentionLoops &loops,
           llvm::function_ref<bool(const Expr *)> isMask, bool finiteHides)
      : exprs(exprs), product(product), loops(loops), isMask(isMask),
        finiteHides(finiteHides) {}

  /// Whether finite numbers may hide keys: each query sees the key at the
  /// diagonal under all masks together.
  bool isSound() {
    return !hasFinite ||
           (!parts.mask &&
            llvm::all_of(parts.conditions, [&](const Visibility &visibility) {
              return holdsOnDiagonal(exprs, visibility, loops);
            }));
  }

  ScoreParts run(const Expr *logits) {
    while (const Expr *inner = peel(logits))
      logits = inner;
    parts.score = logits;
    findScale();
    return parts;
  }

private:
  bool hides(const Expr *number) {
    std::optional<double> value = number->getFloatConstant();
    if (!value)
      return false;
    if (std::isinf(*value) && *value < 0)
      return true;
    double limit = number->type.isF16() ? kMinF16 : kLargestHidden;
    if (!finiteHides || *value > limit)
      return false;
    return hasFinite = true;
  }
  const Expr *peel(const Expr *logits);
  void findScale();

  ExprContext &exprs;
  const Expr *product;
  const AttentionLoops &loops;
  llvm::function_ref<bool(const Expr *)> isMask;
  bool finiteHides, hasFinite = false;
  ScoreParts parts;
};
} // namespace

/// Removes the outermost mask and returns what it is applied to, or null.
const Expr *Splitter::peel(const Expr *logits) {
  if (logits->is<arith::ExtFOp, arith::TruncFOp>())
    return logits->operands[0];
  if (logits->is<arith::SelectOp>() &&
      !contains(logits->operands[0], product)) {
    for (unsigned side : {1, 2}) {
      Visibility visibility{logits->operands[0], side == 2};
      if (contains(logits->operands[side], product) &&
          hides(logits->operands[3 - side])) {
        parts.conditions.push_back(visibility);
        return logits->operands[side];
      }
    }
    return nullptr;
  }
  if (!logits->is<arith::AddFOp>())
    return nullptr;
  for (unsigned side : {0, 1}) {
    const Expr *added = logits->operands[1 - side];
    while (added->is<arith::ExtFOp, arith::TruncFOp>())
      added = added->operands[0];
    if (!contains(logits->operands[side], product) || contains(added, product))
      continue;
    if (added->is<arith::SelectOp>())
      for (unsigned zero : {1, 2}) {
        Visibility visibility{added->operands[0], zero == 2};
        if (added->operands[zero]->getFloatConstant() == 0.0 &&
            hides(added->operands[3 - zero])) {
          parts.conditions.push_back(visibility);
          return logits->operands[side];
        }
      }
    if (!parts.mask && isMask(added)) {
      parts.mask = added;
      return logits->operands[side];
    }
  }
  return nullptr;
}

/// Moves constant factors of the product out of the scores.
void Splitter::findScale() {
  llvm::DenseMap<const Expr *, SmallVector<const Expr *>> users;
  SmallVector<const Expr *> stack{parts.score};
  llvm::DenseSet<const Expr *> seen;
  while (!stack.empty()) {
    const Expr *next = stack.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (const Expr *operand : next->operands) {
      users[operand].push_back(next);
      stack.push_back(operand);
    }
  }
  const Expr *scaled = product;
  while (scaled != parts.score && users[scaled].size() == 1) {
    const Expr *user = users[scaled][0];
    if (user->is<arith::MulFOp>()) {
      const Expr *other = user->operands[user->operands[0] == scaled ? 1 : 0];
      std::optional<double> factor = evaluateNumber(other);
      if (!factor || !std::isfinite(*factor))
        break;
      parts.scale *= *factor;
    } else if (user->is<arith::DivFOp>() && user->operands[0] == scaled) {
      std::optional<double> divisor = evaluateNumber(user->operands[1]);
      if (!divisor || !std::isfinite(1 / *divisor))
        break;
      parts.scale /= *divisor;
    } else if (!user->is<arith::ExtFOp, arith::TruncFOp>()) {
      break;
    }
    scaled = user;
  }
  parts.product = scaled;
}

ScoreParts mlir::posenc::raise::splitLogits(
    ExprContext &exprs, const Expr *logits, const Expr *product,
    const AttentionLoops &loops,
    llvm::function_ref<bool(const Expr *)> isMask) {
  Splitter splitter(exprs, product, loops, isMask, /*finiteHides=*/true);
  ScoreParts parts = splitter.run(logits);
  if (splitter.isSound())
    return parts;
  return Splitter(exprs, product, loops, isMask, /*finiteHides=*/false)
      .run(logits);
}
