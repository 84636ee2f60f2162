//===- ScalarFunctions.h - arith and math ops on scalars --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_INTERPRETER_SCALARFUNCTIONS_H
#define POSENC_LIB_INTERPRETER_SCALARFUNCTIONS_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace mlir::posenc {

inline constexpr unsigned kMaxScalarOperands = 3;

using RealFunction = double (*)(const double *operands);
/// The operands are integers of `width` bits, sign-extended. Returns nullopt
/// where the operation is undefined. The caller truncates the result to its
/// width.
using IntegerFunction = std::optional<int64_t> (*)(const int64_t *operands,
                                                   unsigned width);
using ClassFunction = bool (*)(double operand);

// Each function returns null unless `name` is an operation whose operands and
// result are of its kind: floats, integers, or a float and an i1.
RealFunction findRealFunction(llvm::StringRef name);
IntegerFunction findIntegerFunction(llvm::StringRef name);
ClassFunction findClassFunction(llvm::StringRef name);

/// Returns the bits of an integer of `width` bits as an unsigned number.
inline uint64_t zeroExtend(int64_t value, unsigned width) {
  return width == 64 ? uint64_t(value)
                     : uint64_t(value) & ((uint64_t(1) << width) - 1);
}

} // namespace mlir::posenc

#endif // POSENC_LIB_INTERPRETER_SCALARFUNCTIONS_H
