//===- RingDecode.h - kernels for few queries on sm_90a ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A DecodeAttention whose tiles bulk copies (TMA) write. Each warp has a ring
// of stages of its own, with one barrier for each. The warp's first lane starts
// the copies of a tile of keys and values, all lanes wait for the barrier and
// multiply the tile, and after a barrier of the warp the first lane starts the
// copies of the next tile of that stage. So all stages but one are being filled
// while a tile is multiplied, and all while the warp waits. Copies go on into
// the next KV split of the same queries.
//
// Shared memory: stages of keys and values in swizzled columns (TileCopies.h),
// queries in padded rows, barriers.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ATTENTION_RINGDECODE_H
#define POSENC_LIB_CODEGEN_GPU_ATTENTION_RINGDECODE_H

#include "DecodeAttention.h"
#include "WarpgroupBuilder.h"

namespace mlir::posenc {

class RingDecode final : public DecodeAttention {
public:
  /// `tiles` are swizzled.
  RingDecode(OpBuilder &host, const AttentionNestParts &nest,
             const GpuAttentionTiles &tiles);

private:
  void startWarp() override;
  void startTiles() override;
  void takeMatrices() override;
  void endTiles(Value stage) override {}
  State emitTiles(State state) override;
  SharedAddress getQuery(Value row, Value channel) override;
  SmallVector<Value> loadQueryMatrices(int64_t rowTile,
                                       int64_t channel) override;
  SharedAddress getKeys(const Tile &tile, int64_t key,
                        int64_t channel) override;
  SharedAddress getValues(const Tile &tile, int64_t key,
                          int64_t channel) override;
  Tile findTile(Value stage) override;
  SmallVector<Value> addSpecialValues(const Tile &tile, GetWeights getWeights,
                                      ArrayRef<Value> before) override;

  int64_t getStageBytes() const {
    return tiles.getKeyBytes(sizes) + tiles.getValueBytes(sizes);
  }
  Value getBarrier(Value stage);
  SharedAddress getSwizzled(Value first, Value row, Value unit, int64_t key,
                            int64_t channel);
  void mapKey(Value key);
  SmallVector<Value> findBoxes();
  void copyBoxes(ArrayRef<Value> boxes, Value stage);
  SmallVector<Value> findPages(Value key);
  void startTile(Value key, Value stage, ArrayRef<Value> pages);
  Value startVisible(Value stage);
  State addTileAt(Value key, Value stage, ValueRange before);
  State emitVisibleTiles(State state);
  std::pair<Value, Value> getNext(Value stage, Value phase);

  WarpgroupBuilder w;
  Value keyMap, valueMap;
  /// The rows of a box of keys or values, an index.
  Value boxRows;
  /// The warp's first stage and its first barrier: addresses in shared memory.
  Value ring, barriers;
  /// The offset from the symbol of shared memory to its first aligned address.
  Value baseOffset;
  /// Whether the thread is its warp's first.
  Value isLeader;
  /// The end of the keys that are copied, and the distance of tiles: i32.
  Value end, step;
  /// If `where` has bounds, the tiles that have not been started, and those
  /// that are being copied, i32: the first key, which is even, plus 1 if
  /// `where` is known to be true, or -1 if there is none.
  VisibleTiles visible;
  SmallVector<Value> started;
  /// The queries' matrices, by tile of rows and channels; empty if they do not
  /// fit in registers.
  SmallVector<SmallVector<Value>> queries;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ATTENTION_RINGDECODE_H
