//===- Passes.h - passes declared in dialect/posenc/Conversion --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CONVERSION_PASSES_H
#define POSENC_CONVERSION_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace mlir::posenc {

#define GEN_PASS_DECL
#include "posenc/Conversion/Passes.h.inc"

} // namespace mlir::posenc

#endif // POSENC_CONVERSION_PASSES_H
