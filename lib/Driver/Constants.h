//===- Constants.h - arguments that a file has the values of ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_CONSTANTS_H
#define POSENC_LIB_DRIVER_CONSTANTS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::posenc {

/// Replaces arguments of the module's public functions by constants: those
/// whose names are keys of a file of the safetensors format. The elements stay
/// in the mapped file. Prints an error if a tensor has no argument, or another
/// type than its argument, or the file is malformed.
LogicalResult replaceArguments(ModuleOp module, StringRef path);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_CONSTANTS_H
