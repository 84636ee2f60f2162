//===- Inputs.h - arguments from the command line ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_RUN_INPUTS_H
#define POSENC_TOOLS_RUN_INPUTS_H

#include "posenc/runtime/Library.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mlir::posenc {

/// An argument of a call: an array, an integer, or a floating-point number.
struct Input {
  ::posenc::runtime::Array array;
  int64_t scalar = 0;
  double real = 0;
  bool isScalar = false;
  /// Whether the scalar is the floating-point number `real`, not `scalar`.
  bool isReal = false;

  /// Refers to `array`, which must outlive the result.
  posenc_value value() const {
    return isReal     ? ::posenc::runtime::real(real)
           : isScalar ? ::posenc::runtime::scalar(scalar)
                      : array.value();
  }
};

/// Creates the arguments of a function from texts of the forms
///   @x.npy                       the array in a file
///   1x32x128xbf16=random:seed=7  an array of this shape and type; also
///                 =iota, =VALUE
///   i64=5, 5, f32=0.5, 0.5       a number
/// The seed defaults to the index of the argument.
llvm::Expected<std::vector<Input>>
createInputs(::posenc::runtime::Function function,
             llvm::ArrayRef<std::string> texts);

/// Allocates an array of zeros. Fails if it needs more memory than is
/// available.
llvm::Expected<::posenc::runtime::Array>
allocateArray(posenc_dtype dtype, std::vector<int64_t> shape);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_RUN_INPUTS_H
