//===- AttentionDecode.h - attention of few tokens --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_ATTENTIONDECODE_H
#define POSENC_LIB_CODEGEN_CPU_ATTENTIONDECODE_H

#include "AttentionCode.h"

namespace mlir::posenc {

/// The code for one task.
class Decode {
public:
  Decode(ImplicitLocOpBuilder &builder, const AttentionCode &code,
         const AttentionTask &task, Value endKey);

  /// The queries, scaled, in the order of the keys' lanes.
  void emitQueries(const AttentionRows &rows);
  /// The sinks of the queries, in the order of a block's lanes.
  Value loadSinks(Value block);
  /// Starts a part of the keys; `isFirst` is null if there is only one.
  void start(Value isFirst);
  /// Takes the tile from `firstKey` on: all of it, or `count` keys.
  void emitTile(Value firstKey, Value count, bool isWhole);
  /// Whether a token may not see a key that others see.
  bool hasMasks() const;
  /// Whether all tokens see all of a tile's keys.
  Value isSeenByAll(Value firstKey, Value count);
  /// Writes the results of the merged parts, or of the only one.
  void finish();

  void startMerged();
  /// Adds a part to the merged ones: that at `place` of all tasks' parts, or
  /// the one that was taken last.
  void merge(Value place);
  /// Leaves the part that was taken last at `place`.
  void store(Value place);

private:
  /// Where the row of a key of the tile is, or of the one after it; `keyHead`
  /// counts from the task's first.
  SmallVector<Value> getRow(Value firstKey, Value row, Value keyHead,
                            bool isNext);
  /// The same by what is before it in the next tile, in units of which a row
  /// has `ofRow`; leaves the rest in `number`.
  SmallVector<Value> getNextRow(Value firstKey, Value &number, int64_t ofRow);
  /// Vectors of a row in f32, `count` of them from a lane on.
  SmallVector<Value> load(Value memref, ValueRange row, Value lane,
                          int64_t count);
  void prefetch(Value memref, ValueRange row, Value lane);
  /// Keys or values as they are to be asked for: if tiles are as large as pages
  /// and one after the other, what is behind them up to a page's end.
  Value moveToPage(Value memref, Value firstKey, Value keyHead, bool isNext);
  /// Asks for what is next when products with a row are computed: its values,
  /// or a row of the next keys. `isNext` is for the next tile.
  void prefetchBeside(Value memref, Value firstKey, Value row, Value count,
                      Value block, bool isNext);
  /// Adds up the lanes of each of `lanes` vectors, halving their number in each
  /// step until `until` vectors are left; the only one has in each lane the sum
  /// of one of them. Takes up what is half done.
  SmallVector<Value> sumLanes(SmallVector<Value> vectors, size_t until);
  /// Sums of dot products, one in each lane, of the vectors that sumLanes left:
  /// for each of `parts` parts of the channels `lanes / 2` of them.
  Value sumParts(ArrayRef<Value> vectors);
  Value acrossKeys(Value vector, function_ref<Value(Value, Value)> combine);
  Value ofQuery(Value vector, int64_t query) {
    return broadcast(b, type, vector::ExtractOp::create(b, vector, query));
  }
  /// Whether keys of i8 are multiplied as integers (AttentionInts.cpp).
  static bool canUseIntegers(AttentionOp op);
  /// Quantizes the scratch row of a query from f32 to i16 in place. Scores are
  /// multiplied by `scale`.
  void emitIntegerQuery(Value row, double scale);
  /// Loads the factors that convert integer sums of a block to scores, one for
  /// each lane.
  Value loadIntegerFactors(Value block);
  /// `sums`, of i32, with the products of the rows of keys and the queries of a
  /// block: `count` channels from the first on.
  SmallVector<Value> multiplyIntegers(Value block,
                                      ArrayRef<SmallVector<Value>> rows,
                                      Value first, int64_t count,
                                      ValueRange sums);
  /// Whether weights of whole tiles are multiplied as integers.
  static bool canUseIntegerWeights(AttentionOp op, const AttentionTiles &tiles);
  /// Makes words of the weights of a block in a whole tile.
  void quantizeWeights(Value block);
  /// Where the factors are that convert integer sums of values, a lane each.
  Value getIntegerFactors(Value block);
  /// `sums` with the products of the values and weights of two rows, for
  /// `vectors` vectors of columns and each of some queries. They have columns
  /// in the order of `getColumn`.
  SmallVector<Value> addIntegerRows(Value firstKey, Value row, Value d,
                                    int64_t firstQuery, Value block,
                                    ValueRange sums, int64_t vectors);
  /// Adds integer sums to those of the block.
  void addIntegerSums(Value d, int64_t firstQuery, Value block, ValueRange sums,
                      int64_t vectors);
  /// The column in a lane of one half of two vectors of columns.
  static int64_t getColumn(int64_t lane, int64_t half);
  /// Products with the keys of a tile, added up across lanes in the first step.
  void emitProducts(Value firstKey, Value count, bool isWhole, Value block);
  /// The end of the rows for which products, scores and weights are computed.
  Value getEndOfRows(Value count, bool isWhole);
  Value getProduct(Value row, int64_t i) {
    return addIndex(b, mulIndex(b, row, queries * parts * lanes / 2),
                    i * lanes);
  }
  /// Where the maxima of a block are in the state; behind them are the vectors
  /// of its partial sums of weights.
  Value getState(Value block) {
    return mulIndex(b, block, code.tiles.getStateVectors());
  }
  /// The sums of weights of a block's queries, each in all lanes of the query.
  Value sumWeights(Value state, Value block);
  void emitScores(Value firstKey, Value count, bool isWhole, Value block);
  /// Whether lanes are of keys that there are and that the token sees, by their
  /// places.
  Value getSeen(Value firstKey, Value row, Value count, Value block);
  /// Applies the regions and the mask to the scores of all keys of a vector.
  Value emitPairs(Value scores, Value keep, Value firstKey, Value row,
                  Value count, Value block);
  /// The token of each lane, counted from the task's first.
  Value getTokenOfLanes(Value block);
  /// The scales of as many keys or values as a vector of scores has, each in
  /// the lanes of its queries. Rows beyond the last are the last.
  Value loadScales(Value scales, Value firstKey, Value row, Value count,
                   Value block);
  /// Makes weights of the scores of as many keys as a vector has; returns both.
  /// The weight for the sums of values includes the scale of the value.
  std::pair<Value, Value> emitWeight(Value firstKey, Value row, Value count,
                                     Value maximum, Value block);
  /// Makes weights of the scores and adds them to the totals.
  void emitWeights(Value firstKey, Value count, Value block);
  /// The weights anew, for a maximum that was `before` and is now one of those
  /// in the lanes of a query; returns their partial sums.
  SmallVector<Value> changeMaximum(Value before, Value maxima, Value firstKey,
                                   Value count, Value block);
  void emitValues(Value firstKey, Value count, bool isWhole, Value block);
  void forEachBlock(function_ref<void(Value block)> body);
  void forEachBlockOf(Value keyHead, function_ref<void(Value block)> body);
  void finishBlock(Value block);
  int64_t getQueriesPerBlock() const {
    return std::min(code.tiles.getQueriesPerHead(), queries);
  }
  /// Whether no block has lanes that are no query.
  bool areBlocksFull() const {
    const AttentionTiles &tiles = code.tiles;
    return (tiles.hasKnownTokens() ? tiles.getQueriesPerHead()
                                   : tiles.getHeadsPerKeyHead()) %
               queries ==
           0;
  }
  /// The row of a query of a block.
  template <typename Number> Value getRowOfQuery(Value block, Number query) {
    return addIndex(b, mulIndex(b, block, queries), query);
  }
  /// The number of the first query of a block among those of its key head.
  Value getNumber(Value block);
  /// The head and the token of a query, counted from the task's first. All
  /// heads of a token come first, of which there are as many as is known.
  Value getHead(Value keyHead, Value number);
  Value getToken(Value number);
  /// Where the query and its result are, but for the last index.
  SmallVector<Value> getIndices(Value keyHead, Value number);
  Value getKeyHead(Value block) {
    return b.createOrFold<arith::DivUIOp>(
        block, createIndex(b, code.tiles.getBlocksPerHead()));
  }
  /// The number of a block among all that there are.
  Value getTurn(Value block);
  /// Where the weights of a key of the tile are.
  Value getWeight(Value row, Value block);
  /// What is asked for beside the `number`th of what all blocks of a key head
  /// take of a tile: `size` at a time, all of it once for all blocks.
  Value getPart(Value number, int64_t size);
  /// Whether vectors of bf16 are split into even and odd elements, not halves.
  bool areSplit(Value memref, int64_t dim) const;
  bool areKeysSplit() {
    return !arePacked && areSplit(op.getKey(), code.dim) &&
           code.dim % (2 * parts * lanes) == 0;
  }
  /// Where the sums of a part that is left at `place` are.
  Value getSum(Value place, Value row, Value d);

  ImplicitLocOpBuilder &b;
  const AttentionCode &code;
  AttentionOp op;
  const AttentionTask &task;
  VectorType type;
  /// Queries that are in a vector of scores, with some that are none, and keys.
  int64_t lanes, queries, keys;
  /// Each product has `parts * lanes` partial sums: those of as many channels
  /// side by side.
  int64_t parts = 1;
  /// Tokens, and queries of a key head.
  Value numTokens, perHead;
  /// Blocks of a key head, and 2^32 divided by them; null where they are known.
  Value numBlocks, ofBlocks;
  Value endKey;
  /// Whether rows are rotated or normed, and then on the stack.
  bool arePacked;
  /// Whether products with the keys are those of integers.
  bool areIntegers;
  /// Whether all lines are those of whole rows, as many of keys as of values.
  bool hasLines;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_ATTENTIONDECODE_H
