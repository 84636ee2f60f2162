//===- ListFunctions.h - listings of --list and its like --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_LISTFUNCTIONS_H
#define POSENC_LIB_DRIVER_LISTFUNCTIONS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::posenc {

/// Prints a line `name(argument: type, ...) -> (result: type, ...)` for each
/// public function with a body, in the module's order.
void listFunctions(llvm::raw_ostream &os, ModuleOp module);

/// Prints a line `type: pairing, functions` for each known model type.
void listModels(llvm::raw_ostream &os);

/// Prints a line `key | effect | neutral values | types` for each key of a
/// config that changes a rotation, a position, a mask or the scores.
void listKeys(llvm::raw_ostream &os);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_LISTFUNCTIONS_H
