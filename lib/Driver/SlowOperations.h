//===- SlowOperations.h - warnings about slow operations --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_SLOWOPERATIONS_H
#define POSENC_LIB_DRIVER_SLOWOPERATIONS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::posenc {

/// Emits a warning for each operation that compiles to slow code for CPUs:
/// attention that is not fused, linalg reductions that become scalar loops, and
/// norms of keys that are slow. Does not change the module.
void warnOfSlowOperations(ModuleOp module);

/// Whether an operation of linalg becomes a loop on scalars, which LLVM does
/// not vectorize: it sums floats along the innermost loop, and is not tiled.
bool isScalarLoop(linalg::LinalgOp op);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_SLOWOPERATIONS_H
