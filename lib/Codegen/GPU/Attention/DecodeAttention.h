//===- DecodeAttention.h - attention kernels for few queries ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each warp of the grid has rows of queries, tiles of keys and results of its
// own: a KV split of some rows is added by one warp, tile after tile.
// No warp waits for another. Warps of a block share only its multiprocessor.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ATTENTION_DECODEATTENTION_H
#define POSENC_LIB_CODEGEN_GPU_ATTENTION_DECODEATTENTION_H

#include "AttentionKernel.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::posenc {

/// Returns the tiles of loops that have few queries, for the architecture of
/// the loops; nullopt for other loops.
std::optional<GpuAttentionTiles> getDecodeTiles(const AttentionNestParts &nest);

class DecodeAttention : public AttentionKernel {
public:
  DecodeAttention(OpBuilder &host, const AttentionNestParts &nest,
                  const GpuAttentionTiles &tiles, bool isWide)
      : DecodeAttention(host, nest, tiles, isWide,
                        isWide ? "_attention_decode"
                               : "_attention_decode_narrow") {}

protected:
  DecodeAttention(OpBuilder &host, const AttentionNestParts &nest,
                  const GpuAttentionTiles &tiles, bool isWide, StringRef suffix)
      : AttentionKernel(host, nest, tiles, tiles.getThreads(), isWide, suffix) {
    // Without it, ptxas may spill so that more blocks fit in the registers of a
    // multiprocessor than in its shared memory.
    kernel.getFunction()->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                                  b.getI32IntegerAttr(1));
  }

  /// Bytes of the queries of a warp.
  int64_t getQueryBytes() const {
    return tiles.getQueryBytes(sizes) / tiles.keyParts;
  }
  SharedAddress getQuery(Value row, Value channel) override;
  void syncRows() override { syncTiles(); }
  void syncTiles() override;
  /// With splits, which are stored one after the other.
  bool keepsQueries() override { return hasSplits(); }
  TileRange getTileRange() override;
  void endTiles(Value stage) override;
  void takeLoads() override;

  /// Emits what precedes the first run: finds the warp, and sets `progress`.
  virtual void startWarp();
  /// Starts the copies of the first tiles of a run, or of a split if `where`
  /// has bounds. The scalars of the first split have been cloned.
  virtual void startTiles();
  /// Loads what lanes keep of the queries of a run.
  virtual void takeMatrices() {}

  Value warp;
  /// Values that the warp carries from split to split: by default, the stage of
  /// the next tile.
  SmallVector<Value> progress;
  /// The end of the keys of a run of splits, an index; null if tiles are not
  /// loaded beyond the split.
  Value endOfRun;

private:
  /// The splits with work of a head of a task: their number, and the first one
  /// after split 0, i32.
  struct Splits {
    Value count, second;
  };
  /// A sequence and a tile of its queries: its number, that of the first split
  /// of its first head in the list of all, and the splits of a head; i32.
  struct Task {
    Value number, begin, count, second;
  };

  void emitGrid() override;
  Value getNumBlocks() override;
  void takeTask(Value number, Value head);
  void takeSplit(Value split);
  Splits findSplits(Value number);
  Splits findOwnSplits(Value first);
  Value addLanesBefore(Value value);
  Value emitSplits(const Task &task, Value number, Value end);
  void findThread();
  void findDestinations();
  void storeSplit(const State &state, Value number);
  void emitRun(Value task, Value head, Value split, Value length);

  /// The scalars of the last split of a run.
  IRMapping scalarsOfRun;
  /// The number of tasks, an i32.
  Value numTasks;
  /// The number of the warp's first split in the list of all, and, in a run, of
  /// split 0 of its head relative to that and the split after split 0; i32.
  Value firstOfWarp, originOfRun, secondOfRun;
  /// The outputs and the log-sum-exps of splits.
  AttentionNestParts::Output outputs, logSums;
  /// The rows of all splits, an index.
  Value numSplitRows;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ATTENTION_DECODEATTENTION_H
