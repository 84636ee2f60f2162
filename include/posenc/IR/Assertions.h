//===- Assertions.h - assertions that kernels report ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_ASSERTIONS_H
#define POSENC_IR_ASSERTIONS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::posenc {

/// An array of strings on a function: the messages of its assertions. The last
/// result of the function, a tensor<i64>, is the number of the first assertion
/// that fails, or how many there are if none fails.
/// Entry points read the number and return an error with the message; it is no
/// output of theirs.
inline constexpr llvm::StringLiteral kAssertionsAttrName = "posenc.assertions";

} // namespace mlir::posenc

#endif // POSENC_IR_ASSERTIONS_H
