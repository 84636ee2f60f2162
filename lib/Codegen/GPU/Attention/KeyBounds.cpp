//===- KeyBounds.cpp - bounds of elements by tile of keys -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KeyBounds.h"

#include "GPU/Launch/DeviceFacts.h"
#include "GPU/Launch/GpuKernel.h"
#include "GPU/Threads/TileReader.h"
#include "GpuAttention.h"

#include "posenc/IR/CreateIndex.h"
#include "posenc/Transforms/AttentionIndices.h"
#include "posenc/Transforms/MaskBounds.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::posenc;

static constexpr int64_t kMinTile = 8;

static Value getNumSequences(OpBuilder &host, AttentionOp op) {
  return host.createOrFold<memref::DimOp>(op.getLoc(), op.getQuery(), 0);
}

namespace {
/// Loops of the host over sequences and tiles, whose scalars are cloned into
/// the kernel.
struct BoundsLoops {
  BoundsLoops(OpBuilder &host, AttentionOp op, int64_t keys);

  scf::ForallOp loops;
  /// The bounds of the elements of the tile's keys, of which it has some.
  SmallVector<MaskBounds::Elements> elements;
};
} // namespace

BoundsLoops::BoundsLoops(OpBuilder &host, AttentionOp op, int64_t keys) {
  Location loc = op.getLoc();
  Value numQueries = host.createOrFold<memref::DimOp>(loc, op.getQuery(),
                                                      op.getQueryTokenDim()),
        numKeys = host.createOrFold<memref::DimOp>(loc, op.getKey(),
                                                   op.getKeyTokenDim());
  SmallVector<OpFoldResult> bounds(2, host.getIndexAttr(1));
  loops = scf::ForallOp::create(host, loc, bounds, ValueRange(),
                                /*mapping=*/std::nullopt);
  ImplicitLocOpBuilder b(loc, host);
  b.setInsertionPoint(loops.getTerminator());
  AttentionSequence sequence = emitBoundedSequence(
      b, op, loops.getInductionVars()[0], numQueries, numKeys);
  Value size = createIndex(b, loc, keys);
  Value first = arith::MulIOp::create(b, loops.getInductionVars()[1], size);
  Value end = arith::MinSIOp::create(b, arith::AddIOp::create(b, first, size),
                                     sequence.numKeys);
  Value last = arith::SubIOp::create(b, end, createIndex(b, loc, 1));
  elements =
      MaskBounds(op.getWhere()).emitElements(b, sequence.batch, first, last);
}

SmallVector<Value> mlir::posenc::allocateKeyBounds(OpBuilder &host,
                                                   AttentionOp op) {
  // The tiles of a cache or of a list of tokens are more than those with keys.
  if (op.getWhere().empty() || op.hasRaggedQueries() || op.getBlockTable() ||
      op.getLengths())
    return {};
  Location loc = op.getLoc();
  BoundsLoops loops(host, op, kMinTile);
  SmallVector<Value> tables;
  if (!loops.elements.empty()) {
    tables.resize(op.getWhere().front().getOperations().size());
    Value tiles = host.createOrFold<arith::CeilDivUIOp>(
        loc, getMaxKeys(host, op), createIndex(host, loc, kMinTile));
    SmallVector<Value> sizes{getNumSequences(host, op), tiles};
    for (const MaskBounds::Elements &element : loops.elements) {
      Type type = element.low.getType();
      // A table of i1 has bytes.
      if (type.isInteger(1))
        type = host.getI8Type();
      tables[element.number] = memref::AllocOp::create(
          host, loc,
          MemRefType::get({ShapedType::kDynamic, ShapedType::kDynamic, 2},
                          type),
          sizes);
    }
  }
  loops.loops.erase();
  return tables;
}

void mlir::posenc::emitKeyBounds(OpBuilder &host, AttentionOp op,
                                 ArrayRef<Value> tables, int64_t keys) {
  assert(keys >= kMinTile && "tables have space for larger tiles");
  Location loc = op.getLoc();
  constexpr int64_t kWarp = GpuAttentionTiles::kWarp;
  GpuKernel kernel(op, "_key_bounds", kHelperThreads);
  ThreadBuilder b(kernel.getFunction());
  TileReader reader(host, kernel, b, /*isWide=*/false);
  BoundsLoops bounds(host, op, keys);
  reader.captureOperands(bounds.loops);
  SmallVector<GpuKernel::Tensor> results;
  for (const MaskBounds::Elements &element : bounds.elements)
    results.push_back(kernel.addTensor(host, tables[element.number]));
  Value tiles = host.createOrFold<arith::CeilDivUIOp>(
      loc, getMaxKeys(host, op), createIndex(host, loc, keys));
  Value count =
      host.createOrFold<arith::MulIOp>(loc, getNumSequences(host, op), tiles);
  Value tilesOfSequence = kernel.addIndex(host, tiles),
        end = kernel.addIndex(host, count);
  Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  Value lane = b.rem(thread, kWarp);
  Value warps = createIndex(b, loc, kHelperThreads / kWarp);
  Value first =
      b.add(b.mul(gpu::BlockIdOp::create(b, gpu::Dimension::x), warps),
            b.div(thread, kWarp));
  Value step = b.mul(gpu::GridDimOp::create(b, gpu::Dimension::x), warps);
  Value isFirstLane =
      b.compare(arith::CmpIPredicate::eq, lane, createIndex(b, loc, 0));
  reader.setLane(lane);
  b.emitLoop(
      first, end, step, {},
      [&](Value number, ValueRange) -> SmallVector<Value> {
        auto [batch, tile] = divide32(b, loc, number, tilesOfSequence);
        SmallVector<Value> at{batch, tile, Value()};
        reader.withScope([&] {
          reader.getScalars().map(bounds.loops.getInductionVars(),
                                  ValueRange{at[0], at[1]});
          reader.cloneScalars(*bounds.loops.getBody());
          b.emitIf(isFirstLane, [&] {
            for (auto [element, result] :
                 llvm::zip_equal(bounds.elements, results))
              for (auto [i, bound] :
                   llvm::enumerate(ArrayRef{element.low, element.high})) {
                at[2] = createIndex(b, loc, i);
                Value value = reader.get(bound);
                if (value.getType().isInteger(1))
                  value = arith::ExtUIOp::create(b, b.getI8Type(), value);
                memref::StoreOp::create(b, value, result.memref,
                                        getOffset(b, loc, at, result.strides));
              }
          });
        });
        return {};
      });
  kernel.getBody().setInsertionPointToEnd(
      &kernel.getFunction().getBody().front());
  Value blocks = host.createOrFold<arith::CeilDivUIOp>(
      loc, count, createIndex(host, loc, kHelperThreads / kWarp));
  kernel.launch(host, limitBlocks(host, op, blocks, kHelperBlocks));
  bounds.loops.erase();
}
