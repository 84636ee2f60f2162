//===- SlowOperations.h - warnings of what runs slowly ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_SLOWOPERATIONS_H
#define POSENC_LIB_DRIVER_SLOWOPERATIONS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::posenc {

/// Warns, at its location, of each operation that is compiled for CPUs in a way
/// that is much slower than the processor: attention that is not fused, and
/// sums and products of linalg, which become scalar loops. The module stays as
/// it is.
void warnOfSlowOperations(ModuleOp module);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_SLOWOPERATIONS_H
