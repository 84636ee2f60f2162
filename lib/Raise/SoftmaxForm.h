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

/// Returns the logits of a weight that is their softmax along the loop, or
/// null. A weight is `exp(s - m) / sum(exp(s - m))`, with the sum over the loop
/// and any `m` that does not depend on it, or an element of a linalg.softmax;
/// zeros may be selected for rows whose logits are all minus infinity. If it is
/// nearly that, `reason` says what differs.
const Expr *getSoftmaxLogits(ExprContext &exprs, Elements &elements,
                             const Expr *weight, unsigned loop,
                             std::string &reason);

/// Whether `sum` is the sum of the expression over the loop.
bool isSumOver(ExprContext &exprs, Elements &elements, const Expr *sum,
               const Expr *term, unsigned loop);

/// Returns s of `exp(s - m)`, where m does not depend on the loop, or null.
const Expr *getExponent(const Expr *term, unsigned loop);

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_SOFTMAXFORM_H
