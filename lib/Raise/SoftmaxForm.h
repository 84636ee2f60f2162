//===- SoftmaxForm.h - softmax in any spelling ------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_SOFTMAXFORM_H
#define POSENC_RAISE_SOFTMAXFORM_H

#include "Elements.h"

namespace mlir::posenc::raise {

/// Returns the expression without conversions between float types.
const Expr *stripCasts(const Expr *expr);

/// Whether the loop occurs in the expression.
bool dependsOnLoop(const Expr *expr, unsigned loop);

/// The logits of a softmax along a loop.
struct Softmax {
  const Expr *logits;
  /// A logit that is in the sum only, and does not depend on the loop, or null.
  const Expr *sink = nullptr;
};

/// Returns the logits of a weight that is their softmax along the loop, or
/// nullopt. A weight is `exp(s - m) / sum(exp(s - m))`, with the sum over the
/// loop and any `m` that does not depend on it, or an element of a
/// linalg.softmax; zeros may be selected for rows whose logits are all minus
/// infinity. The sum may have one more term, which may be the first or the last
/// one of the reduction. If it is nearly that, `reason` says what differs.
std::optional<Softmax> getSoftmax(ExprContext &exprs, Elements &elements,
                                  const Expr *weight, unsigned loop,
                                  std::string &reason);

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_SOFTMAXFORM_H
