//===- Fill.h - values of generated inputs ----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_RUN_FILL_H
#define POSENC_TOOLS_RUN_FILL_H

#include "posenc/runtime/Array.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mlir::posenc {

/// Fills an array with random values: standard normal numbers rounded to a
/// floating-point type, integers from 0 to 4095, i8 from -128 to 127, i1 0
/// or 1. The values depend only on the type and the seed.
llvm::Error fillRandom(const ::posenc::runtime::Array &array, uint64_t seed);

/// Fills an array with the row-major index of each element.
llvm::Error fillIota(const ::posenc::runtime::Array &array);

/// Fills an array with the number that `value` spells.
llvm::Error fillValue(const ::posenc::runtime::Array &array,
                      llvm::StringRef value);

/// Parses a floating-point number.
llvm::Expected<double> parseReal(llvm::StringRef text);

/// Parses a decimal integer. Values outside the range of `dtype` are an error.
llvm::Expected<int64_t> parseInteger(posenc_dtype dtype, llvm::StringRef text);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_RUN_FILL_H
