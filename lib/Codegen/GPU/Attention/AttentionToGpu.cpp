//===- AttentionToGpu.cpp - attention to GPU kernels ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"
#include "DecodeAttention.h"
#include "GpuAttention.h"
#include "RingDecode.h"
#include "TileCopies.h"
#include "WarpgroupAttention.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/IR/KernelConfig.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_CONVERTPOSENCATTENTIONTOGPUPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Returns the memrefs whose rows the loops read or write 16 bytes at a time.
static SmallVector<Value> getRowOperands(const AttentionNestParts &nest) {
  SmallVector<Value> memrefs;
  auto add = [&](Value value) {
    auto tensor = value.getDefiningOp<bufferization::ToTensorOp>();
    // Masks and tables have rows of any width, and are read by element.
    if (tensor && getElementTypeOrSelf(value.getType()).isFloat() &&
        cast<ShapedType>(value.getType()).getRank() > 1 &&
        !llvm::is_contained(memrefs, tensor.getBuffer()))
      memrefs.push_back(tensor.getBuffer());
  };
  scf::ForallOp loops = nest.loops;
  for (Value output : loops.getOutputs())
    add(output);
  loops.getBody()->walk(
      [&](tensor::ExtractSliceOp slice) { add(slice.getSource()); });
  return memrefs;
}

/// Erases loops whose kernel has been launched: results are in the
/// destinations.
static void eraseLoops(scf::ForallOp loops) {
  for (Value result : loops.getResults())
    for (Operation *user : llvm::make_early_inc_range(result.getUsers()))
      if (isa<bufferization::MaterializeInDestinationOp>(user))
        user->erase();
  loops.erase();
}

/// Replaces the loops by a launch of a kernel for aligned operands, and of one
/// for others.
static LogicalResult convert(scf::ForallOp loops, bool hasSmallSharedMemory) {
  std::optional<AttentionNestParts> nest = AttentionNestParts::find(loops);
  if (!nest)
    return loops.emitOpError("has another form than the loops of attention");
  OnlineAttentionOp tile = nest->tile;
  OpBuilder builder(loops);
  if (loops->hasAttr(PosencDialect::kChipAttrName)) {
    std::optional<GpuAttentionTiles> ring = getDecodeTiles(*nest);
    std::optional<WarpgroupTiles> groups =
        chooseWarpgroupTiles(getNestSizes(*nest));
    if ((!ring && !groups) ||
        !canCopyTiles(*nest, ring ? ring->keys : groups->keys))
      return loops.emitOpError("has no kernel with bulk copies of tiles");
    if (ring)
      RingDecode(builder, *nest, *ring).emit();
    else
      WarpgroupAttention(builder, *nest, *groups).emit();
    eraseLoops(loops);
    return success();
  }
  std::optional<GpuAttentionTiles> decode = getDecodeTiles(*nest);
  std::optional<GpuAttentionTiles> tiles =
      decode
          ? decode
          : chooseAttentionTiles(getAttentionSizes(tile), hasSmallSharedMemory);
  if (!tiles)
    return loops.emitOpError("has no tiles that fit in shared memory");
  Location loc = loops.getLoc();
  Value aligned;
  for (Value memref : getRowOperands(*nest)) {
    int64_t bytes =
        getElementTypeOrSelf(memref.getType()).getIntOrFloatBitWidth() / 8;
    Value one = areAligned(builder, loc, memref, 16 / bytes);
    aligned = aligned ? arith::AndIOp::create(builder, loc, aligned, one) : one;
  }
  auto emit = [&](OpBuilder &host, bool isWide) {
    if (decode)
      return DecodeAttention(host, *nest, *decode, isWide).emit();
    AttentionKernel(host, *nest, *tiles, tiles->getThreads(), isWide,
                    isWide ? "_attention" : "_attention_narrow")
        .emit();
  };
  auto branch =
      scf::IfOp::create(builder, loc, aligned, /*withElseRegion=*/true);
  OpBuilder wide = branch.getThenBodyBuilder();
  emit(wide, /*isWide=*/true);
  OpBuilder narrow = branch.getElseBodyBuilder();
  emit(narrow, /*isWide=*/false);
  eraseLoops(loops);
  return success();
}

namespace {
struct ConvertPosencAttentionToGpu final
    : mlir::posenc::impl::ConvertPosencAttentionToGpuPassBase<
          ConvertPosencAttentionToGpu> {
  using Base::Base;

  void runOnOperation() override {
    bool hasSmallSharedMemory = getGpu(getOperation()).getSmallSharedMemory();
    SmallVector<scf::ForallOp> nests;
    getOperation().walk([&](OnlineAttentionOp tile) {
      auto loops = tile->getParentOfType<scf::ForallOp>();
      if (loops && !llvm::is_contained(nests, loops))
        nests.push_back(loops);
    });
    for (scf::ForallOp loops : nests)
      if (failed(convert(loops, hasSmallSharedMemory)))
        return signalPassFailure();
  }
};
} // namespace
