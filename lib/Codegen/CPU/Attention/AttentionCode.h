//===- AttentionCode.h - tiles and buffers of attention ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// FlashAttention on memrefs. A task computes a tile of queries for some query
// heads of one key/value head. The lanes of a vector run along queries, and
// keys are rows, so no maximum or sum is taken across lanes. Each task has
// these buffers:
//
//   queries   rotated, normed, scaled and transposed once. A register tile of
//             queries (`lanes * vectors`) is stored dim by dim.
//   keys,     a tile of rows in f32, rotated and normed. Each element of a key
//   values    is broadcast and multiplied by a vector of queries.
//   scores    of the keys of the tile and one register tile of queries; their
//             exponentials replace them.
//   acc       the accumulators of the output, transposed like the queries.
//
// All buffers are on the stack and have a static size, so the inner loops
// depend on neither element types nor layouts, and need no tail.
//
// The decode kernel (AttentionDecode.h) has tasks of its own: at most 32
// queries for each sequence, which read keys and values in place.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONCODE_H
#define POSENC_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONCODE_H

#include "AttentionTiles.h"
#include "CPU/Rotation/PositionTable.h"
#include "CPU/Rotation/RowRotation.h"
#include "CPU/VectorBuilder.h"
#include "CPU/VectorLoops.h"

#include "posenc/IR/IndexArithmetic.h"
#include "posenc/IR/Posenc.h"
#include "posenc/Transforms/AttentionIndices.h"
#include "posenc/Transforms/MaskBounds.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::posenc {

/// Allocates buffers on the stack. The attention ops of a function use the same
/// buffers one after the other.
class AttentionScratch {
public:
  /// Counts the ops of each function; they must not have been erased yet.
  AttentionScratch(ArrayRef<AttentionOp> operations,
                   const VectorTarget &target);
  /// Returns the limit, in bytes, of the buffers of `op`: ops of other shapes
  /// in the same function have buffers of their own.
  int64_t getMaxBytes(AttentionOp op, const VectorTarget &target,
                      bool isDecode) const;

  /// Makes all buffers free again, for the next op or the next kernel of an op.
  void reset() {
    for (Buffer &buffer : buffers)
      buffer.isUsed = false;
  }
  /// Returns a buffer of f32. It is allocated in the entry block of the
  /// function around `op`, as an alloca in a loop would grow the stack. All
  /// tasks use the same buffer if `isShared`, else each has its own.
  Value allocate(ImplicitLocOpBuilder &builder, Operation *op,
                 ArrayRef<int64_t> shape, bool isShared = false);

private:
  struct Buffer {
    Value memory;
    /// The op that it was allocated for. Smaller buffers of another kernel of
    /// the same op may use a part of it.
    Operation *op;
    bool isUsed, isShared;
  };
  SmallVector<Buffer> buffers;
  /// The number of different shapes of attention ops in each function.
  llvm::SmallDenseMap<Operation *, int64_t> numShapes;
  /// Bytes of the partial results of KV splits in each function.
  llvm::SmallDenseMap<Operation *, int64_t> sharedBytes;
};

/// Buffers of pipelined steps (AttentionAMXSteps.h), f32 or words of bf16, of
/// tiles of 16 x 16:
///   queries       query tile, 32 channels, half of the rows
///   keys          step, 32 channels, half of the keys
///   values        block, 32 columns, step, half of the columns
///   scores[2]     half of the rows, half of the keys
///   weights[2]    step, half of the rows
///   acc           query tile, 32 columns, half of the rows, of the columns
/// (with stacked heads, half of the rows is all of them) and, for rows of a
/// query tile: their offsets (query tile, row), 16 partial sums of rounded
/// weights, and of exact ones where the kernel keeps these (query tile, row,
/// rounded or exact, lane), the sums before the last step (row, rounded or
/// exact, lane), the largest scores (row, lane), and factors (row). `logSums`
/// (row) is null without log-sum-exp outputs.
struct TileStepBuffers {
  Value queries, keys, values, scores[2], weights[2], acc;
  Value offsets, sums, sumsBefore, largest, factors, logSums;
  /// The merged state of KV splits (AttentionAMXSplits.cpp): like `acc`, and
  /// vectors of all rows (query tile, vector, row). Null without splits.
  Value mergedAcc, mergedState;
};

/// The kernel being emitted: its op, target, tile sizes and buffers.
struct AttentionCode {
  AttentionOp op;
  AttentionTiles tiles;
  VectorTarget target;
  int64_t dim, valueDim;
  /// Whether the bf16 dot product (VDPBF16PS) multiplies pairs of elements.
  bool hasBF16Dots;
  /// Values of the score_mod region that depend on the relative position only,
  /// computed once per tile: memref<values x relative positions x f32>, or
  /// null.
  Value relativeValues;
  /// Buffers of the prefill kernel, f32:
  ///   queries (query tile, dim, lane), acc (query tile, value dim, lane),
  ///   scores (key, lane), keys (key, dim), values (key, value dim),
  ///   rowMax and rowSum (query tile, lane), and `rows`, which holds the rows
  ///   of a register tile of queries or results before they are transposed.
  /// `exactSum` is like `rowSum`, of weights before they are rounded, and then
  /// scores are scaled instead of queries; null where it is not needed. With
  /// bf16 dot products (AttentionBF16Dots.h) a word holds two channels of
  /// queries and keys, and two keys of scores and values.
  Value queries, acc, scores, keys, values, rowMax, rowSum, exactSum, rows;
  TileStepBuffers steps;
  /// Buffers of the decode kernel, f32: products (key and query, half the
  /// lanes), scores (key and query), weights (block, key and query),
  /// accumulators (query, value dim), and the state: for each block the vectors
  /// of the running max and of the partial running sums.
  Value decodeProducts, decodeScores, decodeWeights, decodeAcc, decodeState;
  /// The merged accumulators and state of several KV splits, and the results of
  /// the splits of all tasks. Null if there is one split.
  Value mergedAcc, mergedState, partials;

  /// Allocates the buffers of the decode kernel for `range`, or of the prefill
  /// kernel if there is none.
  AttentionCode(ImplicitLocOpBuilder &builder, AttentionOp op,
                const VectorTarget &target, AttentionScratch &scratch,
                std::optional<DecodeRange> range);

  VectorType getVectorType() const;
  /// The number of channels or keys that one multiply-add consumes per lane.
  int64_t getDotWidth() const { return hasBF16Dots ? 2 : 1; }
  /// The number of tasks for the heads of one sequence and tile of queries.
  int64_t getHeadTasks() const;
  int64_t getNumQueryTiles() const {
    return llvm::divideCeil(tiles.queries, tiles.getQueryTile());
  }
  /// The words of a row of keys with AMX: whole tiles, of which the last may
  /// end with zeros.
  int64_t getNumWords() const {
    return llvm::alignTo(dim / getDotWidth(), tiles.lanes);
  }
  /// Columns of the accumulators: `valueDim` rounded up to a multiple of 4.
  int64_t getNumColumns() const { return (valueDim + 3) / 4 * 4; }
  /// Whether a score_mod region or a soft cap changes scores. Otherwise queries
  /// are scaled by log2(e) in advance, and scores are exponents of base 2.
  bool hasOwnScores() const;
  /// The factor of scores as exponents of base 2, or as arguments of score_mod.
  double getExponentScale() const;
  /// Whether a score_mod or mask_mod region or a mask operand applies to single
  /// pairs of query and key.
  bool hasOwnPairs() const;
  /// Whether two queries of a register tile may see different keys.
  bool hasMasks() const;
  /// Whether the mask operand or a region loads elements for single pairs of
  /// query and key.
  bool loadsPairElements() const;
  /// With products of bf16: whether the sums of weights before they are rounded
  /// to bf16 are kept, which sinks and log-sum-exp outputs need.
  bool hasExactSums() const;
};

/// The indices of a task, and those of its sequence.
struct AttentionTask : AttentionSequence {
  Value keyHead, queryHead;
  /// The first token of the task within its sequence, the number of tokens and
  /// of register tiles, and the query position of the first token.
  Value firstToken, numTokens, numQueryTiles, firstPosition;
};

/// The indices of a register tile of queries and a tile of keys.
struct AttentionBlock {
  Value batch, queryHead, queryStart;
  /// The index of the register tile in the buffers.
  Value queryTile;
  /// The first token and its query position, and those of the last lane that
  /// holds a token.
  Value token, position, lastToken, lastPosition;
  /// If heads are stacked: the head of the first row, counted from `queryHead`.
  Value firstHead;
  /// The first key of the tile, and the range of rows in the tile that any
  /// query sees; `firstRow` is rounded down to a multiple of
  /// `tiles.scoreRows`.
  Value firstKey, firstRow, endRow;
  /// i1: whether a value of the tile is infinite or NaN, so that a weight of 0
  /// does not remove it. Null if all queries see all keys.
  Value isUnsafe;
};

/// Returns register tile `number` of query head `head` of a task, without keys,
/// and sets `count` to the number of its tokens.
AttentionBlock emitQueryBlock(ImplicitLocOpBuilder &builder,
                              const AttentionCode &code,
                              const AttentionTask &task, Value head,
                              Value number, Value &count);

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

/// Loads `length` elements of f32, f16, bf16 or i8 as a vector of f32.
Value loadF32(OpBuilder &builder, Location loc, Value memref, ValueRange row,
              Value lane, int64_t length);

//===----------------------------------------------------------------------===//
// Steps of the kernels
//===----------------------------------------------------------------------===//

/// Broadcasts `row` to all lanes as i32, clamped to the rows of a tile.
Value createRowLimit(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                     Value row);

/// Emits the scores of a register tile of queries and a tile of keys, as
/// exponents of base 2, and returns the new running max of its vectors.
/// `isPartial`: some pairs are masked by their positions. `appliesWhere`:
/// mask_mod may mask some pairs.
SmallVector<Value> emitScores(ImplicitLocOpBuilder &builder,
                              const AttentionCode &code,
                              const AttentionBlock &block, bool isPartial,
                              bool appliesWhere);

/// Loads the mask operand's element for each lane. `indices` are its sequence,
/// head, token and key, each one scalar or one value per lane.
Value loadMask(ImplicitLocOpBuilder &builder, const AttentionCode &code,
               ArrayRef<SmallVector<Value>> indices);
/// Applies the score_mod region and, if `appliesWhere`, the mask_mod region to
/// scores, and masks them. `pair` is the sequence, the head and the positions
/// of query and key; `mask` comes from the mask operand and `keep` from
/// positions, null where there is none. A value that is the same for all lanes
/// may be scalar.
Value emitScore(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                ValueRange pair, Value score, Value mask, Value keep,
                bool appliesWhere, ValueRange relativeValues = {});

/// Returns the pairs of the task's heads, its first `numTokens` tokens, and
/// `count` keys from `firstKey` on.
PairTile getPairTile(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                     const AttentionTask &task, Value numTokens, Value firstKey,
                     Value count);

/// Applies regions and masks to the scores of keys from `row` on; `scores` has
/// `tiles.vectors` vectors for each key.
void emitMasks(ImplicitLocOpBuilder &builder, const AttentionCode &code,
               const AttentionBlock &block, Value row, bool isPartial,
               bool appliesWhere, MutableArrayRef<Value> scores);

/// Emits a region for a vector of queries and returns its value. Scalar
/// arguments stay scalar. `relativeValues` replace the values that
/// `getRelativeValues` names; if empty, the region computes them.
Value emitRegion(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                 Region &region, ValueRange arguments,
                 ValueRange relativeValues = {});

/// Returns the f32 values of the score_mod region that are loaded from a tensor
/// by the relative position of query and key, as the bias of T5 is. A tile has
/// few relative positions, so they are computed once for all its pairs.
SmallVector<Value> getRelativeValues(AttentionOp op);
/// The relative positions, key minus query, of a tile of pairs.
struct RelativePositions {
  Value batch, queryHead;
  /// The relative position of the first value, and those of the first and last
  /// pair that exist: others count as the nearest of them.
  Value first, min, max;
  /// The difference from one value to the next: 1 or -1.
  int64_t step;
};
/// Stores these values for all relative positions of a tile.
void emitRelativeValues(ImplicitLocOpBuilder &builder,
                        const AttentionCode &code,
                        const RelativePositions &positions);
/// Stores these values for a register tile of queries and the tile of keys.
void emitRelativeValues(ImplicitLocOpBuilder &builder,
                        const AttentionCode &code, const AttentionBlock &block);
/// Loads these values for as many relative positions as there are lanes, from
/// value number `first` on.
SmallVector<Value> loadRelativeValues(ImplicitLocOpBuilder &builder,
                                      const AttentionCode &code, Value first);
/// Loads these values for the key in `row` and a vector of queries.
SmallVector<Value> loadRelativeValues(ImplicitLocOpBuilder &builder,
                                      const AttentionCode &code, Value row,
                                      int64_t vector);

/// Replaces the scores by their exponentials, adds these to the running sum,
/// and returns the rescaling factor of the accumulators for each vector.
SmallVector<Value> emitSoftmax(ImplicitLocOpBuilder &builder,
                               const AttentionCode &code,
                               const AttentionBlock &block,
                               ValueRange newRowMax);

/// Multiplies the accumulators by `factors` and adds the weighted values.
/// `prefetch` emits prefetches before a register tile of columns, whose number
/// it is given.
void emitValues(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                const AttentionBlock &block, ValueRange factors,
                function_ref<void(Value number)> prefetch);
/// Emits an i1: whether one of the first `count` rows of values has an infinity
/// or a NaN.
Value emitIsUnsafe(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                   Value count);

/// Initializes the accumulators, running max and running sum of all queries.
void emitStart(ImplicitLocOpBuilder &builder, const AttentionCode &code,
               const AttentionTask &task);
/// Writes the output of the first `count` tokens of a register tile.
void emitResults(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                 const AttentionBlock &block, Value count);

/// Copies rows of queries or keys to a buffer: converted to f32, normed,
/// rotated.
class AttentionRows {
public:
  /// Allocates tables of cos and sin for `numSlots` rows.
  AttentionRows(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                bool isKey, int64_t numSlots);

  /// Writes cos and sin of a token's position to table `slot`. `batch` is null
  /// for ragged tensors.
  void preparePosition(ImplicitLocOpBuilder &builder, Value batch, Value token,
                       Value position, Value slot) const;
  /// Like `preparePosition`, for a query token of the task's sequence.
  void prepareQuery(ImplicitLocOpBuilder &builder, const AttentionTask &task,
                    Value token, Value position, Value slot) const;
  /// Writes the row of `tensor` at the indices `at` to row `row` of `to`, with
  /// the rotation in `slot`. The row is multiplied by `scale` unless it is
  /// null.
  void emitRow(ImplicitLocOpBuilder &builder, Value tensor, ValueRange at,
               int64_t dim, Value to, Value row, Value slot,
               Value scale = nullptr) const;
  /// Whether rows are neither normed nor rotated.
  bool isPlain() const { return !norm && !rotation; }

private:
  Value emitSquareSum(ImplicitLocOpBuilder &builder, Value tensor,
                      ValueRange row, int64_t dim, Value sums) const;
  Value emitNormFactor(ImplicitLocOpBuilder &builder, Value tensor,
                       ValueRange at, int64_t dim) const;
  void emitNorm(ImplicitLocOpBuilder &builder, Value tensor, ValueRange at,
                int64_t dim, Value to, Value row) const;

  AttentionOp op;
  VectorTarget target;
  Value positions, norm;
  /// If one norm covers all heads of a token: the tensor's head dimension and
  /// the number of heads.
  unsigned headDim = 0;
  int64_t normedHeads = 1;
  std::optional<RowRotation> rotation;
  std::optional<PositionTable> table;
};

/// Fills `code.queries` with the queries of a task.
void emitQueries(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                 const AttentionRows &rows, const AttentionTask &task);
/// Fills `code.keys` and `code.values` with `count` rows from `first` on.
void emitKeys(ImplicitLocOpBuilder &builder, const AttentionCode &code,
              const AttentionRows &rows, const AttentionTask &task, Value first,
              Value count);

/// Fills the rows [from, end) of a buffer with 0.
void emitZeros(ImplicitLocOpBuilder &builder, const AttentionCode &code,
               Value to, Value from, Value end);

/// Prefetches a share of the next tile of keys and values, those in [first,
/// end): that of register tile number `columns` of a register tile of queries,
/// or of the whole register tile of queries if `columns` is null. A few lines
/// at a time are best, as prefetches wait for the miss buffers of the L1 cache,
/// which the loads of the products need, too.
void prefetchKeys(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                  const AttentionTask &task, Value queryTile, Value columns,
                  Value first, Value end);

/// Prefetches a key and its value.
void prefetchKey(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                 const AttentionTask &task, Value key);

/// Fills `code.keys` only.
void emitKeyRows(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                 const AttentionRows &rows, const AttentionTask &task,
                 Value first, Value count);

/// Emits the number of tasks among which the KV splits of a head are divided:
/// as many as there are splits, or 1 if `partials` is too small for the batch.
Value emitNumSplitTasks(ImplicitLocOpBuilder &builder,
                        const AttentionCode &code);
/// Emits the decode kernel's task number `splitTask` of `numSplitTasks` for the
/// keys in [firstKey, endKey). It writes the output if there is one such task,
/// else the results of its KV splits.
void emitDecode(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                const AttentionRows &queryRows, const AttentionRows &keyRows,
                const AttentionTask &task, Value firstKey, Value endKey,
                Value splitTask, Value numSplitTasks);
/// Emits the merge of the per-split (m, l, acc) into the output.
void emitMerge(ImplicitLocOpBuilder &builder, const AttentionCode &code,
               const AttentionTask &task, Value firstKey, Value endKey);

/// Returns the indices of a key's row in the key and value tensors, without the
/// last index. With a block table the row is in the key's page.
SmallVector<Value> getKeyIndices(ImplicitLocOpBuilder &builder, AttentionOp op,
                                 const AttentionTask &task, Value key);
/// Loads the scale of the key or value with those indices; null without scales.
Value loadScale(ImplicitLocOpBuilder &builder, AttentionOp op, Value scales,
                ValueRange keyIndices);
/// Returns the indices of a token's row in a tensor of heads, without the last
/// index. `batch` is null if the tensor has no batch dimension.
SmallVector<Value> getRowIndices(Value batch, Value head, Value token,
                                 unsigned headDim);
/// Like `getRowIndices`, for queries and outputs; `start` is the first row of
/// the sequence if they are ragged, else null.
SmallVector<Value> getQueryIndices(ImplicitLocOpBuilder &builder,
                                   AttentionOp op, Value batch, Value start,
                                   Value head, Value token);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONCODE_H
