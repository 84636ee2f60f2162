//===- ConstantFloats.h - values of constant expressions --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_CONSTANTFLOATS_H
#define POSENC_RAISE_CONSTANTFLOATS_H

#include "Expr.h"

#include "llvm/ADT/APFloat.h"

namespace mlir::posenc::raise {

/// Returns the value of an expression of constants, each operation rounded once
/// to its type. Functions of `math` are correctly rounded, which differs by at
/// most one unit in the last place from those of any good library. Returns
/// nullopt if the expression is not constant or is not finite.
std::optional<llvm::APFloat> evaluateFloat(const Expr *expr);

/// Returns that value as a number of f64.
std::optional<double> evaluateNumber(const Expr *expr);

/// Whether exponentials with a fixed base occur in the expression. Their
/// arguments are rounded, which makes relative errors of their size.
bool isExponential(const Expr *expr);

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_CONSTANTFLOATS_H
