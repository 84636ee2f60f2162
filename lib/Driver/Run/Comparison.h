//===- Comparison.h - how far results are off -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_RUN_COMPARISON_H
#define POSENC_LIB_DRIVER_RUN_COMPARISON_H

#include "posenc/Driver/Run/Inputs.h"
#include "posenc/Interpreter/Interpreter.h"

#include <optional>

namespace mlir::posenc {

/// What the command line says of them.
struct Limits {
  std::optional<double> maxUlp;
  /// Of the relative Frobenius norm of the error; not looked at if absent.
  std::optional<double> maxRel;
};

/// An array as the oracle takes it; an error for a type that it lacks.
llvm::Expected<ReferenceValue>
convertToReference(const ::posenc::runtime::Array &array);
ReferenceValue convertToReference(int64_t scalar, posenc_dtype dtype);
/// The same of f64 or f32, to which it is rounded.
ReferenceValue convertToReference(double scalar, posenc_dtype dtype);

/// Makes the values of a file the ones that a result is measured against.
/// Magnitudes and limits are the oracle's if it knows the result; else they are
/// guessed from the signature.
void setMeasure(ReferenceValue &expected, const ReferenceValue *oracle,
                ::posenc::runtime::Function function);

/// Measures a result, prints one line on standard output, and, where it is
/// beyond the limits, why on standard error: `note` stands behind the result's
/// number there. Returns whether it is within.
bool compareResult(size_t number, const ::posenc::runtime::Array &result,
                   const ReferenceValue &expected, const Limits &limits,
                   llvm::StringRef note = "");

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_RUN_COMPARISON_H
