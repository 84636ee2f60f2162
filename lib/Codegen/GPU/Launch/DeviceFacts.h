//===- DeviceFacts.h - facts about the device, for host code ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_LAUNCH_DEVICEFACTS_H
#define POSENC_LIB_CODEGEN_GPU_LAUNCH_DEVICEFACTS_H

#include "mlir/IR/Builders.h"

namespace mlir::posenc {

/// A function that host code calls to know whether code for exactly one
/// architecture, ten times its compute capability, runs.
inline constexpr llvm::StringLiteral kRunsOnFunction = "posenc_runs_on";
/// A function that host code calls to know the number of multiprocessors.
inline constexpr llvm::StringLiteral kMultiprocessorsFunction =
    "posenc_multiprocessors";

/// Threads of the blocks of kernels beside those of attention, and the blocks
/// that a multiprocessor, which has 2,048 threads, holds. More work than theirs
/// takes turns: tables and splits have space for all keys of a cache.
inline constexpr int64_t kHelperThreads = 128, kHelperBlocks = 16;

/// Emits a call of one of these functions, which is declared in the module of
/// `op` if it is not yet.
Value callSupport(OpBuilder &builder, Operation *op, StringRef function,
                  Type result, ValueRange arguments);

/// Emits the smaller one of `blocks`, an index, and `perMultiprocessor` times
/// the number of multiprocessors.
Value limitBlocks(OpBuilder &builder, Operation *op, Value blocks,
                  int64_t perMultiprocessor);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_LAUNCH_DEVICEFACTS_H
