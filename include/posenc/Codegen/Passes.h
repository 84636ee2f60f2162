//===- Passes.h - passes declared in dialect/posenc/Codegen -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CODEGEN_PASSES_H
#define POSENC_CODEGEN_PASSES_H

#include "posenc/TargetInfo/Tuning.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace mlir::posenc {

#define GEN_PASS_DECL
#include "posenc/Codegen/Passes.h.inc"

} // namespace mlir::posenc

#endif // POSENC_CODEGEN_PASSES_H
