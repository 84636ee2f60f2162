//===- RunUnverified.cpp - passes without verification between them -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Pipelines/Pipelines.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

LogicalResult mlir::posenc::runUnverified(PassManager &manager,
                                          ModuleOp module) {
#ifdef NDEBUG
  manager.enableVerifier(false);
  return success(succeeded(manager.run(module)) && succeeded(verify(module)));
#else
  return manager.run(module);
#endif
}
