//===- Inputs.h - arguments from the command line ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_DRIVER_RUN_INPUTS_H
#define POSENC_DRIVER_RUN_INPUTS_H

#include "posenc/runtime/Library.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mlir::posenc {

/// One argument of a call: an array, an integer, or a floating-point number.
struct Input {
  ::posenc::runtime::Array array;
  int64_t scalar = 0;
  double real = 0;
  bool isScalar = false;
  /// Whether a scalar is `real`.
  bool isReal = false;

  posenc_value value() const {
    return isReal     ? ::posenc::runtime::real(real)
           : isScalar ? ::posenc::runtime::scalar(scalar)
                      : array.value();
  }
};

/// Makes the arguments of a function, one for each text:
///   @x.npy                       the array of a file
///   1x32x128xbf16=random:seed=7  an array of that shape and type; also
///                 =iota, =VALUE
///   i64=5, 5, f32=0.5, 0.5       a number
/// Without a seed, the number of the argument is one.
llvm::Expected<std::vector<Input>>
createInputs(::posenc::runtime::Function function,
             llvm::ArrayRef<std::string> texts);

/// An array of zeros, unless it is more than the memory there is.
llvm::Expected<::posenc::runtime::Array>
allocateArray(posenc_dtype dtype, std::vector<int64_t> shape);

} // namespace mlir::posenc

#endif // POSENC_DRIVER_RUN_INPUTS_H
