//===- AttentionWork.cpp - FLOPs and KV reads of attention ----------------===//
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
// (query, key) pairs
//===----------------------------------------------------------------------===//

namespace {

/// The work of one head on one sequence of the batch.
struct Sequence {
  int64_t keys = 0;
  /// The first key that any query sees; all keys after it are read.
  int64_t firstKey = 0;
  /// (query, key) pairs that the causal mask and the window keep, and 16 x 16
  /// tiles with at least one such pair.
  int64_t pairs = 0, tiles = 0;
};

} // namespace

static int64_t getNumber(const runtime::Array &array, int64_t index) {
  return array.dtype() == POSENC_I32 ? array.dataAs<int32_t>()[index]
                                     : array.dataAs<int64_t>()[index];
}

static Sequence countPairs(const AttentionInfo &info, int64_t queries,
                           int64_t keys) {
  constexpr int64_t tile = 16;
  Sequence sequence = {keys, keys, 0, 0};
  // First and last key that the queries of the current tile see.
  int64_t low = keys, high = -1;
  // Windows that keep every pair are clamped, so that sums do not overflow.
  int64_t widest = std::max<int64_t>(queries, 0) + keys;
  int64_t left = std::min(info.windowLeft.value_or(widest), widest);
  int64_t right = std::min(info.windowRight.value_or(widest), widest);
  if (info.isCausal)
    right = 0;
  auto finishTile = [&] {
    if (low <= high)
      sequence.tiles += high / tile - low / tile + 1;
    low = keys;
    high = -1;
  };
  for (int64_t query = 0; query < queries; ++query) {
    int64_t position = query + keys - queries;
    int64_t first = std::max<int64_t>(position - left, 0);
    int64_t last = std::min(position + right, keys - 1);
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

static std::vector<Sequence> getSequences(const AttentionInfo &info,
                                          llvm::ArrayRef<Input> inputs) {
  const runtime::Array &query = inputs[info.query].array;
  const runtime::Array &key = inputs[info.key].array;
  // Number of tokens of a ragged sequence.
  auto getSize = [&](size_t list, int64_t sequence) {
    const runtime::Array &cuSeqlens = inputs[info.cuSeqlens[list]].array;
    return getNumber(cuSeqlens, sequence + 1) - getNumber(cuSeqlens, sequence);
  };
  bool areRagged = !info.cuSeqlens.empty();
  int64_t count = areRagged ? inputs[info.cuSeqlens[0]].array.shape()[0] - 1
                            : query.shape()[0];
  std::vector<Sequence> sequences;
  for (int64_t sequence = 0; sequence < count; ++sequence) {
    int64_t queries =
        areRagged ? getSize(0, sequence) : query.shape()[info.queryTokenDim];
    int64_t keys = info.lengths
                       ? getNumber(inputs[*info.lengths].array, sequence)
                   : info.cuSeqlens.size() == 2 ? getSize(1, sequence)
                                                : key.shape()[info.keyTokenDim];
    sequences.push_back(countPairs(info, queries, std::max<int64_t>(keys, 0)));
  }
  return sequences;
}

double mlir::posenc::getFlops(const AttentionInfo &info,
                              llvm::ArrayRef<Input> inputs) {
  const std::vector<int64_t> &query = inputs[info.query].array.shape();
  const std::vector<int64_t> &value = inputs[info.value].array.shape();
  double pairs = 0;
  for (const Sequence &sequence : getSequences(info, inputs))
    pairs += double(sequence.pairs);
  return pairs * double(query[info.queryHeadDim]) *
         (2.0 * double(query.back()) + 2.0 * double(value.back()));
}

double mlir::posenc::getTiles(const AttentionInfo &info,
                              llvm::ArrayRef<Input> inputs) {
  const std::vector<int64_t> &query = inputs[info.query].array.shape();
  double tiles = 0;
  for (const Sequence &sequence : getSequences(info, inputs))
    tiles += double(sequence.tiles);
  return tiles * double(query[info.queryHeadDim]);
}

//===----------------------------------------------------------------------===//
// Reads of keys and values
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

static void addReads(const AttentionInfo &info, const runtime::Array &array,
                     const std::vector<Sequence> &sequences,
                     std::vector<StreamStep> &steps) {
  if (array.numElements() == 0)
    return;
  const std::vector<int64_t> &shape = array.shape();
  int64_t bytes = static_cast<int64_t>(array.sizeInBytes());
  // Contiguous bytes of a token: all heads if tokens come before heads, else
  // one head.
  int64_t token = static_cast<int64_t>(posenc_dtype_size(array.dtype()));
  for (size_t dim = info.keyTokenDim + 1; dim < shape.size(); ++dim)
    token *= shape[dim];
  int64_t size = shape[info.keyTokenDim];
  int64_t visible = 0;
  bool isWhole = true;
  for (const Sequence &sequence : sequences) {
    visible += sequence.keys - sequence.firstKey;
    isWhole &= sequence.keys == size && sequence.firstKey == 0;
  }
  bool isCache = !info.blockTable && info.cuSeqlens.size() < 2;
  if (!isCache || isWhole) {
    int64_t tokens = size * (info.blockTable ? shape[0] : 1);
    int64_t read = isCache ? bytes : bytes / tokens * std::min(visible, tokens);
    return addRead(array, ByteRows::create(array.data(), read), steps);
  }
  int64_t sequenceBytes = bytes / shape[0];
  for (auto [number, sequence] : llvm::enumerate(sequences)) {
    char *data = array.dataAs<char>() + int64_t(number) * sequenceBytes;
    int64_t read = (sequence.keys - sequence.firstKey) * token;
    ByteRows region = ByteRows::create(data + sequence.firstKey * token, read);
    region.stride = size * token;
    region.rows = sequenceBytes / region.stride;
    addRead(array, std::move(region), steps);
  }
}

std::vector<StreamStep>
mlir::posenc::getReadSteps(const AttentionInfo &info,
                           llvm::ArrayRef<Input> inputs) {
  std::vector<Sequence> sequences = getSequences(info, inputs);
  std::vector<StreamStep> steps;
  addReads(info, inputs[info.key].array, sequences, steps);
  addReads(info, inputs[info.value].array, sequences, steps);
  return steps;
}
