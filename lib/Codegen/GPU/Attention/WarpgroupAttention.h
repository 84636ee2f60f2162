//===- WarpgroupAttention.h - attention kernels for sm_90a ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The block's first warpgroup, the producer, copies tiles of keys and values to
// a ring of stages by bulk copies (TMA), one thread for keys and one for
// values. A tile of pages may have several boxes: the lanes of a warp find the
// page of one each, and its first lane copies all. Each of the other
// warpgroups, the consumers, computes 64 rows; if the accumulators of all
// channels do not fit in its registers, several of them share the rows, compute
// the same scores, and have a part of the value's channels each. While a
// warpgroup computes the weights of a tile, the products of the tile before it
// and its values are under way. For each stage there are four barriers: keys
// and values have arrived, and keys and values have been read.
//
// If `where` may mask whole tiles, the producer evaluates the bounds of the
// region, and copies only tiles that have visible pairs. For each stage, it
// writes a header that tells the consumers which tile they multiply and whether
// it has masked pairs; the header after the last tile is -1.
//
// Values may be the first channels of the keys, as in multi-head latent
// attention. Then a stage has keys only, and is free when its values have been
// read. The consumers that share rows divide the keys of a tile: each computes
// the scores of its part, and after barriers they have the maxima and the
// weights of all keys. Tiles are computed one after the other, as the copies of
// the next one need the stage of the one before.
//
// Blocks of short sequences are persistent: the launch has as many of them as
// the GPU has multiprocessors, and each computes several tiles of queries. The
// stages of the ring continue across these, so that the producer copies the
// first keys and values of a tile while the consumers finish the one before.
//
// Tiles in shared memory consist of columns of 64 channels, with rows of 128
// bytes, whose units of 16 bytes are swizzled: unit c of row r is at c ^ (r mod
// 8).
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ATTENTION_WARPGROUPATTENTION_H
#define POSENC_LIB_CODEGEN_GPU_ATTENTION_WARPGROUPATTENTION_H

#include "AttentionKernel.h"
#include "WarpgroupBuilder.h"

namespace mlir::posenc {

class WarpgroupAttention final : public AttentionKernel {
public:
  WarpgroupAttention(OpBuilder &host, const AttentionNestParts &nest,
                     const WarpgroupTiles &tiles);

private:
  /// A stage of the ring, and the phase of its barriers: i32.
  struct Stage {
    Value number, phase;
  };
  enum BarrierKind { kKeysArrived, kValuesArrived, kKeysRead, kValuesRead };
  /// Flags of a header; its other bits are the tile's first key, which is a
  /// multiple of 16.
  enum HeaderFlag : int64_t { kIsPartial = 1, kAppliesWhere = 2 };

  void emitGrid() override;
  Value getNumBlocks() override;
  int64_t getSharedBytes() const override {
    return groups.getSharedBytes(sizes);
  }
  SharedAddress getQuery(Value row, Value channel) override;
  void syncRows() override;
  bool stagesParts() const override { return true; }
  SharedAddress getValues(const Tile &tile, int64_t key,
                          int64_t channel) override;
  QueryRange getQueryRange() override;

  Value getBarrier(BarrierKind kind, Value stage);
  Stage getNext(const Stage &stage);
  /// Convert between a stage and its number among those of both phases, an i32.
  Stage getStage(Value number);
  Value getNumber(const Stage &stage);
  void initBarriers();
  bool isPersistent();
  Value findTileOfQueries(Value round);
  /// Emits code for the block's tiles of queries. `body` gets the number of the
  /// tile's first stage, and returns that of the next tile's.
  void emitTilesOfQueries(function_ref<Value(Value firstNumber)> body);
  void emitRoles();
  void emitProducer();
  /// Tiles of keys or values, and their stages in shared memory.
  struct Copies {
    Value tensor, map;
    BarrierKind arrived, read;
    int64_t offset, bytes;
  };
  Value emitCopies(const Copies &copies, Value isFirstLane, Value firstNumber);
  Stage emitVisibleCopies(const Copies &copies, Value isFirstLane,
                          const Stage &firstStage);
  Stage endVisibleCopies(const Copies &copies, Value isFirstLane,
                         const Stage &stage);
  void copyFound(const Copies &copies, const Stage &stage, Value key,
                 Value isFirstLane);
  bool hasSeveralBoxes(const Copies &copies) const;
  void expectTile(const Copies &copies, const Stage &stage, Value key);
  Value getTileAddress(const Copies &copies, const Stage &stage);
  void copyBox(const Copies &copies, const Stage &stage, Value to,
               SmallVector<Value> coordinates);
  void copyTile(const Copies &copies, const Stage &stage, Value key);
  void copyBoxes(const Copies &copies, const Stage &stage, Value key,
                 Value isFirstLane);
  /// Whether tiles have headers: some may be skipped or have no masked pairs.
  bool hasHeaders() const {
    return hasBounds() && (nest.isVisible || !OnlineAttentionOp(op).getMask());
  }
  SharedAddress getHeader(Value stage);
  Value createHeader(Value key);
  Value readHeader(const Stage &stage);
  Value hasFlag(Value header, HeaderFlag flag);
  Value getFirstKey(Value header);
  void emitConsumer();
  void findConsumer();
  Value consumeTile(Value firstNumber);
  /// The state after some tiles, the stage of the next one, and its header if
  /// tiles have headers.
  struct Progress {
    State state;
    Stage stage;
    Value header;
  };
  /// Besides, the weights of the last tile, whose values have not been added,
  /// and its stage.
  struct Pending {
    Progress progress;
    SmallVector<Value> weights;
    Stage last;
  };
  SmallVector<Value> packProgress(const Progress &progress) const;
  Progress unpackProgress(ValueRange all) const;
  SmallVector<Value> packPending(const Pending &pending) const;
  Pending unpackPending(ValueRange all) const;
  Progress emitTilesOfKeys(const Stage &firstStage);
  Progress emitTilesWithHeaders(Progress progress);
  std::pair<Value, Value> findUnmasked(Value begin, Value end);
  Progress emitUnmasked(Value begin, Value end, const Progress &progress);
  Progress emitFullTiles(const Progress &progress);
  Pending startUnmasked(Value key, bool isFirst, Progress progress);
  void addUnmasked(Value key, Pending &pending);
  Progress addWhole(Value key, const Progress &progress);
  Progress finishUnmasked(Pending pending);
  Progress emitMasked(Value begin, Value end, const Progress &progress);
  void addMasked(Value key, Progress &progress);
  void addVisibleTile(const Tile &tile, const Stage &stage, State &state);
  Value hasSpecials(Value stage);
  void moveToNext(Progress &progress);
  Stage findStage(const Stage &firstStage, Value begin, Value key);
  Value getUniform(Value number);
  void waitForKeys(const Stage &stage);
  void waitForValues(const Stage &stage);
  void releaseKeys(const Stage &stage);
  Weights weighUnmasked(Value key, const Stage &stage,
                        SmallVector<Value> scores, State &state);
  SmallVector<Value> finishQueries(const Stage &stage);
  void finishWeights(const Stage &stage, ValueRange weights, State &state);
  SmallVector<Value> multiplyQueries(const Stage &stage);
  SmallVector<Value> multiplyWeights(const Stage &stage, ValueRange weights,
                                     ValueRange sums);
  SmallVector<Value> packAll(ArrayRef<Value> weights);
  void mapKey(Value key);
  void takeTile(Value key);
  Tile findTile(Value stage) override;
  /// Returns the offset of a stage's values in shared memory.
  Value getValues(Value stage);
  /// The offset of the first stage's values from the first row, and the
  /// distance of stages.
  int64_t getFirstValues() const;
  int64_t getValueStageBytes() const;
  void scaleIfNeeded(ArrayRef<Value> factors, State &state);

  // WarpgroupExchange.cpp: consumers that divide the keys of a tile.
  /// Emits code for the keys whose scores the consumer computes.
  void withOwnKeys(function_ref<void()> body);
  Tile getOwnKeys(Tile tile);
  Value getFirstOwnKey();
  SharedAddress getOwnExchanged();
  SharedAddress getExchanged(int64_t part);
  int64_t getExchangedPartBytes() const;
  SharedAddress getExchangedMaximum(Value part);
  SmallVector<Value> findSharedMaxima(ArrayRef<Value> scores) override;
  void shareWeights(ArrayRef<Value> words);
  SmallVector<Value> loadSharedWeights(int64_t key);
  SmallVector<Value> loadSharedWeights();
  void initOwnSums(State &state);
  void addSums(State &state);

  /// Numbered barriers of the groups of rows and of the warpgroups; 0 is that
  /// of the block.
  static constexpr int64_t kFirstRowsBarrier = 1, kFirstBarrier = 5;

  WarpgroupTiles groups;
  WarpgroupBuilder w;
  Value keyMap, valueMap;
  /// The rows of a box of keys or values, an index.
  Value boxRows;
  /// The address of shared memory, aligned to the swizzle's 1024 bytes, and its
  /// offset from the symbol; descriptors of the first operands.
  Value base, baseOffset;
  Value queryDescriptor, keyDescriptor, valueDescriptor;
  /// The warpgroup among consumers, the number of its 64 rows among those of
  /// the block, and whether the thread is its warp's first.
  Value consumer, rowGroup, isLeader;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ATTENTION_WARPGROUPATTENTION_H
