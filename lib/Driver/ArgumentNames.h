//===- ArgumentNames.h - names of arguments in a module's text --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_ARGUMENTNAMES_H
#define POSENC_LIB_DRIVER_ARGUMENTNAMES_H

#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::posenc {

/// Sets `posenc.name` of the arguments of functions to the names that they have
/// in the text of a module, `q` for `%q`. Leaves out arguments that have the
/// attribute, and names that MLIR invents when it prints a module, `%arg0` and
/// `%0`.
void nameArguments(ModuleOp module, const AsmParserState &text);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_ARGUMENTNAMES_H
