//===- AttentionTiles.h - sizes of the tiles of attention -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONTILES_H
#define POSENC_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONTILES_H

#include "CPU/VectorTarget.h"

#include "posenc/IR/Posenc.h"

#include "llvm/Support/MathExtras.h"

#include <optional>

namespace mlir::posenc {

/// Bytes of one key head's tile of keys in the decode kernel, and of its tile
/// of values: a page each, so both fit in the L1 cache.
constexpr int64_t kPageBytes = 4096;

/// The number of partial sums of a dot product or of a row's squares. Results
/// depend on it, so it is the same for all vector widths.
constexpr int64_t kSumLanes = 16;

/// Rounds a size up to a multiple.
inline int64_t alignTo(int64_t size, int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

/// Rounds a row up to an odd number of cache lines, so that a column of rows
/// does not fall into one cache set.
inline int64_t getRowSize(int64_t size) {
  constexpr int64_t line = 16;
  return ((size + line - 1) / line | 1) * line;
}

/// Range of query counts per sequence that one decode kernel handles. It
/// streams K and V once per key/value head.
struct DecodeRange {
  int64_t min, max;
};

/// Sizes of the tiles of one kernel.
struct AttentionTiles {
  /// Lanes of f32 in a hardware vector, and vectors in a register tile of
  /// queries.
  int64_t lanes, vectors;
  /// Register blocking: the keys whose scores, and the columns of values whose
  /// accumulators, are in registers at the same time.
  int64_t scoreRows, valueColumns;
  /// If AMX tiles compute the products, in pipelined steps of 32 keys
  /// (AttentionAMXSteps.h): the steps whose weights are multiplied by values
  /// at once; else 0.
  int64_t blockSteps = 0;
  /// Keys of a tile, and queries of all heads of a task.
  int64_t keys = 0, queries;
  /// Query heads and key heads of a task.
  int64_t heads, keyHeads = 1;
  /// The minimum number of tokens of a task of the decode kernel; 0 in the
  /// prefill kernel.
  int64_t minTokens = 0;
  /// The largest number of KV splits of a head (Flash-Decoding). They give
  /// threads work where there are few heads and sequences.
  int64_t maxSplits = 1;

  /// Chooses tiles whose buffers take at most `bytes`: of the decode kernel for
  /// `range`, or of the prefill kernel if there is none.
  static AttentionTiles get(AttentionOp op, const VectorTarget &target,
                            int64_t bytes, std::optional<DecodeRange> range);

  /// The queries of a register tile.
  int64_t getQueryTile() const { return lanes * vectors; }
  /// The largest number of tokens of a task.
  int64_t getTokens() const { return queries / heads; }
  int64_t getQueryTilesPerHead() const { return getTokens() / getQueryTile(); }
  bool hasAMXSteps() const { return blockSteps > 0; }
  /// Whether the rows of a query tile are queries of all heads of a task, token
  /// by token: the decode kernel with AMX.
  bool areHeadsStacked() const { return hasAMXSteps() && isDecode(); }

  /// The number of query positions of which the prefill and decode kernels of
  /// `op` have tables of cos and sin at the same time.
  int64_t getQuerySlots(AttentionOp op, const VectorTarget &target) const;

  bool isDecode() const { return minTokens > 0; }
  // The following functions describe the decode kernel. A "query" is a pair of
  // a query head and a token. A vector of scores has `getQueryLanes()` queries
  // for each of several keys; the queries of a key head form blocks of
  // `getQueryLanes()` queries.

  /// Whether the number of tokens is a constant.
  bool hasKnownTokens() const { return minTokens == getTokens(); }
  int64_t getHeadsPerKeyHead() const { return heads / keyHeads; }
  /// The largest number of queries of a key head.
  int64_t getQueriesPerHead() const { return queries / keyHeads; }
  int64_t getQueryLanes() const { return getQueryLanes(lanes); }
  /// The number n of partial sums of weights of a query. Each sums every n-th
  /// key. Results depend on n.
  int64_t getWeightSums() const { return kSumLanes / getQueryLanes(kSumLanes); }
  /// The number of vectors that hold the partial sums of weights of a block.
  int64_t getSumVectors() const {
    return getWeightSums() / (lanes / getQueryLanes());
  }
  int64_t getBlocksPerHead() const {
    return llvm::divideCeil(getQueriesPerHead(), getQueryLanes());
  }
  int64_t getBlocks() const { return keyHeads * getBlocksPerHead(); }
  /// Vectors of the running max and of the partial running sums of a block.
  int64_t getStateVectors() const { return 1 + getSumVectors(); }
  /// Elements (f32) of the accumulators, running max and running sum of a task.
  int64_t getStateSize(int64_t valueDim) const {
    return getBlocks() *
           (getQueryLanes() * valueDim + getStateVectors() * lanes);
  }

private:
  /// The number of queries per key in a vector of `count` lanes.
  int64_t getQueryLanes(int64_t count) const {
    int64_t max = getTokens() == 1 ? count : count / 2;
    return std::min<int64_t>(
        llvm::PowerOf2Ceil(getHeadsPerKeyHead() * minTokens), max);
  }
  /// The maximum of `getStateSize` over all vector widths.
  int64_t getMaxStateSize(int64_t valueDim) const;
  /// Chooses `blockSteps`, keys, heads and queries of pipelined steps.
  void setAMXSteps(AttentionOp op, const VectorTarget &target,
                   int64_t groupSize, int64_t bytes);
  /// The same for the decode kernel.
  void setStackedAMXSteps(AttentionOp op, DecodeRange range, int64_t groupSize,
                          int64_t bytes);
  /// Chooses heads, queries and, unless it is set, keys of the prefill kernel,
  /// so that its buffers take at most `bytes`. `groupSize` is the number of
  /// query heads per key head.
  void setPrefill(AttentionOp op, const VectorTarget &target, int64_t groupSize,
                  int64_t bytes);
  /// Sets heads, queries and keys of the decode kernel.
  void setDecode(AttentionOp op, DecodeRange range, int64_t groupSize,
                 int64_t dim);
  /// Sets `maxSplits`.
  void setSplits(AttentionOp op);
  /// Bytes of a task's own buffers in the decode kernel, without `partials`.
  int64_t getDecodeBytes(AttentionOp op) const;
  /// Shrinks the tile of the decode kernel until its buffers fit in `bytes`,
  /// down to the minimum tile.
  void fitDecode(AttentionOp op, int64_t groupSize, int64_t bytes);
};

/// Returns the ranges of query counts for which a decode kernel is emitted, in
/// ascending order; empty if only the prefill kernel is.
SmallVector<DecodeRange> getDecodeRanges(AttentionOp op,
                                         const VectorTarget &target);
/// Whether a decode kernel handles every query count of `op`.
bool isAlwaysDecode(AttentionOp op, const VectorTarget &target);
/// Whether the bf16 dot product (VDPBF16PS) is used in the prefill kernel.
bool usesBF16Dots(AttentionOp op, const VectorTarget &target);
/// Whether AMX tiles compute the prefill kernel's products, in pipelined steps
/// (AttentionAMXSteps.h).
bool usesAMXSteps(AttentionOp op, const VectorTarget &target);
/// Whether rows of queries and keys have remainders with AMX: they are changed
/// on load, and rounding the changed rows would change a log-sum-exp output.
bool keepsRemainders(AttentionOp op);
/// Whether AMX tiles compute the products of a decode kernel, with the rows of
/// all query heads of a key head stacked.
bool usesStackedAMXSteps(AttentionOp op, const VectorTarget &target,
                         DecodeRange range);
/// Returns the limit, in bytes, of the partial results of KV splits, a buffer
/// that all tasks of the decode kernel share.
int64_t getSharedBytes(AttentionOp op);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONTILES_H
