//===- GpuAttention.h - attention ops with GPU kernels ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_GPUATTENTION_H
#define POSENC_LIB_CODEGEN_GPU_GPUATTENTION_H

#include "posenc/IR/Posenc.h"
#include "posenc/TargetInfo/GpuTiles.h"

#include <optional>
#include <string>

namespace mlir::posenc {

/// The architecture of kernels of warpgroups, and the oldest one of the others.
inline constexpr llvm::StringLiteral kWarpgroupsChip = "sm_90a";
inline constexpr llvm::StringLiteral kAttentionChip = "sm_80";
/// A function that host code calls to know whether code for exactly one
/// architecture, ten times its compute capability, runs.
inline constexpr llvm::StringLiteral kRunsOnFunction = "posenc_runs_on";
/// A function that host code calls to know the number of multiprocessors.
inline constexpr llvm::StringLiteral kMultiprocessorsFunction =
    "posenc_multiprocessors";

/// Threads of the blocks of kernels beside those of attention, and the blocks
/// that a multiprocessor, which has 2,048 threads, holds. More work than theirs
/// takes turns: tables and pieces have space for all keys of a cache.
inline constexpr int64_t kHelperThreads = 128, kHelperBlocks = 16;

/// Loops over sequences, heads and tiles of queries have a fourth one over
/// pieces of keys if there are few queries.
inline constexpr int64_t kLoopsWithPieces = 4;

/// Returns the sizes of an `attention` or an `online_attention` that choose its
/// tiles.
template <typename Op> GpuAttentionSizes getAttentionSizes(Op op) {
  auto getDim = [](Value operand) {
    return cast<ShapedType>(operand.getType()).getShape().back();
  };
  Type element = getElementTypeOrSelf(op.getQuery().getType());
  return {getDim(op.getKey()), getDim(op.getValue()),
          element.getIntOrFloatBitWidth() / 8,
          op.getCausal() || op.getWindowLeft() || op.getWindowRight(),
          op.getMask() || !op.getScore().empty()};
}

/// Emits a call of one of these functions, which is declared in the module of
/// `op` if it is not yet.
Value callSupport(OpBuilder &builder, Operation *op, StringRef function,
                  Type result, ValueRange arguments);

/// Emits the smaller one of `blocks`, an index, and `perMultiprocessor` times
/// the number of multiprocessors.
Value limitBlocks(OpBuilder &builder, Operation *op, Value blocks,
                  int64_t perMultiprocessor);

/// Emits the most keys that a sequence of an attention on memrefs can have.
Value getMaxKeys(OpBuilder &builder, AttentionOp op);

/// Returns why NVIDIA GPUs have no kernel for the operation; nullopt if they
/// have.
std::optional<std::string> getGpuUnsupportedReason(AttentionOp op);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_GPUATTENTION_H
