//===- AttentionKernel.h - attention kernels for GPUs -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block computes one iteration of the nest's scf.forall. Its threads copy the
// queries to shared memory, then tile after tile of keys and values; while a
// tile is multiplied, the copies of the next one are under way. A warp computes
// some of the rows, a row being a query of a head. Scores, weights and
// accumulators are fragments of `mma.sync`, tiles of 16 rows x 8 columns:
// thread `4g + t` has the columns 2t and 2t + 1 of the rows g and g + 8. Types
// that tensor cores do not multiply exactly have the same fragments.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ATTENTION_ATTENTIONKERNEL_H
#define POSENC_LIB_CODEGEN_GPU_ATTENTION_ATTENTIONKERNEL_H

#include "AttentionNestParts.h"
#include "GPU/Threads/TileReader.h"
#include "ThreadSoftmax.h"

#include "posenc/TargetInfo/GpuTiles.h"

namespace mlir::posenc {

class AttentionKernel {
public:
  /// `isWide` tells that rows of the operands are aligned to 16 bytes.
  AttentionKernel(OpBuilder &host, const AttentionNestParts &nest,
                  const GpuAttentionTiles &tiles, int64_t numThreads,
                  bool isWide, StringRef suffix);
  virtual ~AttentionKernel() = default;

  /// Emits the kernel and its launch.
  void emit();

protected:
  /// Emits the code of a block: by default, that of the tile of queries with
  /// its number.
  virtual void emitGrid();
  /// Emits what the block does, after its indices and scalars are known.
  void emitBlock();
  /// Whether tiles of queries have KV splits, of which the loops have
  /// as many as memory has keys. The launch has at most as many blocks as the
  /// GPU holds at once, and these share the splits with keys.
  bool hasSplits();
  int64_t getBlocksPerMultiprocessor() const;
  /// Returns the number of blocks, an index of the host.
  virtual Value getNumBlocks();
  virtual int64_t getSharedBytes() const { return tiles.getSharedBytes(sizes); }
  /// Returns where 16 bytes of a query, or of the result that replaces it, are.
  virtual SharedAddress getQuery(Value row, Value channel);
  /// Waits until the threads that share rows have read them.
  virtual void syncRows() { b.barrier(); }
  /// Whether the results of warps that share rows replace the queries, too.
  virtual bool stagesParts() const { return false; }
  /// Whether queries are read again after results are stored.
  virtual bool keepsQueries() { return false; }
  /// Waits for the threads that copy and read the same tiles of keys.
  virtual void syncTiles() { b.barrier(); }
  /// The tiles of keys that a warp reads: indices, and i32 numbers of the first
  /// stage in shared memory and of the sum of both stages.
  struct TileRange {
    Value begin, end, step;
    Value firstStage, sumOfStages;
    /// The end of the keys that are loaded ahead; null if it is `end`.
    Value endOfLoads = nullptr;
    /// Whether the first tile, if there is one, is being loaded already.
    bool isLoaded = false;
  };
  virtual TileRange getTileRange();
  /// Takes the scalars of tiles that are loaded ahead, if these are not those
  /// of the code at the insertion point.
  virtual void takeLoads() {}
  /// Emits what follows the last tile: `stage` is that of the next one.
  virtual void endTiles(Value stage) {}

  /// The state of a warp's rows. `sums` are those of the thread's own columns.
  struct State {
    SmallVector<Value> accumulators, maxima, sums;
  };
  /// A row of the thread.
  struct Row {
    /// Its number in the block's tile, its head and query in the tile: i32.
    Value number, head, query;
    /// Whether it stands for a query; null if all rows do.
    Value exists;
  };
  /// A tile of keys, with all that its scores depend on.
  struct Tile {
    /// The first key; the position of the tile's first query minus that key,
    /// and the number of keys from the first one on, clamped i32. `limit` is
    /// null if all keys of the tile exist.
    Value firstKey, relative, limit;
    /// Offsets of the tile's keys and values in shared memory, i32.
    Value keys, values;
    /// Whether `where` is known to be true; null if it is not known.
    Value isFull;
  };

  void captureOperands();
  void takeQueries(Value number);
  Value emitHasWork();
  void ifWorking(function_ref<void()> body);
  SmallVector<Value>
  walkTiles(ValueRange inits,
            function_ref<SmallVector<Value>(ValueRange carried)> body);
  void findRows(Value warpRows, Value part);
  void loadQueries(Value first, int64_t step, Value firstRow, int64_t count);
  void loadRows(Value tensor, Value offset, int64_t pitch, int64_t channels);
  void loadTile(Value stage);
  void loadTileAt(Value key, Value end, Value stage);
  State createState();
  Value getInit(int64_t part, const Row &row);
  Value scaleInit(Value maximum);
  SmallVector<Value> pack(const State &state) const;
  State unpack(ValueRange all) const;
  /// Emits the loop over tiles of keys.
  virtual State emitTiles(State state);
  State addTile(Value stage, State state);
  Row getRow(Value number);

  // AttentionSkips.cpp: tiles that a region `where` masks.
  /// Whether `where` has bounds, so that tiles may be skipped or have no masked
  /// pairs.
  bool hasBounds() const { return nest.isVisible || nest.isFull; }
  /// The tiles of a warp's loop over keys that may have visible pairs, i32: the
  /// key of the tile at which the lane looks next, and bits of the 32 tiles at
  /// which the lanes have looked last: which are visible and have not been
  /// taken, and in which `where` is known to be true.
  struct VisibleTiles {
    Value next, visible, full;
  };
  /// The first one of these: its first key, an i32, and whether `where` is
  /// known to be true, an i1.
  struct VisibleTile {
    Value key, isFull;
  };
  void cloneSharedScalars();
  VisibleTiles findFirstVisible(Value begin, Value end, Value step);
  VisibleTiles findVisible(const VisibleTiles &before, Value end, Value step);
  Value hasVisible(const VisibleTiles &tiles);
  VisibleTile getVisible(const VisibleTiles &tiles, Value step);
  VisibleTiles dropVisible(const VisibleTiles &tiles);
  void takeVisible(const VisibleTile &tile);
  State emitVisibleTiles(State state);

  // AttentionResults.cpp: results.
  /// The maximum of a row, in natural units, its sum, and 1 / sum.
  struct RowSums {
    Value maximum, sum, reciprocal;
  };
  SmallVector<RowSums> emitRowSums(const State &state);
  void storeResults(const State &state);
  Value emitResult(const AttentionNestParts::Output &output, Value accumulator,
                   const RowSums &sums);
  /// Returns the number of the tile's queries in a head; nullopt if there is
  /// always one.
  std::optional<Value> getNumQueries(const AttentionNestParts::Output &output);
  Value emitExists(const AttentionNestParts::Output &output, const Row &row);
  SmallVector<Value> emitIndices(const AttentionNestParts::Output &output,
                                 const Row &row);
  void ifStored(const AttentionNestParts::Output &output, const Row &row,
                function_ref<void(ArrayRef<Value>)> body);
  void forEachPair(const AttentionNestParts::Output &output, const State &state,
                   const RowSums &sums, int64_t row,
                   function_ref<void(Value channel, Value pair)> body);
  void storeStaged(const AttentionNestParts::Output &output, const State &state,
                   ArrayRef<RowSums> sums);
  void storeSums(const AttentionNestParts::Output &output,
                 ArrayRef<RowSums> sums);

  // AttentionScores.cpp: scores, masks and softmax.
  virtual Tile findTile(Value stage);
  State addVisible(const Tile &tile, State state);
  /// Return the windows; a causal mask is a right window of 0.
  std::optional<int64_t> getRightWindow();
  std::optional<int64_t> getLeftWindow();
  /// The first and last query of some rows, in their heads: i32.
  using QueryRange = std::pair<Value, Value>;
  Value isPartial(const Tile &tile, const QueryRange &queries);
  Value isVisible(const Tile &tile);
  /// Returns the queries of the rows that are computed together: those of a
  /// warp.
  virtual QueryRange getQueryRange();
  void changeScores(const Tile &tile, MutableArrayRef<Value> scores);
  void maskByPositions(const Tile &tile, MutableArrayRef<Value> scores);
  void maskByRegion(const Tile &tile, MutableArrayRef<Value> scores);
  void selectScores(MutableArrayRef<Value> scores,
                    function_ref<Value(int64_t row, int64_t column)> isKept);
  Value emitRegion(Region &region, const Tile &tile, Value score, int64_t row,
                   int64_t column);
  std::pair<Value, Value> emitAlibi(AlibiOp op, const Tile &tile, int64_t row,
                                    int64_t column);
  Value getKey(const Tile &tile, int64_t column, bool isClamped);
  Value getMaskValue(const Tile &tile, int64_t row, int64_t column);
  SmallVector<Value> emitScores(const Tile &tile, SmallVector<Value> scores,
                                Value &isMasked);
  /// The weights of the scores, and the factor of each row's accumulators.
  struct Weights {
    SmallVector<Value> values, factors;
  };
  Weights addSoftmax(ArrayRef<Value> scores, bool isLazy, State &state);
  Value findMaximum(ArrayRef<Value> scores, int64_t row);
  /// Returns the maxima of the scores of all threads that have a row, if other
  /// warps have some of these; else nothing.
  virtual SmallVector<Value> findSharedMaxima(ArrayRef<Value> scores) {
    return {};
  }
  void scaleAccumulators(ArrayRef<Value> factors, State &state);

  // AttentionProducts.cpp: products of fragments.
  SmallVector<Value> multiplyKeys(const Tile &tile);
  /// Returns a tile of 16 rows x 16 channels of the warp's queries.
  virtual SmallVector<Value> loadQueryMatrices(int64_t rowTile,
                                               int64_t channel);
  /// Returns where the lane's row of 16 x 16 keys is.
  virtual SharedAddress getKeys(const Tile &tile, int64_t key, int64_t channel);
  SmallVector<Value> multiplyKeysByThreads(const Tile &tile);
  SmallVector<SmallVector<Value>> packWeights(ArrayRef<Value> weights,
                                              int64_t key);
  /// Returns where the lane's row of 16 x 16 values is.
  virtual SharedAddress getValues(const Tile &tile, int64_t key,
                                  int64_t channel);
  void multiplyValues(ArrayRef<SmallVector<Value>> weights,
                      ArrayRef<Value> words, int64_t channel,
                      MutableArrayRef<Value> accumulators);
  void addValues(const Tile &tile, ArrayRef<Value> weights, Value isMasked,
                 State &state);
  void addValuesByThreads(const Tile &tile, ArrayRef<Value> weights,
                          bool hasMasks, State &state);

  // AttentionSpecials.cpp: infinite values and NaN.
  Value findSpecials(Value word);
  Value hasSpecialValues(const Tile &tile);
  /// Returns the packed weights of 16 keys of each tile of rows.
  using GetWeights = function_ref<SmallVector<SmallVector<Value>>(int64_t key)>;
  /// Emits the accumulators after a tile that has infinite values or NaN.
  virtual SmallVector<Value> addSpecialValues(const Tile &tile,
                                              GetWeights getWeights,
                                              ArrayRef<Value> before);
  SmallVector<Value>
  addSpecialChannels(GetWeights getWeights,
                     function_ref<SharedAddress(int64_t key)> getRow,
                     ArrayRef<Value> before);

  /// Returns the lowest finite number of a type.
  static double getLowest(FloatType type);
  bool hasTensorCores() const { return sizes.elementBytes == 2; }
  /// Rows of a thread.
  int64_t getNumRows() const { return isHalfTile ? 1 : 2 * tiles.rowTiles; }
  /// Elements of a thread's fragments of results.
  int64_t getNumAccumulators() const {
    return 2 * tiles.rowTiles * getNumChannels();
  }
  /// Columns of a row's scores in a thread.
  int64_t getNumColumns() const { return tiles.keys / 4; }
  /// Index of a row's element in the thread's fragments, whose rows have
  /// `columns` elements per thread: those of a fragment are (g, 2t), (g, 2t +
  /// 1), (g + 8, 2t) and (g + 8, 2t + 1).
  int64_t getIndex(int64_t row, int64_t column, int64_t columns) const {
    return row / 2 * 2 * columns + column / 2 * 4 + row % 2 * 2 + column % 2;
  }
  /// The key of a thread's column relative to the thread's first one.
  static int64_t getColumnKey(int64_t column) {
    return column / 2 * 8 + column % 2;
  }
  /// The value's channels of a warp in a thread, per row.
  int64_t getNumChannels() const { return tiles.getValueChannels(sizes) / 4; }
  /// Whether `score` adds an ALiBi bias and does nothing else.
  bool onlyAddsAlibi();
  /// Whether the scores of the tile are changed after scaling, by a float mask
  /// or by a region, except for an ALiBi bias, whose slope is scaled as well.
  bool hasOwnScores();
  /// Returns the unit of scores and maxima: 1 if scores are changed, else
  /// ln(2), for which exponentials take no product.
  double getScoreUnit();
  /// The exponentials of changed scores take a product with log2(e) each;
  /// before, the lowest finite score would become infinite.
  ThreadSoftmax getSoftmax() { return {b, sum, getScoreUnit()}; }

  OpBuilder &host;
  const AttentionNestParts &nest;
  OnlineAttentionOp op;
  GpuAttentionTiles tiles;
  GpuAttentionSizes sizes;
  bool isWide;
  GpuKernel kernel;
  ThreadBuilder b;
  TileReader reader;

  /// Element types of shared memory and of sums.
  Type element;
  FloatType sum;
  /// Queries per head of the tile, and rows that stand for queries.
  int64_t queriesPerHead, numRows;
  /// Bytes from row to row in shared memory.
  int64_t keyPitch, valuePitch;
  /// Whether the last 8 of 16 rows stand for no query, so that a thread has one
  /// row. Their scores are zeros, and their results are not used.
  bool isHalfTile = false;
  /// Whether queries are stored as multiples of the scale in the unit of
  /// scores.
  bool scalesQueries;
  Value thread, lane, warpRow, valuePart;
  /// The number of the thread among those that copy the same tiles.
  Value copier;
  int64_t numCopiers;
  /// lane / 4 and lane mod 4.
  Value laneRow, laneColumn;
  SmallVector<Row> rows;
  SmallVector<Value> gridSizes;
  /// Dimensions of the grid.
  static constexpr size_t kQueryTile = 2, kSplit = 3;
  /// The number of tiles of queries, an index of the host. The same in the
  /// kernel, if blocks have several tiles; null if they have one.
  Value numTiles, tilesOfGrid;
  /// Whether `where` is known to be true in the tile of keys that the code is
  /// for, an i1; null if the code evaluates it.
  Value isFullTile;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ATTENTION_ATTENTIONKERNEL_H
