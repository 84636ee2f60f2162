//===- Fill.h - the values of generated arrays ------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_DRIVER_RUN_FILL_H
#define POSENC_DRIVER_RUN_FILL_H

#include "posenc/runtime/Array.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mlir::posenc {

/// Fills an array with standard normal numbers rounded to its type, integers
/// with numbers from 0 to 4095, i1 with 0 and 1. The same seed gives the same
/// numbers.
llvm::Error fillRandom(const ::posenc::runtime::Array &array, uint64_t seed);

/// Fills an array with the row-major index of each element.
llvm::Error fillIota(const ::posenc::runtime::Array &array);

/// Fills an array with one number.
llvm::Error fillValue(const ::posenc::runtime::Array &array,
                      llvm::StringRef value);

/// The number that a text stands for.
llvm::Expected<double> parseReal(llvm::StringRef text);

/// The integer that a text stands for, in the range of a type.
llvm::Expected<int64_t> parseInteger(posenc_dtype dtype, llvm::StringRef text);

} // namespace mlir::posenc

#endif // POSENC_DRIVER_RUN_FILL_H
