//===- AttentionDecode.h - the decode kernel --------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONDECODE_H
#define POSENC_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONDECODE_H

#include "AttentionCode.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::posenc {

/// Emits one task of the decode kernel. In this class a query is a pair of a
/// query head and a token, and a block is a vector's worth of queries of one
/// key head.
class Decode {
public:
  Decode(ImplicitLocOpBuilder &builder, const AttentionCode &code,
         const AttentionTask &task, Value endKey);

  /// Fills `code.queries` with the scaled queries, in the order of the keys'
  /// lanes.
  void emitQueries(const AttentionRows &rows);
  /// Loads the sinks of a block's queries, one for each lane.
  Value loadSinks(Value block);
  /// Initializes the state of a KV split; `isFirst` is null if there is one
  /// split.
  void start(Value isFirst);
  /// Processes the tile of keys from `firstKey` on: all of it if `isWhole`,
  /// else `count` keys. `isFull` is an i1, or null if it is not known: mask_mod
  /// is true for all queries and keys.
  void emitTile(Value firstKey, Value count, bool isWhole, Value isFull);
  /// Returns the pairs of all queries and `count` keys.
  PairTile getPairs(Value firstKey, Value count) {
    return getPairTile(b, code, task, numTokens, firstKey, count);
  }
  /// Whether two tokens may see different keys.
  bool hasMasks() const;
  /// Emits an i1: whether all tokens see all keys of a tile.
  Value isVisibleToAll(Value firstKey, Value count);
  /// Writes the output of the merged KV splits, or of the only one.
  void finish();

  void startMerged();
  /// Merges a KV split: the one stored at `offset` of `code.partials`, or the
  /// current one if `offset` is null.
  void merge(Value offset);
  /// Stores the current KV split at `offset` of `code.partials`.
  void store(Value offset);

private:
  /// Returns the indices of a key of the tile, or of the next tile; `keyHead`
  /// counts from the task's first.
  SmallVector<Value> getRow(Value firstKey, Value row, Value keyHead,
                            bool isNext);
  /// Returns the indices of a row of the next tile. `number` counts units from
  /// the tile's start, with `unitsPerRow` units in a row; it becomes the unit
  /// within the row.
  SmallVector<Value> getNextRow(Value firstKey, Value &number,
                                int64_t unitsPerRow);
  /// Loads `count` vectors of a row, from `lane` on, as f32.
  SmallVector<Value> load(Value memref, ValueRange row, Value lane,
                          int64_t count);
  void prefetch(Value memref, ValueRange row, Value lane);
  /// Returns the memref to prefetch from. If tiles have the size of a page and
  /// are contiguous, it is moved so that an aligned page of memory is
  /// prefetched.
  Value moveToPage(Value memref, Value firstKey, Value keyHead, bool isNext);
  /// Emits the prefetches of one row of products: the row's values, or a row of
  /// the next tile if `isNext`.
  void prefetchBeside(Value memref, Value firstKey, Value row, Value count,
                      Value block, bool isNext);
  /// Sums the lanes of each of `lanes` vectors. Each step halves the number of
  /// vectors, until `until` are left; a single vector has in each lane the sum
  /// of one of the vectors. The result of a call can be passed to the next one.
  SmallVector<Value> sumLanes(SmallVector<Value> vectors, size_t until);
  /// Returns dot products, one in each lane, of the vectors that sumLanes left:
  /// `lanes / 2` vectors for each of the `parts` sets of partial sums.
  Value sumParts(ArrayRef<Value> vectors);
  /// Combines the lanes of all keys, separately for each query.
  Value acrossKeys(Value vector, function_ref<Value(Value, Value)> combine);
  /// Broadcasts the lane of a query to all lanes.
  Value broadcastQuery(Value vector, int64_t query) {
    return broadcast(b, type, vector::ExtractOp::create(b, vector, query));
  }
  /// Whether keys of i8 are multiplied as integers (AttentionDecodeInt8.cpp).
  static bool canUseIntegers(AttentionOp op);
  /// Quantizes the buffered row of a query from f32 to i16 in place. Scores are
  /// multiplied by `scale`.
  void emitIntegerQuery(Value row, double scale);
  /// Loads the factors that convert a block's integer sums to scores, one per
  /// lane.
  Value loadIntegerFactors(Value block);
  /// Returns the i32 `sums` plus the products of rows of keys and a block's
  /// queries, over `count` channels from `first` on.
  SmallVector<Value> multiplyIntegers(Value block,
                                      ArrayRef<SmallVector<Value>> rows,
                                      Value first, int64_t count,
                                      ValueRange sums);
  /// Whether weights of whole tiles are multiplied as integers.
  static bool canUseIntegerWeights(AttentionOp op, const AttentionTiles &tiles);
  /// Quantizes the weights of a block in a whole tile to words of two i16.
  void quantizeWeights(Value block);
  /// Returns the index of the factors that convert a block's integer sums of
  /// values, one per lane.
  Value getIntegerFactors(Value block);
  /// Returns `sums` plus the products of the values and weights of two rows,
  /// for `vectors` vectors of columns and each of some queries. Columns are in
  /// the order of `getColumn`.
  SmallVector<Value> addIntegerRows(Value firstKey, Value row, Value d,
                                    int64_t firstQuery, Value block,
                                    ValueRange sums, int64_t vectors);
  /// Converts integer sums and adds them to the accumulators of the block.
  void addIntegerSums(Value d, int64_t firstQuery, Value block, ValueRange sums,
                      int64_t vectors);
  /// Returns the column that a lane of one half of a pair of vectors holds.
  static int64_t getColumn(int64_t lane, int64_t half);
  /// Emits the products with the keys of a tile and the first step of their
  /// sums across lanes.
  void emitProducts(Value firstKey, Value count, bool isWhole, Value block);
  /// Returns the end of the rows for which products, scores and weights are
  /// computed: `count` rounded up.
  Value getEndOfRows(Value count, bool isWhole);
  Value getProduct(Value row, int64_t i) {
    return addIndex(b, mulIndex(b, row, queries * parts * lanes / 2),
                    i * lanes);
  }
  /// Returns the row of a block's running max in the state. The vectors of its
  /// partial running sums follow.
  Value getState(Value block) {
    return mulIndex(b, block, code.tiles.getStateVectors());
  }
  /// Returns the running sums of a block's queries, each in all lanes of its
  /// query.
  Value sumWeights(Value state, Value block);
  void emitScores(Value firstKey, Value count, bool isWhole, Value isFull,
                  Value block);
  /// Emits a mask: the lanes whose key exists and is visible to the token, by
  /// their positions.
  Value getVisible(Value firstKey, Value row, Value count, Value block);
  /// Applies the regions and the mask operand to a vector of scores.
  Value emitPairs(Value scores, Value keep, bool appliesWhere, Value firstKey,
                  Value row, Value count, Value block);
  /// Returns the token of each lane, counted from the task's first.
  Value getTokenOfLanes(Value block);
  /// Loads the scales of the keys or values of a vector of scores, each in the
  /// lanes of its queries. Rows after the last one get the scale of the last.
  Value loadScales(Value scales, Value firstKey, Value row, Value count,
                   Value block);
  /// Computes the weights of a vector of scores. Returns the weights, and the
  /// weights multiplied by the scales of the values.
  std::pair<Value, Value> emitWeight(Value firstKey, Value row, Value count,
                                     Value maximum, Value block);
  /// Computes the weights of a tile and adds them to the running sum.
  void emitWeights(Value firstKey, Value count, Value block);
  /// Computes the weights again after the running max rose from `before` to the
  /// largest of a query's lanes in `rowMax`; returns their partial sums.
  SmallVector<Value> changeMaximum(Value before, Value rowMax, Value firstKey,
                                   Value count, Value block);
  void emitValues(Value firstKey, Value count, bool isWhole, Value block);
  void forEachBlock(function_ref<void(Value block)> body);
  void forEachBlockOf(Value keyHead, function_ref<void(Value block)> body);
  void finishBlock(Value block);
  int64_t getQueriesPerBlock() const {
    return std::min(code.tiles.getQueriesPerHead(), queries);
  }
  /// Whether every lane of every block holds a query.
  bool areBlocksFull() const {
    const AttentionTiles &tiles = code.tiles;
    return (tiles.hasKnownTokens() ? tiles.getQueriesPerHead()
                                   : tiles.getHeadsPerKeyHead()) %
               queries ==
           0;
  }
  /// Returns the row of a block's query in the accumulators.
  template <typename Number> Value getRowOfQuery(Value block, Number query) {
    return addIndex(b, mulIndex(b, block, queries), query);
  }
  /// Returns the index of a block's first query among those of its key head.
  Value getNumber(Value block);
  /// Return the head and the token of a query, counted from the task's first.
  /// Queries are ordered by token, then by head.
  Value getHead(Value keyHead, Value number);
  Value getToken(Value number);
  /// Returns the indices of a query's row, and of its output, without the last
  /// one.
  SmallVector<Value> getIndices(Value keyHead, Value number);
  Value getKeyHead(Value block) {
    return b.createOrFold<arith::DivUIOp>(
        block, createIndex(b, code.tiles.getBlocksPerHead()));
  }
  /// Returns the index of a block among all blocks that hold queries.
  Value getBlockIndex(Value block);
  /// Returns the index of the weights of a key of the tile.
  Value getWeight(Value row, Value block);
  /// Returns the offset to prefetch during step `number` of all steps that the
  /// blocks of a key head spend on a tile: `size` elements at a time, the whole
  /// tile once.
  Value getPrefetchOffset(Value number, int64_t size);
  /// Whether vectors of bf16 are split into even and odd elements, not halves.
  bool areSplit(Value memref, int64_t dim) const;
  bool areKeysSplit() {
    return !areKeysCopied && areSplit(op.getKey(), code.dim) &&
           code.dim % (2 * parts * lanes) == 0;
  }
  /// Returns the index of an accumulator of the KV split stored at `offset`.
  Value getAccOffset(Value offset, Value row, Value d);

  ImplicitLocOpBuilder &b;
  const AttentionCode &code;
  AttentionOp op;
  const AttentionTask &task;
  VectorType type;
  /// Lanes of a vector, and the queries and keys in a vector of scores.
  /// `queries` counts unused lanes, too.
  int64_t lanes, queries, keys;
  /// Each dot product has `parts * lanes` partial sums, one for each of as many
  /// neighbouring channels.
  int64_t parts = 1;
  /// Tokens, and queries of a key head.
  Value numTokens, perHead;
  /// The number of blocks of a key head, and 2^32 divided by it; null if it is
  /// a constant.
  Value numBlocks, blocksReciprocal;
  Value endKey;
  /// Whether rows of keys are rotated or normed, and thus copied to
  /// `code.keys`.
  bool areKeysCopied;
  /// Whether products with the keys are computed in integers.
  bool areIntegers;
  /// Whether rows consist of whole cache lines, as many of keys as of values.
  bool hasLines;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONDECODE_H
