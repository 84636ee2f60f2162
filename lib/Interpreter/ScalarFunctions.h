//===- ScalarFunctions.h - operations on scalars by name --------*- C++ -*-===//
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
/// On integers of `width` bits, sign-extended. Nothing where the operation has
/// no meaning. The result is cut to its width by the caller.
using IntegerFunction = std::optional<int64_t> (*)(const int64_t *operands,
                                                   unsigned width);
using ClassFunction = bool (*)(double operand);

/// Each is null for a name that is no operation from and to its kind.
RealFunction findRealFunction(llvm::StringRef name);
IntegerFunction findIntegerFunction(llvm::StringRef name);
ClassFunction findClassFunction(llvm::StringRef name);

/// The bits of an integer as a number without a sign.
inline uint64_t zeroExtend(int64_t value, unsigned width) {
  return width == 64 ? uint64_t(value)
                     : uint64_t(value) & ((uint64_t(1) << width) - 1);
}

} // namespace mlir::posenc

#endif // POSENC_LIB_INTERPRETER_SCALARFUNCTIONS_H
