//===- AttentionAMXSteps.h - pipelined bf16 attention with AMX --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A prefill kernel that keeps the tile unit busy: the softmax of some scores
// runs while tiles compute the next ones. Scores are queries (A) times keys
// (B), results are weights (A) times values (B), so tiles of results have a row
// for each query and nothing is transposed for a query.
//
//   query tile  32 queries of one head; in the decode kernel, 16 pairs of a
//               token and a head of those that share a key head
//   step        32 keys: a 32 x 32 block of scores
//   block       `blockSteps` steps, whose weights are kept
//
// A task copies its queries, and one tile of keys and values after the other,
// as tiles of 1 KB. For all query tiles of the task, it then goes through the
// steps of these keys. In step i of a block, straight-line code has
//
//   - the scores of the next step, which may belong to the next query tile,
//   - the products of weights and values of the block before, for columns
//     number i of `blockSteps` parts of the columns,
//   - the weights of step i, row by row (an item each): exponentials, their
//     bf16 tiles and their sums.
//
// posenc-interleave-tiles then places the items among the products. Where the
// mask operand or a region loads elements for single pairs, a loop before the
// step applies it to the scores. There are
// two buffers of scores and two of weights, so no two of the three parts touch
// the same memory. Before step 0 of the first block of a tile of keys, the
// block before has weights of 0.
//
// Keys are counted from key 0: a step starts at a multiple of 32. Neither the
// blocks nor the tiles of keys or queries change a bit, because a sum that
// passes through memory is still that of one step after the other, and a step
// without a visible key of the row adds 0 to it.
//
// Log-sum-exp outputs need scores more exact than those of rotated or normed
// rows that are rounded to bf16. These rows are sums of two bf16, and scores of
// three products: that of the rounded rows, and those of one row's remainder
// and the other row, rounded and where it is finite.
//
// BF16Weights.h describes the softmax. An offset that must be raised after a
// step is so rare that the step's items are then computed again, for the rows
// concerned. Results are weighted means of values, so accumulators are divided
// by the sum of the rounded weights. Sinks and log-sum-exp outputs are relative
// to other weights, so they need the sum before the weights are rounded.
//
// A value that is infinite or NaN becomes 0 in its tile, since 0 times NaN is
// NaN in rows that do not see it. What it adds to rows with a weight other than
// 0 is added apart, at the end of its block.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONAMXSTEPS_H
#define POSENC_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONAMXSTEPS_H

#include "AttentionCode.h"
#include "CPU/Products/AMXProducts.h"

namespace mlir::posenc {

/// Keys and queries of a step.
constexpr int64_t kStepKeys = 2 * kTileRows;

/// Keys of a part of a KV split: a multiple of those of a tile of keys in the
/// decode kernel.
constexpr int64_t kChunkKeys = 256;

/// Vectors of the state of a query tile in a KV split: the running max, and the
/// sums of rounded and of exact weights.
constexpr int64_t kTileStateVectors = 3;

/// Tiles of 32 channels or columns.
inline int64_t getNumParts(int64_t dim) {
  return llvm::divideCeil(dim, kStepKeys);
}

/// Allocates `code.steps`, and `code.keys` and `code.rows` for single rows.
void allocateAMXSteps(AttentionCode &code, ImplicitLocOpBuilder &builder,
                      AttentionScratch &scratch);

/// A step of a query tile.
struct AMXStep {
  AttentionBlock block;
  /// Buffers of this step's scores, those of the next one, the weights of this
  /// block, and those of the block before.
  Value scores, nextScores, weights, weightsBefore;
  /// The number of the step in its block; the first key.
  Value slot, firstKey;
  Value numKeys;
  /// i1: whether the mask_mod region is true for all pairs of the query tile
  /// and the tile of keys; null if that is not known.
  Value seesAll;
  /// Whether keys that a row does not see are masked.
  bool isMasked = true;
  /// Whether `scores` holds masked scores in base 2 already, after
  /// `emitPairScores`.
  bool hasPairScores = false;
};

/// Tiles of 32 elements of a row of queries or keys: those of the channels,
/// three times if rows are sums of two bf16.
int64_t getRowParts(AttentionOp op);

//===----------------------------------------------------------------------===//
// Scores (AttentionAMXMasks.cpp)
//===----------------------------------------------------------------------===//

/// The query of a row of a query tile. Rows after the last query have its
/// position and token.
struct RowQuery {
  Value head, token, position;
};
RowQuery getRowQuery(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                     const AttentionBlock &block, Value row);
/// Returns the indices of row `row` of 32 in a buffer whose last dimensions are
/// the half of the rows, some more, and the row: those before `middle`, the
/// half, `middle`, the row in its half, and 0.
SmallVector<Value> getTileRow(ImplicitLocOpBuilder &builder, ValueRange before,
                              Value row, ValueRange middle = {});
/// Emits the scores of a row for both halves of the keys plus `base`, in base
/// 2, and minus infinity where they are masked.
SmallVector<Value> emitExponents(ImplicitLocOpBuilder &builder,
                                 const AttentionCode &code, const AMXStep &step,
                                 Value row, Value base);
/// Replaces the scores of a step by masked scores in base 2, in a loop over its
/// rows. Elements for pairs of query and key are loaded here: as straight-line
/// code among the products they would be thousands of instructions.
void emitPairScores(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                    const AMXStep &step);

//===----------------------------------------------------------------------===//
// Softmax (AttentionAMXSoftmax.cpp)
//===----------------------------------------------------------------------===//

/// Emits the weights and sums of row `row` of 32 from the scores of a step, and
/// returns `bits` OR the bits of the step's sums.
Value emitWeightItem(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                     const AMXStep &step, Value row, Value bits);
/// Sets the offsets of rows without a visible key to those for the scores of a
/// step, which must be the first of the query tile.
void emitFirstOffsets(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                      const AMXStep &step);
/// Raises the offsets of rows for the scores of a step whose weights have been
/// computed, scales their weights, sums and accumulators, and computes the
/// weights of the step again. `isSameTile` (i1): whether the weights of the
/// block before belong to this query tile.
void emitRaise(ImplicitLocOpBuilder &builder, const AttentionCode &code,
               const AMXStep &step, Value isSameTile);

//===----------------------------------------------------------------------===//
// Memory (AttentionAMXPacking.cpp)
//===----------------------------------------------------------------------===//

/// Returns query tile `number` of a task with stacked heads, and sets `count`
/// to the number of its rows.
AttentionBlock emitStackedBlock(ImplicitLocOpBuilder &builder,
                                const AttentionCode &code,
                                const AttentionTask &task, Value number,
                                Value &count);
/// Copies the queries of a task to tiles, and initializes the state of its
/// query tiles.
void emitQueryTiles(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                    const AttentionRows &rows, const AttentionTask &task);
/// Copies `count` keys and values from `first` on to tiles, with zeros up to
/// the end of a block. Returns an i1: whether a value is infinite or NaN.
Value emitKeyTiles(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                   const AttentionRows &rows, const AttentionTask &task,
                   Value first, Value count);
/// Adds the products of the weights of a block and its values that are infinite
/// or NaN, where the weight is not 0. `count` are the keys of the block from
/// `first` on.
void emitUnsafeValues(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                      const AttentionTask &task, Value queryTile, Value weights,
                      Value first, Value count);
/// Returns sum number `number` of the 16 rows from `firstRow` on.
Value emitRowSums(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                  Value queryTile, Value firstRow, int64_t number);
/// Writes the output of the first `count` rows of a query tile, from the merged
/// state if there are KV splits.
void emitTileResults(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                     const AttentionBlock &block, Value count);

//===----------------------------------------------------------------------===//
// Steps (AttentionAMXSteps.cpp)
//===----------------------------------------------------------------------===//

/// Emits a task for the keys in [begin, end), or for those of them that belong
/// to `split` unless it is null. It then writes no output.
void emitAMXStepsTask(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                      const AttentionRows &queryRows,
                      const AttentionRows &keyRows, const AttentionTask &task,
                      Value begin, Value end, Value split = nullptr);

//===----------------------------------------------------------------------===//
// KV splits (AttentionAMXSplits.cpp)
//===----------------------------------------------------------------------===//

/// Emits the number of tasks among which the KV splits of a head are divided:
/// as many as there are splits, or 1 if `partials` is too small for the batch.
Value emitNumTileSplitTasks(ImplicitLocOpBuilder &builder,
                            const AttentionCode &code, Value numTokens,
                            Value numQueryTiles);
/// Emits the decode kernel's task number `splitTask` of `numSplitTasks`; both
/// are null without KV splits. It writes the output if there is one such task,
/// else the states of its splits.
void emitTileDecode(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                    const AttentionRows &queryRows,
                    const AttentionRows &keyRows, const AttentionTask &task,
                    Value begin, Value end, Value splitTask,
                    Value numSplitTasks);
/// Emits the merge of the states of all KV splits into the output.
void emitTileMerge(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                   const AttentionTask &task);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONAMXSTEPS_H
