//===- DecodeAttention.cpp - attention kernels for few queries ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DecodeAttention.h"

#include "GpuAttention.h"

#include "posenc/IR/CreateIndex.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

/// Elements of a fragment in a thread.
static constexpr int64_t kFragmentLanes = 4;

std::optional<GpuAttentionTiles>
mlir::posenc::getDecodeTiles(const AttentionNestParts &nest) {
  scf::ForallOp loops = nest.loops;
  OnlineAttentionOp tile = nest.tile;
  if (loops.getRank() != kLoopsWithPieces)
    return std::nullopt;
  auto shape = cast<ShapedType>(tile.getQuery().getType()).getShape();
  int64_t rows = shape[0] * shape[1];
  GpuAttentionSizes sizes = getAttentionSizes(tile);
  return loops->hasAttr(PosencDialect::kChipAttrName)
             ? chooseRingTiles(sizes, rows)
             : chooseDecodeTiles(sizes, rows);
}

void DecodeAttention::syncTiles() { NVVM::SyncWarpOp::create(b, b.i32(-1)); }

/// Returns the warp's tiles. The first tile of all is at a multiple of a tile.
AttentionKernel::TileRange DecodeAttention::getTileRange() {
  TileRange range = AttentionKernel::getTileRange();
  int64_t keys = tiles.keys, parts = tiles.keyParts;
  Value part = b.createOrFold<arith::RemUIOp>(
      b.createOrFold<arith::DivUIOp>(range.begin,
                                     createIndex(b, b.getLoc(), keys)),
      createIndex(b, b.getLoc(), parts));
  Value ahead = b.rem(b.add(b.sub(warp, b.toI32(part)), parts), parts);
  range.begin = b.add(range.begin, b.toIndex(b.mul(ahead, keys)));
  range.step = createIndex(b, b.getLoc(), keys * parts);
  range.firstStage = b.mul(warp, tiles.stages);
  range.sumOfStages = b.add(b.mul(range.firstStage, 2), 1);
  return range;
}

//===----------------------------------------------------------------------===//
// States of warps
//===----------------------------------------------------------------------===//

/// Emits the state of no keys.
AttentionKernel::State DecodeAttention::createNeutralState() {
  State state;
  ThreadSoftmax softmax = getSoftmax();
  SoftmaxState empty = emitEmptyState(softmax);
  state.accumulators.assign(getNumAccumulators(), b.real(sum, 0.0));
  state.maxima.assign(getNumRows(), empty.max);
  state.sums.assign(getNumRows(), empty.sum);
  return state;
}

/// Fragments of a warp's state: those of the channels of all parts.
int64_t DecodeAttention::getNumFragments() const {
  GpuAttentionTiles merged = tiles.getMerged();
  return tiles.rowTiles * merged.valueParts * merged.getValueChannels(sizes) /
         8;
}

/// Returns where the lane's part of a fragment of a warp is.
SharedAddress DecodeAttention::getFragment(int64_t warp, Value number) {
  int64_t bytes = kFragmentLanes * sum.getWidth() / 8;
  int64_t fragmentBytes = GpuAttentionTiles::kWarp * bytes;
  SharedAddress first{b.add(b.mul(number, fragmentBytes), b.mul(lane, bytes))};
  return first.plus(warp * getNumFragments() * fragmentBytes);
}

/// Returns where the lane's maxima and sums of a warp are.
SharedAddress DecodeAttention::getSums(Value warp) {
  int64_t bytes = sum.getWidth() / 8, lanes = GpuAttentionTiles::kWarp;
  SharedAddress first{
      b.add(b.mul(warp, 2 * getNumRows() * lanes * bytes), b.mul(lane, bytes))};
  return first.plus(tiles.warps * getNumFragments() * lanes * kFragmentLanes *
                    bytes);
}

/// Stores the warp's state in place of the tiles of all warps.
void DecodeAttention::storeState(const State &state) {
  int64_t bytes = sum.getWidth() / 8,
          rowBytes = GpuAttentionTiles::kWarp * bytes;
  int64_t own = getNumChannels() / 2,
          padded = getNumFragments() / tiles.rowTiles;
  SmallVector<Value> zeros(kFragmentLanes, b.real(sum, 0.0));
  b.barrier();
  for (int64_t i = 0; i < tiles.rowTiles; ++i)
    for (int64_t f = 0; f < padded; ++f) {
      ValueRange parts = zeros;
      if (f < own)
        parts = ValueRange(state.accumulators)
                    .slice((i * own + f) * kFragmentLanes, kFragmentLanes);
      Value fragment = vector::FromElementsOp::create(
          b, VectorType::get({kFragmentLanes}, sum), parts);
      Value number = b.add(b.mul(warp, getNumFragments()), i * padded + f);
      b.store(fragment, getFragment(0, number), 16);
    }
  SharedAddress sums = getSums(warp);
  for (int64_t row = 0; row < getNumRows(); ++row) {
    b.store(state.maxima[row], sums.plus(2 * row * rowBytes), bytes);
    b.store(state.sums[row], sums.plus((2 * row + 1) * rowBytes), bytes);
  }
  b.barrier();
}

/// Emits the sum of the state before the first key and the states of all warps,
/// for the channels of the warp's part.
AttentionKernel::State DecodeAttention::mergeStates() {
  State init = createState(), merged;
  Value zero = b.real(sum, 0.0);
  ThreadSoftmax softmax = getSoftmax();
  int64_t bytes = sum.getWidth() / 8,
          rowBytes = GpuAttentionTiles::kWarp * bytes;
  // The factors of the warps' states, by row.
  SmallVector<SmallVector<Value>> factors(getNumRows());
  for (int64_t row = 0; row < getNumRows(); ++row) {
    SmallVector<Value> maxima{init.maxima[row]}, sums{init.sums[row]};
    for (int64_t part = 0; part < tiles.warps; ++part) {
      SharedAddress from = getSums(b.i32(part));
      maxima.push_back(b.load(from.plus(2 * row * rowBytes), sum, bytes));
      sums.push_back(b.load(from.plus((2 * row + 1) * rowBytes), sum, bytes));
    }
    SoftmaxMerge merge = emitMerge(softmax, maxima);
    merged.maxima.push_back(merge.max);
    merged.sums.push_back(emitMergedSum(softmax, sums, merge.factors));
    factors[row] = llvm::to_vector(llvm::drop_begin(merge.factors));
  }
  int64_t padded = getNumFragments() / tiles.rowTiles,
          own = padded / tiles.warps;
  for (int64_t i = 0; i < tiles.rowTiles; ++i)
    for (int64_t f = 0; f < own; ++f) {
      Value number = b.add(b.mul(warp, own), i * padded + f);
      SmallVector<Value> sums(kFragmentLanes, zero);
      for (int64_t part = 0; part < tiles.warps; ++part) {
        Value fragment = b.load(getFragment(part, number),
                                VectorType::get({kFragmentLanes}, sum), 16);
        // The first two elements are of the first row, the others of the one
        // that is 8 rows below.
        for (int64_t at = 0;
             at < (isHalfTile ? kFragmentLanes / 2 : kFragmentLanes); ++at)
          sums[at] = b.fma(vector::ExtractOp::create(b, fragment, at),
                           factors[2 * i + at / 2][part], sums[at]);
      }
      llvm::append_range(merged.accumulators, sums);
    }
  return merged;
}

void DecodeAttention::startBlock() {
  warp = b.div(thread, GpuAttentionTiles::kWarp);
}

void DecodeAttention::emitBlock() {
  findRows(b.i32(0), b.i32(0));
  copier = lane;
  numCopiers = GpuAttentionTiles::kWarp;
  startTiles();
  loadQueries(thread, tiles.getThreads(), b.i32(0), tiles.getRows());
  b.barrier();
  storeState(emitTiles(createNeutralState()));
  State state = mergeStates();
  tiles = tiles.getMerged();
  valuePart = warp;
  storeResults(state);
}
