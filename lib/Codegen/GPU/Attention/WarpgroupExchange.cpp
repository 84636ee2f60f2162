//===- WarpgroupExchange.cpp - consumers that divide keys on sm_90a -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If values are the first channels of the keys, the consumers that share rows
// divide the keys of a tile: each computes the scores of its part of the keys,
// and adds its part of the value's channels for all keys. A tile has two
// exchanges through shared memory, with a barrier of these consumers each:
//
// 1. The maxima of the rows in each part of the keys. All consumers take the
//    maximum of these, so that they have the same maxima and factors.
// 2. The weights. The threads of two consumers with the same number have the
//    same rows and columns of fragments, so a thread stores its words as they
//    are, and loads those of all parts.
//
// The first barrier of a tile also ends the reads of the weights of the tile
// before, and the second one those of the maxima. A consumer's sums are those
// of its own keys until the last tile.
//
//===----------------------------------------------------------------------===//

#include "WarpgroupAttention.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

/// Words of a vector that a thread stores at once, and its bytes.
static constexpr int64_t kWords = 4, kVectorBytes = 16;

/// Bytes of the vectors of all threads of a consumer, and the distance of a
/// thread's rows.
static constexpr int64_t kAllBytes = WarpgroupTiles::kThreads * kVectorBytes,
                         kRowDistance = 8;

void WarpgroupAttention::withOwnKeys(function_ref<void()> body) {
  int64_t all = tiles.keys;
  tiles.keys = groups.getScoredKeys();
  body();
  tiles.keys = all;
}

Value WarpgroupAttention::getFirstOwnKey() {
  return b.mul(valuePart, groups.getScoredKeys());
}

/// Returns the consumer's part of the keys of a tile.
AttentionKernel::Tile WarpgroupAttention::getOwnKeys(Tile tile) {
  if (!groups.sharesValues)
    return tile;
  Value first = getFirstOwnKey();
  tile.firstKey = b.add(tile.firstKey, b.toIndex(first));
  tile.relative = b.sub(tile.relative, first);
  if (tile.limit)
    tile.limit = b.sub(tile.limit, first);
  return tile;
}

/// Returns where the thread's vectors of its own part of the keys are. Those of
/// other parts, which threads with its number have stored, are at constant
/// distances from those of the first one.
SharedAddress WarpgroupAttention::getOwnExchanged() {
  return {
      b.add(getExchanged(0).base, b.mul(valuePart, getExchangedPartBytes())),
      getExchanged(0).offset};
}

SharedAddress WarpgroupAttention::getExchanged(int64_t part) {
  Value number = b.rem(thread, WarpgroupTiles::kThreads);
  SharedAddress first{b.add(baseOffset, b.mul(number, kVectorBytes))};
  return first.plus(groups.getTileBytes(sizes) - groups.getMaximumBytes() -
                    groups.getWeightBytes() + part * getExchangedPartBytes());
}

int64_t WarpgroupAttention::getExchangedPartBytes() const {
  return groups.getWeightBytes() / groups.valueParts;
}

/// Returns where the maximum of the thread's first row is in the maxima of a
/// part of the keys. That of its other row follows at a constant distance.
SharedAddress WarpgroupAttention::getExchangedMaximum(Value part) {
  int64_t bytes = sum.getWidth() / 8;
  SharedAddress first{
      b.add(baseOffset, b.add(b.mul(part, groups.getRows() * bytes),
                              b.mul(rows.front().number, bytes)))};
  return first.plus(groups.getTileBytes(sizes) - groups.getMaximumBytes());
}

SmallVector<Value>
WarpgroupAttention::findSharedMaxima(ArrayRef<Value> scores) {
  if (!groups.sharesValues)
    return {};
  int64_t bytes = sum.getWidth() / 8;
  SmallVector<Value> maxima;
  for (int64_t row = 0; row < getNumRows(); ++row)
    maxima.push_back(findMaximum(scores, row));
  // The four lanes of a row have the same maximum.
  Value isFirst = b.compare(arith::CmpIPredicate::eq, laneColumn, b.i32(0));
  b.emitIf(isFirst, [&] {
    SharedAddress own = getExchangedMaximum(valuePart);
    for (auto [i, maximum] : llvm::enumerate(maxima))
      b.store(maximum, own.plus(i * kRowDistance * bytes), bytes);
  });
  syncRows();
  SharedAddress first = getExchangedMaximum(b.i32(0));
  for (auto [i, maximum] : llvm::enumerate(maxima)) {
    Value all;
    for (int64_t part = 0; part < groups.valueParts; ++part) {
      int64_t row = part * groups.getRows() + i * kRowDistance;
      Value other = b.load(first.plus(row * bytes), sum, bytes);
      all = all ? b.max(all, other) : other;
    }
    maximum = all;
  }
  return maxima;
}

/// Stores the packed weights of the consumer's keys, and waits for the others.
void WarpgroupAttention::shareWeights(ArrayRef<Value> words) {
  auto type = VectorType::get({kWords}, b.getI32Type());
  for (int64_t i = 0, e = words.size() / kWords; i < e; ++i)
    b.store(vector::FromElementsOp::create(b, type,
                                           words.slice(i * kWords, kWords)),
            getOwnExchanged().plus(i * kAllBytes), kVectorBytes);
  syncRows();
}

/// Loads the packed weights of 16 keys of the tile, a multiple of 16.
SmallVector<Value> WarpgroupAttention::loadSharedWeights(int64_t key) {
  auto type = VectorType::get({kWords}, b.getI32Type());
  int64_t keys = groups.getScoredKeys();
  SharedAddress from =
      getExchanged(key / keys).plus(key % keys / 16 * kAllBytes);
  Value vector = b.load(from, type, kVectorBytes);
  SmallVector<Value> words;
  for (int64_t word = 0; word < kWords; ++word)
    words.push_back(vector::ExtractOp::create(b, vector, word));
  return words;
}

/// Loads the packed weights of all keys of the tile.
SmallVector<Value> WarpgroupAttention::loadSharedWeights() {
  SmallVector<Value> all;
  for (int64_t key = 0; key < groups.keys; key += 16)
    llvm::append_range(all, loadSharedWeights(key));
  return all;
}

/// Leaves the sums before the first key to one consumer.
void WarpgroupAttention::initOwnSums(State &state) {
  Value isFirst = b.compare(arith::CmpIPredicate::eq, valuePart, b.i32(0));
  for (Value &total : state.sums)
    total = b.select(isFirst, total, b.real(sum, 0.0));
}

/// Replaces the sums of the consumer's keys by those of all keys.
void WarpgroupAttention::addSums(State &state) {
  int64_t bytes = sum.getWidth() / 8;
  syncRows();
  for (auto [i, total] : llvm::enumerate(state.sums))
    b.store(total, getOwnExchanged().plus(i * bytes), bytes);
  syncRows();
  for (auto [i, total] : llvm::enumerate(state.sums)) {
    Value all;
    for (int64_t part = 0; part < groups.valueParts; ++part) {
      Value other = b.load(getExchanged(part).plus(i * bytes), sum, bytes);
      all = all ? b.addf(all, other) : other;
    }
    total = all;
  }
}
