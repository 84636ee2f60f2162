//===- AttentionWork.cpp - what attention computes and reads ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionWork.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstdint>

using namespace mlir::posenc;
namespace runtime = ::posenc::runtime;

//===----------------------------------------------------------------------===//
// Pairs of queries and keys
//===----------------------------------------------------------------------===//

namespace {

/// A sequence: how many keys it has, those that some query sees, and how
/// many pairs and tiles that makes.
struct Sequence {
  int64_t keys = 0, firstKey = 0, pairs = 0, tiles = 0;
};

} // namespace

static int64_t getNumber(const runtime::Array &array, int64_t index) {
  return array.dtype() == POSENC_I32 ? array.dataAs<int32_t>()[index]
                                     : array.dataAs<int64_t>()[index];
}

static Sequence countPairs(const AttentionMeaning &meaning, int64_t queries,
                           int64_t keys) {
  constexpr int64_t tile = 16;
  Sequence sequence = {keys, keys, 0, 0};
  // Of the queries of a tile.
  int64_t low = keys, high = -1;
  // Wider windows leave all.
  int64_t widest = std::max<int64_t>(queries, 0) + keys;
  int64_t left = std::min(meaning.windowLeft.value_or(widest), widest);
  int64_t right = std::min(meaning.windowRight.value_or(widest), widest);
  if (meaning.isCausal)
    right = 0;
  auto finishTile = [&] {
    if (low <= high)
      sequence.tiles += high / tile - low / tile + 1;
    low = keys;
    high = -1;
  };
  for (int64_t query = 0; query < queries; ++query) {
    int64_t place = query + keys - queries;
    int64_t first = std::max<int64_t>(place - left, 0);
    int64_t last = std::min(place + right, keys - 1);
    if (query % tile == 0)
      finishTile();
    if (first > last)
      continue;
    sequence.firstKey = std::min(sequence.firstKey, first);
    sequence.pairs += last - first + 1;
    low = std::min(low, first);
    high = std::max(high, last);
  }
  finishTile();
  return sequence;
}

static std::vector<Sequence> getEntries(const AttentionMeaning &meaning,
                                        llvm::ArrayRef<Input> inputs) {
  const runtime::Array &query = inputs[meaning.query].array;
  const runtime::Array &key = inputs[meaning.key].array;
  // The tokens of a sequence where a list has their starts.
  auto getSize = [&](size_t list, int64_t sequence) {
    const runtime::Array &starts = inputs[meaning.starts[list]].array;
    return getNumber(starts, sequence + 1) - getNumber(starts, sequence);
  };
  bool arePacked = !meaning.starts.empty();
  int64_t count = arePacked ? inputs[meaning.starts[0]].array.shape()[0] - 1
                            : query.shape()[0];
  std::vector<Sequence> sequences;
  for (int64_t sequence = 0; sequence < count; ++sequence) {
    int64_t queries =
        arePacked ? getSize(0, sequence) : query.shape()[meaning.queryTokenDim];
    int64_t keys =
        meaning.lengths ? getNumber(inputs[*meaning.lengths].array, sequence)
        : meaning.starts.size() == 2 ? getSize(1, sequence)
                                     : key.shape()[meaning.keyTokenDim];
    sequences.push_back(
        countPairs(meaning, queries, std::max<int64_t>(keys, 0)));
  }
  return sequences;
}

double mlir::posenc::getFlops(const AttentionMeaning &meaning,
                              llvm::ArrayRef<Input> inputs) {
  const std::vector<int64_t> &query = inputs[meaning.query].array.shape();
  const std::vector<int64_t> &value = inputs[meaning.value].array.shape();
  double pairs = 0;
  for (const Sequence &sequence : getEntries(meaning, inputs))
    pairs += double(sequence.pairs);
  return pairs * double(query[meaning.queryHeadDim]) *
         (2.0 * double(query.back()) + 2.0 * double(value.back()));
}

double mlir::posenc::getTiles(const AttentionMeaning &meaning,
                              llvm::ArrayRef<Input> inputs) {
  const std::vector<int64_t> &query = inputs[meaning.query].array.shape();
  double tiles = 0;
  for (const Sequence &sequence : getEntries(meaning, inputs))
    tiles += double(sequence.tiles);
  return tiles * double(query[meaning.queryHeadDim]);
}

//===----------------------------------------------------------------------===//
// Keys and values
//===----------------------------------------------------------------------===//

static void addRead(const runtime::Array &array, ByteRows region,
                    std::vector<StreamStep> &steps) {
  if (region.bytes() == 0)
    return;
  StreamStep step;
  step.kind = StreamStep::Read;
  step.dtype = array.dtype();
  step.from = std::move(region);
  steps.push_back(std::move(step));
}

static void addReads(const AttentionMeaning &meaning,
                     const runtime::Array &array,
                     const std::vector<Sequence> &sequences,
                     std::vector<StreamStep> &steps) {
  if (array.numElements() == 0)
    return;
  const std::vector<int64_t> &shape = array.shape();
  int64_t bytes = static_cast<int64_t>(array.sizeInBytes());
  // Of a token, in what is contiguous: all heads, or one.
  int64_t token = static_cast<int64_t>(posenc_dtype_size(array.dtype()));
  for (size_t dim = meaning.keyTokenDim + 1; dim < shape.size(); ++dim)
    token *= shape[dim];
  int64_t size = shape[meaning.keyTokenDim];
  int64_t visible = 0;
  bool isWhole = true;
  for (const Sequence &sequence : sequences) {
    visible += sequence.keys - sequence.firstKey;
    isWhole &= sequence.keys == size && sequence.firstKey == 0;
  }
  bool isCache = !meaning.blockTable && meaning.starts.size() < 2;
  if (!isCache || isWhole) {
    int64_t tokens = size * (meaning.blockTable ? shape[0] : 1);
    int64_t read = isCache ? bytes : bytes / tokens * std::min(visible, tokens);
    return addRead(array, ByteRows::create(array.data(), read), steps);
  }
  int64_t entryBytes = bytes / shape[0];
  for (auto [number, sequence] : llvm::enumerate(sequences)) {
    char *data = array.dataAs<char>() + int64_t(number) * entryBytes;
    int64_t read = (sequence.keys - sequence.firstKey) * token;
    ByteRows region = ByteRows::create(data + sequence.firstKey * token, read);
    region.stride = size * token;
    region.rows = entryBytes / region.stride;
    addRead(array, std::move(region), steps);
  }
}

std::vector<StreamStep>
mlir::posenc::getReadSteps(const AttentionMeaning &meaning,
                           llvm::ArrayRef<Input> inputs) {
  std::vector<Sequence> sequences = getEntries(meaning, inputs);
  std::vector<StreamStep> steps;
  addReads(meaning, inputs[meaning.key].array, sequences, steps);
  addReads(meaning, inputs[meaning.value].array, sequences, steps);
  return steps;
}
