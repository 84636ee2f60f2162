//===- AttentionCode.h - the parts of attention's code ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention on memrefs, one task for some query heads of a key head and a tile
// of queries. The lanes of vectors run along queries and the keys are rows: no
// maximum or sum goes across lanes.
//
//   queries   rotated, normed, scaled and transposed once: group by group of
//             the queries that stand in a row of registers, dim by dim;
//   keys,     some at a time, as rows in f32, also rotated and normed; keys are
//   values    multiplied as scalars that are broadcast;
//   scores    of those keys and a group, then their exponentials;
//   sums      of weighted values, transposed like queries.
//
// All of it is on the stack and of static size, so that the inner loops know
// nothing of types, layouts and ends of tensors.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_ATTENTIONCODE_H
#define POSENC_LIB_CODEGEN_CPU_ATTENTIONCODE_H

#include "PositionTable.h"
#include "RowRotation.h"
#include "VectorLoops.h"
#include "VectorTarget.h"

#include "posenc/IR/Posenc.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::posenc {

/// What a tile of the keys of few tokens takes.
constexpr int64_t kPageBytes = 4096;

/// Partial sums of a dot product or of a row's squares. The number decides the
/// bits of the result, so it does not depend on the width of the vectors.
constexpr int64_t kSumLanes = 16;

/// From how many tokens on, up to how many, keys are read once for all of them.
struct FewTokens {
  int64_t least, most;
};

/// How much is computed at a time.
struct AttentionTiles {
  /// Of a hardware vector, in f32, and how many vectors are a group of queries.
  int64_t lanes, vectors;
  /// Keys whose scores, and columns of values whose sums are in registers.
  int64_t scoreRows, valueColumns;
  /// Keys, and queries of all heads of a task.
  int64_t keys = 0, queries;
  /// Query heads of a task, and key heads.
  int64_t heads, keyHeads = 1;
  /// The fewest tokens of a task, where they are few; else 0.
  int64_t leastTokens = 0;
  /// The most parts of the keys, for few tokens: what threads have to do where
  /// heads and sequences are few.
  int64_t mostParts = 1;

  /// For memory of so many bytes, and any number of tokens or few.
  static AttentionTiles get(AttentionOp op, const VectorTarget &target,
                            int64_t bytes, std::optional<FewTokens> few);

  int64_t getGroup() const { return lanes * vectors; }
  /// Tokens of a task, or the most that it may have.
  int64_t getTokens() const { return queries / heads; }
  int64_t getGroupsPerHead() const { return getTokens() / getGroup(); }

  bool areFew() const { return leastTokens > 0; }
  /// For few tokens: whether their number is known, query heads and queries of
  /// a key head, how many lanes of a vector of scores are queries of one key,
  /// and how often it takes them for a key head and for all. Unless the number
  /// is known, there are as many queries, or fewer.
  bool hasKnownTokens() const { return leastTokens == getTokens(); }
  int64_t getHeadsPerKeyHead() const { return heads / keyHeads; }
  int64_t getQueriesPerHead() const { return queries / keyHeads; }
  int64_t getQueryLanes() const { return getQueryLanes(lanes); }
  /// How many partial sums of weights each query has: those of every n-th key.
  /// The number decides the bits of the result.
  int64_t getWeightSums() const { return kSumLanes / getQueryLanes(kSumLanes); }
  /// In how many vectors the partial sums of weights are.
  int64_t getSumVectors() const {
    return getWeightSums() / (lanes / getQueryLanes());
  }
  int64_t getBlocksPerHead() const {
    return llvm::divideCeil(getQueriesPerHead(), getQueryLanes());
  }
  int64_t getBlocks() const { return keyHeads * getBlocksPerHead(); }
  /// Vectors of the maximum and of the partial sums of weights of a block.
  int64_t getStateVectors() const { return 1 + getSumVectors(); }
  /// Floats of the sums, maxima and totals of a task of few tokens.
  int64_t getStateSize(int64_t valueDim) const {
    return getBlocks() *
           (getQueryLanes() * valueDim + getStateVectors() * lanes);
  }

private:
  /// How many lanes of a vector with `count` lanes are queries of one key.
  int64_t getQueryLanes(int64_t count) const {
    int64_t most = getTokens() == 1 ? count : count / 2;
    return std::min<int64_t>(
        llvm::PowerOf2Ceil(getHeadsPerKeyHead() * leastTokens), most);
  }
  /// The most that getStateSize returns for any width of vectors.
  int64_t getMostStateSize(int64_t valueDim) const;
  /// Chooses heads, queries and, unless they are chosen, keys of a tile for
  /// many tokens, so that it takes at most `bytes`.
  void setPrefill(AttentionOp op, const VectorTarget &target, int64_t ratio,
                  int64_t bytes);
  /// Sets what differs for few tokens.
  void setDecode(AttentionOp op, FewTokens few, int64_t ratio, int64_t dim);
  void setParts(AttentionOp op);
  /// What few tokens take, but for what all tasks share.
  int64_t getDecodeBytes(AttentionOp op) const;
  /// Does less at a time until it fits, or until there is no less.
  void fitDecode(AttentionOp op, int64_t ratio, int64_t bytes);
};

/// Memory on the stack of functions, which the attentions of one take turns to
/// use.
class AttentionScratch {
public:
  /// Of these, before any is erased.
  AttentionScratch(ArrayRef<AttentionOp> operations,
                   const VectorTarget &target);
  /// What one of them may take: those of other shapes in its function have
  /// memory of their own.
  int64_t getMostBytes(AttentionOp op, const VectorTarget &target,
                       bool areFew) const;

  /// Starts anew for the next attention, or other numbers of tokens of it.
  void reset() {
    for (Sequence &sequence : sequences)
      sequence.isUsed = false;
  }
  /// Memory of f32 in the entry block of the function around `op`: a loop must
  /// not grow the stack. What is shared is the same for all tasks.
  Value allocate(ImplicitLocOpBuilder &builder, Operation *op,
                 ArrayRef<int64_t> shape, bool isShared = false);

private:
  struct Sequence {
    Value memory;
    /// What it is for; what else is for the same may use a part of it.
    Operation *op;
    bool isUsed, isShared;
  };
  SmallVector<Sequence> sequences;
  /// How many shapes of attention a function has.
  llvm::SmallDenseMap<Operation *, int64_t> numShapes;
  /// What parts of the keys share in a function.
  llvm::SmallDenseMap<Operation *, int64_t> sharedBytes;
};

/// What all parts of the code of one attention know.
struct AttentionCode {
  AttentionOp op;
  AttentionTiles tiles;
  VectorTarget target;
  int64_t dim, valueDim;
  /// Whether products are those of pairs of bf16.
  bool hasDots;

  /// What is computed for each distance of query and key: (value, distance), or
  /// null.
  Value distances;
  /// Memory on the stack, f32: (group, dim, lane), (group, value dim, lane),
  /// (key, lane), (key, dim), (key, value dim), (group, lane) twice, and rows
  /// of a group of queries or results.
  /// Where there are pairs of bf16 (AttentionDots.h), a word is one of two
  /// channels of queries and keys, and of two keys of scores and values.
  Value queries, sums, scores, keys, values, maxima, totals, rows;
  /// For few tokens: (key and query), products with half as many lanes as there
  /// are; (key and query), and that for each block of queries, (query, value
  /// dim), and for each block vectors of the maxima and totals.
  Value decodeProducts, decodeScores, decodeWeights, decodeSums, decodeState;
  /// Sums and the like of several parts of the keys, and memory for those of
  /// all tasks, if there is more than one part.
  Value mergedSums, mergedState, partials;

  /// For any number of tokens, or few.
  AttentionCode(ImplicitLocOpBuilder &builder, AttentionOp op,
                const VectorTarget &target, AttentionScratch &scratch,
                std::optional<FewTokens> few);

  VectorType getVectorType() const;
  /// Of so many channels or keys, what a product takes at once.
  int64_t getPair() const { return hasDots ? 2 : 1; }
  /// Tasks for the heads of a sequence.
  int64_t getHeadTasks() const;
  int64_t getNumGroups() const { return tiles.queries / tiles.getGroup(); }
  /// Columns of values whose sums are computed, with some that are none.
  int64_t getNumColumns() const { return (valueDim + 3) / 4 * 4; }
  /// Whether scores are changed, so that they must be those of the definition
  /// and not yet logarithms to base 2.
  bool hasOwnScores() const;
  /// Whether it depends on more than places which pairs take part, and how.
  bool hasOwnPairs() const;
  /// Whether a query may not see a key that others of its block see.
  bool hasMasks() const;
};

/// The values of a task.
struct AttentionTask {
  Value batch, keyHead, queryHead;
  /// The first token, how many there are and groups of them, and the place of
  /// the first.
  Value firstToken, numTokens, numGroups, firstPlace;
  /// How many tokens the whole sequence has.
  Value sequenceTokens;
  /// All valid keys of the sequence.
  Value numKeys;
  /// Where the sequence's tokens begin among packed queries, and its keys among
  /// packed keys; null where these have a batch dimension.
  Value queryStart, keyStart;
};

/// The values of a group of queries and the keys that are packed.
struct AttentionBlock {
  Value batch, queryHead, queryStart;
  /// The number of the group on the stack.
  Value group;
  /// The first token and its place, and those of the last lane that is one.
  Value token, place, lastToken, lastPlace;
  /// The first key that is packed, and those of them that any query sees, the
  /// first down to a multiple of the rows of scores.
  Value firstKey, firstRow, endRow;
  /// Whether a packed value is infinite or no number; null if that cannot reach
  /// a query that does not see it.
  Value isUnsafe;
};

//===----------------------------------------------------------------------===//
// Small pieces
//===----------------------------------------------------------------------===//

Value createIndex(ImplicitLocOpBuilder &builder, int64_t value);
Value addIndex(ImplicitLocOpBuilder &builder, Value index, int64_t offset);
Value addIndex(ImplicitLocOpBuilder &builder, Value a, Value b);
Value subIndex(ImplicitLocOpBuilder &builder, Value a, Value b);
Value mulIndex(ImplicitLocOpBuilder &builder, Value index, int64_t factor);
Value minIndex(ImplicitLocOpBuilder &builder, Value a, Value b);
Value maxIndex(ImplicitLocOpBuilder &builder, Value a, Value b);

/// All lanes of `type` the same number.
Value createSplat(ImplicitLocOpBuilder &builder, VectorType type, double value);
Value broadcast(ImplicitLocOpBuilder &builder, VectorType type, Value scalar);
Value loadVector(ImplicitLocOpBuilder &builder, VectorType type, Value memref,
                 ValueRange indices);
void storeVector(ImplicitLocOpBuilder &builder, Value vector, Value memref,
                 ValueRange indices);

/// A vector of a tensor's elements in f32, whatever their type is.
Value loadF32(OpBuilder &builder, Location loc, Value memref, ValueRange row,
              Value lane, int64_t length);

/// Emits a loop from `from` to `to`; `body` returns what goes on to the next
/// iteration. Returns what the last one gave.
ValueRange createLoop(
    ImplicitLocOpBuilder &builder, Value from, Value to, int64_t step,
    ValueRange init,
    function_ref<SmallVector<Value>(Value index, ValueRange carried)> body);
void createLoop(ImplicitLocOpBuilder &builder, Value from, Value to,
                int64_t step, function_ref<void(Value index)> body);
/// A loop that stays one: unrolled, it would keep in registers, and so on the
/// stack, what is loaded again as easily.
ValueRange createRolledLoop(
    ImplicitLocOpBuilder &builder, Value from, Value to, int64_t step,
    ValueRange init,
    function_ref<SmallVector<Value>(Value index, ValueRange carried)> body);

/// Of two numbers the larger; `b` where they cannot be compared.
Value createMax(ImplicitLocOpBuilder &builder, Value a, Value b);

/// Vectors of as many vectors as they have lanes.
SmallVector<Value> transpose(ImplicitLocOpBuilder &builder,
                             SmallVector<Value> vectors);

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// 2^x in f32, to 2e-7 of it, for x up to 127; 0 from -127 down.
Value emitExp2(ImplicitLocOpBuilder &builder, Value x);
/// The natural logarithm of normal numbers in f32.
Value emitLog(ImplicitLocOpBuilder &builder, Value x);

/// Keys that may be seen from a place: those from the first to before the
/// second, in index arithmetic.
Value emitFirstKey(ImplicitLocOpBuilder &builder, AttentionOp op, Value place);
Value emitEndKey(ImplicitLocOpBuilder &builder, AttentionOp op, Value place,
                 Value numKeys);

/// How far behind its place the first key that a query sees is, and how far
/// beyond it the last one; nothing where there is no limit.
std::optional<int64_t> getLeftWindow(AttentionOp op);
std::optional<int64_t> getRightWindow(AttentionOp op);

/// `row` in all lanes as i32, held within what rows can be compared with.
Value createRowLimit(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                     Value row);

/// Scores of a group and the packed keys of a block, in logarithms to base 2,
/// and the new maxima of its vectors. `isPartial` is whether some pairs take no
/// part by their places.
SmallVector<Value> emitScores(ImplicitLocOpBuilder &builder,
                              const AttentionCode &code,
                              const AttentionBlock &block, bool isPartial);

/// Loads an element of the mask for each lane: its sequences, heads, tokens
/// and keys, one of all lanes or one of each.
Value loadMask(ImplicitLocOpBuilder &builder, const AttentionCode &code,
               ArrayRef<SmallVector<Value>> indices);
/// Applies the regions to scores of pairs of a sequence, a head and places
/// of a query and a key, and masks: `mask` from the operand, `keep` by places,
/// null where there is none. Whatever has a value for all lanes may be scalar.
Value emitScore(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                ValueRange pair, Value score, Value mask, Value keep,
                ValueRange distances = {});

/// Applies the regions and masks to scores of `numRows` keys from `row` on, as
/// many vectors a key as a group has.
void emitMasks(ImplicitLocOpBuilder &builder, const AttentionCode &code,
               const AttentionBlock &block, Value row, bool isPartial,
               MutableArrayRef<Value> scores);

/// The value of a region for a vector of queries. Scalar arguments stay scalar.
/// `distances` are those that getDistanceValues names, unless they are computed
/// here.
Value emitRegion(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                 Region &region, ValueRange arguments,
                 ValueRange distances = {});

/// The values of the score's region, in f32, that come from a tensor by the
/// distance of query and key, as the bias of T5. All pairs of a block have few
/// distances.
SmallVector<Value> getDistanceValues(AttentionOp op);
/// Computes these for all distances of a block.
void emitDistances(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                   const AttentionBlock &block);
/// Those of a packed key and a vector of queries.
SmallVector<Value> loadDistances(ImplicitLocOpBuilder &builder,
                                 const AttentionCode &code, Value row,
                                 int64_t vector);

/// Exponentials in place of the scores, with their sums added to the totals;
/// returns the factors of what was summed before, a vector each.
SmallVector<Value> emitSoftmax(ImplicitLocOpBuilder &builder,
                               const AttentionCode &code,
                               const AttentionBlock &block,
                               ValueRange newMaxima);

/// Multiplies the sums by `factors` and adds the weighted values.
void emitValues(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                const AttentionBlock &block, ValueRange factors);
/// Whether one of `count` packed values is infinite or no number.
Value emitIsUnsafe(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                   Value count);

/// Starts the sums, maxima and totals of all groups.
void emitStart(ImplicitLocOpBuilder &builder, const AttentionCode &code,
               const AttentionTask &task);
/// What makes results of sums, and the logarithms of the totals.
struct AttentionResult {
  Value factor, logSum;
};
/// `sinks` (null without them) are those of the lanes' heads, of f32. The
/// logarithm of a row without keys is its sink to the bit.
AttentionResult emitResult(ImplicitLocOpBuilder &builder, Value maximum,
                           Value total, Value sinks);
/// The maximum and total of rows that have seen nothing but their sinks, in
/// logarithms to base 2: the maxima are numbers, whatever the sinks are.
std::pair<Value, Value> emitSinkState(ImplicitLocOpBuilder &builder,
                                      Value sinks);
/// Writes the results of `count` tokens of a group.
void emitResults(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                 const AttentionBlock &block, Value count);

/// Brings rows of a tensor to the stack: in f32, normed and rotated.
class AttentionRows {
public:
  /// Allocates tables of `numSlots` positions.
  AttentionRows(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                bool isKey, int64_t numSlots);

  /// Readies the rotation of a token in a slot; `batch` is null where tokens
  /// are packed.
  void preparePosition(ImplicitLocOpBuilder &builder, Value batch, Value token,
                       Value place, Value slot) const;
  /// The same for a token of a task's sequence.
  void prepareQuery(ImplicitLocOpBuilder &builder, const AttentionTask &task,
                    Value token, Value place, Value slot) const;
  /// `scale` is what the row is multiplied by, null if there is nothing.
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
  /// The dimension of heads and their number, if the norm is one of all heads
  /// of a token together.
  unsigned headDim = 0;
  int64_t normedHeads = 1;
  std::optional<RowRotation> rotation;
  std::optional<PositionTable> table;
};

/// Packs the queries of a task.
void emitQueries(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                 const AttentionRows &rows, const AttentionTask &task);
/// Packs `count` keys and values from `first` on.
void emitKeys(ImplicitLocOpBuilder &builder, const AttentionCode &code,
              const AttentionRows &rows, const AttentionTask &task, Value first,
              Value count);

/// Asks for the part of the next keys and values, of those from `first` to
/// before `end`, that a group of queries has to.
void prefetchKeys(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                  const AttentionTask &task, Value group, Value first,
                  Value end);

/// The keys alone.
void emitKeyRows(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                 const AttentionRows &rows, const AttentionTask &task,
                 Value first, Value count);

/// The numbers of tokens for which there is a better way, each in code of its
/// own.
SmallVector<FewTokens> getFewTokens(AttentionOp op, const VectorTarget &target);
/// Whether there is one for all numbers of tokens that there may be.
bool areAlwaysFew(AttentionOp op, const VectorTarget &target);
/// Whether products are those of pairs of bf16.
bool usesDots(AttentionOp op, const VectorTarget &target);
/// What all tasks may share of few tokens.
int64_t getSharedBytes(AttentionOp op);
/// Of how many tasks each takes parts of the keys, all for the same heads.
Value emitNumShares(ImplicitLocOpBuilder &builder, const AttentionCode &code);
/// Emits the better way, for a share of the keys from one to before another.
/// Results are written only where there is a single share.
void emitDecode(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                const AttentionRows &queryRows, const AttentionRows &keyRows,
                const AttentionTask &task, Value firstKey, Value endKey,
                Value share, Value numShares);
/// Emits what makes results of what all shares have left.
void emitMerge(ImplicitLocOpBuilder &builder, const AttentionCode &code,
               const AttentionTask &task, Value firstKey, Value endKey);

/// Where the keys and values of a task have a key, but for the last index: in
/// its page if there is a table of them.
SmallVector<Value> getKeyIndices(ImplicitLocOpBuilder &builder, AttentionOp op,
                                 const AttentionTask &task, Value key);
/// The scale of a key or value with those indices; null if there are no scales.
Value loadScale(ImplicitLocOpBuilder &builder, AttentionOp op, Value scales,
                ValueRange keyIndices);
/// The indices of a token's row in a tensor of heads, but for the last;
/// `batch` is null where it has no batch dimension.
SmallVector<Value> getRowIndices(Value batch, Value head, Value token,
                                 unsigned headDim);
/// The same for queries and results; `start` is null unless they are packed.
SmallVector<Value> getQueryIndices(ImplicitLocOpBuilder &builder,
                                   AttentionOp op, Value batch, Value start,
                                   Value head, Value token);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_ATTENTIONCODE_H
