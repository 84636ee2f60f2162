//===- DecodeAttention.h - attention kernels for few queries ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All warps of a block have the same rows, and each has its own tiles of keys,
// copies them itself and waits for nobody: warp w of n has the tiles t with
// t mod n = w, counted from key 0. After its last tile, a warp puts its state
// into shared memory. Then each warp adds the states of all, in their order,
// for its part of the value's channels.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_DECODEATTENTION_H
#define POSENC_LIB_CODEGEN_GPU_DECODEATTENTION_H

#include "AttentionKernel.h"

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
      : AttentionKernel(host, nest, tiles, tiles.getThreads(), isWide, suffix),
        sharedBytes(tiles.getSharedBytes(sizes)) {}

  /// Emits what precedes the loads of queries.
  virtual void startTiles() {}
  void syncTiles() override;
  TileRange getTileRange() override;

  void startBlock() override;

  Value warp;

private:
  void emitBlock() override;
  int64_t getSharedBytes() const override { return sharedBytes; }
  State createNeutralState();
  int64_t getNumFragments() const;
  SharedAddress getFragment(int64_t warp, Value number);
  SharedAddress getSums(Value warp);
  void storeState(const State &state);
  State mergeStates();

  int64_t sharedBytes;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_DECODEATTENTION_H
