//===- GpuAttention.h - attention ops with GPU kernels ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ATTENTION_GPUATTENTION_H
#define POSENC_LIB_CODEGEN_GPU_ATTENTION_GPUATTENTION_H

#include "posenc/IR/Posenc.h"
#include "posenc/TargetInfo/GpuTiles.h"

#include <optional>
#include <string>

namespace mlir::posenc {

/// The architecture of kernels of warpgroups, and the oldest one of the others.
inline constexpr llvm::StringLiteral kWarpgroupsChip = "sm_90a";
inline constexpr llvm::StringLiteral kAttentionChip = "sm_80";
/// Loops over sequences, heads and tiles of queries have a fourth one over
/// KV splits if there are few queries.
inline constexpr int64_t kLoopsWithSplits = 4;

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

/// Emits the maximum number of keys that a sequence of an attention on memrefs
/// can have.
Value getMaxKeys(OpBuilder &builder, AttentionOp op);

/// Returns why NVIDIA GPUs have no kernel for the operation; nullopt if they
/// have.
std::optional<std::string> getGpuUnsupportedReason(AttentionOp op);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ATTENTION_GPUATTENTION_H
