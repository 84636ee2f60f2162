//===- ScoreParts.h - logits as scores, biases and masks --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_SCOREPARTS_H
#define POSENC_RAISE_SCOREPARTS_H

#include "Expr.h"

namespace mlir::posenc::raise {

/// The loops of attention by their role.
struct AttentionLoops {
  unsigned query, key;
  /// The key index with which query 0 is aligned, if it is constant.
  std::optional<int64_t> offset;
};

/// A condition under which a key is visible, or hidden.
struct Visibility {
  const Expr *condition;
  bool isHidden;
};

/// Logits `score(scale * product) + mask`, where all conditions hold.
struct ScoreParts {
  double scale = 1;
  /// The scaled product within `score`.
  const Expr *product = nullptr;
  /// Equal to `product` if scores are not changed.
  const Expr *score = nullptr;
  /// An element of a tensor that is added, or null.
  const Expr *mask = nullptr;
  SmallVector<Visibility> conditions;
};

/// Splits the logits, which contain `product`. `isMask` tells if an element of
/// a tensor can be that of the operand `mask` of attention.
ScoreParts splitLogits(ExprContext &exprs, const Expr *logits,
                       const Expr *product, const AttentionLoops &loops,
                       llvm::function_ref<bool(const Expr *)> isMask);

/// Returns the expression with all floats in `type`, which is wider: roundings
/// to narrower types are left out.
const Expr *widen(ExprContext &exprs, const Expr *expr, FloatType type);

/// Returns the expression with another index in place of a loop.
const Expr *replaceLoop(ExprContext &exprs, const Expr *expr, unsigned loop,
                        AffineExpr index);

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_SCOREPARTS_H
