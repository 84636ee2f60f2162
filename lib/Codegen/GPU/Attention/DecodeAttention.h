//===- DecodeAttention.h - attention kernels for few queries ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each warp of the grid has rows of queries, tiles of keys and results of its
// own: a piece of the keys of some rows is added by one warp, tile after tile.
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
  /// With pieces, which are stored one after the other.
  bool keepsQueries() override { return hasPieces(); }
  TileRange getTileRange() override;
  void endTiles(Value stage) override;
  void takeLoads() override;

  /// Emits what precedes the first run: finds the warp, and sets `progress`.
  virtual void startWarp();
  /// Starts the copies of the first tiles of a run, or of a piece if `where`
  /// has bounds. The scalars of the first piece have been cloned.
  virtual void startTiles();
  /// Loads what lanes keep of the queries of a run.
  virtual void takeMatrices() {}

  Value warp;
  /// Values that the warp carries from piece to piece: by default, the stage of
  /// the next tile.
  SmallVector<Value> progress;
  /// The end of the keys of a run of pieces, an index; null if tiles are not
  /// loaded beyond the piece.
  Value endOfRun;

private:
  /// The pieces with work of a head of a task: their number, and the first one
  /// after piece 0, i32.
  struct Pieces {
    Value count, second;
  };
  /// A sequence and a tile of its queries: its number, that of the first piece
  /// of its first head in the list of all, and the pieces of a head; i32.
  struct Task {
    Value number, begin, count, second;
  };

  void emitGrid() override;
  Value getNumBlocks() override;
  void takeTask(Value number, Value head);
  void takePiece(Value piece);
  Pieces findPieces(Value number);
  Pieces findOwnPieces(Value first);
  Value addLanesBefore(Value value);
  Value emitPieces(const Task &task, Value number, Value end);
  void findThread();
  void findDestinations();
  void storePiece(const State &state, Value number);
  void emitRun(Value task, Value head, Value piece, Value length);

  /// The scalars of the last piece of a run.
  IRMapping scalarsOfRun;
  /// The number of tasks, an i32.
  Value numTasks;
  /// The number of the warp's first piece in the list of all, and, in a run, of
  /// piece 0 of its head relative to that and the piece after piece 0; i32.
  Value firstOfWarp, originOfRun, secondOfRun;
  /// The outputs and the log-sum-exps of pieces.
  AttentionNestParts::Output outputs, logSums;
  /// The rows of all pieces, an index.
  Value numPieceRows;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ATTENTION_DECODEATTENTION_H
