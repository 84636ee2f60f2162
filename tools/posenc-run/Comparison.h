//===- Comparison.h - errors of results against the oracle ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_RUN_COMPARISON_H
#define POSENC_TOOLS_RUN_COMPARISON_H

#include "posenc-run/Inputs.h"
#include "posenc/Interpreter/Interpreter.h"

#include <optional>

namespace mlir::posenc {

/// Limits of the error from the command line. Where one is absent, the default
/// for the operation and type applies.
struct Limits {
  /// Maximum error of an element, in units in the last place.
  std::optional<double> maxUlp;
  /// Maximum relative error of a whole result: the Frobenius norm of the error
  /// over that of the expected values.
  std::optional<double> maxRel;
};

/// The tolerance of a comparison as of numpy.allclose: x matches y where
/// |x - y| <= absolute + relative * |y|. Both are finite.
struct Tolerance {
  double absolute = 0, relative = 0;
};

/// Converts an array to a value of the oracle. Fails for element types that the
/// oracle does not support, and for arrays that do not fit into memory. i1
/// becomes i32.
llvm::Expected<ReferenceValue>
convertToReference(const ::posenc::runtime::Array &array);
/// Converts an integer scalar of type `dtype`.
ReferenceValue convertToReference(int64_t scalar, posenc_dtype dtype);
/// Converts a floating-point scalar, rounding it to `dtype`: f32 or f64.
ReferenceValue convertToReference(double scalar, posenc_dtype dtype);

/// Sets the magnitudes and limits by which a result is compared with
/// `expected`, whose values come from a file. They are those of the oracle's
/// result; if that is null, they are guessed from the signature of the
/// function.
void setMeasure(ReferenceValue &expected, const ReferenceValue *oracle,
                ::posenc::runtime::Function function);

/// Compares a result with the expected values and prints its errors as one line
/// to standard output. If it exceeds the limits, prints an error to standard
/// error, with `note` after the index of the result, and returns false.
bool compareResult(size_t number, const ::posenc::runtime::Array &result,
                   const ReferenceValue &expected, const Limits &limits,
                   llvm::StringRef note = "");

/// Compares a result with the expected values like compareResult(), but by a
/// tolerance: an element's error is a multiple of its tolerance. NaN matches
/// NaN, and an infinity itself.
bool compareWithTolerance(size_t number, const ::posenc::runtime::Array &result,
                          const ReferenceValue &expected,
                          const Tolerance &tolerance,
                          llvm::StringRef note = "");

} // namespace mlir::posenc

#endif // POSENC_TOOLS_RUN_COMPARISON_H
