//===- GpuTiles.h - tiles of attention on GPUs ------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGETINFO_GPUTILES_H
#define POSENC_TARGETINFO_GPUTILES_H

#include <algorithm>
#include <cstdint>
#include <optional>

namespace mlir::posenc {

/// The sizes that determine the tiles of an attention kernel. The number of
/// tokens is none of them, so that a result does not depend on it.
struct GpuAttentionSizes {
  /// Channels of a key and of a value.
  int64_t keyDim = 0, valueDim = 0;
  /// Bytes of an element in shared memory: 2 if tensor cores multiply, 4 or 8
  /// if threads do.
  int64_t elementBytes = 0;
  /// Whether it is causal or has a window.
  bool masksPositions = false;
  /// Whether it has a mask or a region `score`, whose code takes registers.
  bool changesScores = false;
  /// Whether values are the first channels of the keys in memory.
  bool sharesValues = false;
};

/// The tiles of an attention kernel of one block of threads.
struct GpuAttentionTiles {
  /// Warps of the block, and of a group of warps that have the same rows; each
  /// of these has a part of the value's channels.
  int64_t warps = 4, valueParts = 1;
  /// Tiles of 16 rows of a warp, a row being a query of a head.
  int64_t rowTiles = 1;
  /// Keys of a tile, and the tiles of a warp's keys that shared memory holds.
  int64_t keys = 32, stages = 2;
  /// Warps that have rows of queries and tiles of keys of their own, so that
  /// they do not wait for each other.
  int64_t keyParts = 1;
  /// Whether tiles of keys and values are those of bulk copies (TMA): columns
  /// of 64 channels with swizzled rows of 128 bytes, instead of padded rows.
  bool isSwizzled = false;
  /// The channels of a part of the value are a multiple of this.
  int64_t valueUnit = kRowTile;

  static constexpr int64_t kWarp = 32, kRowTile = 16;
  /// Bytes of a swizzled row, alignment of swizzled tiles, and bytes of the
  /// barrier of a stage.
  static constexpr int64_t kRowBytes = 128, kAlignment = 1024,
                           kBarrierBytes = 8;
  int64_t getThreads() const { return kWarp * warps; }
  int64_t getRowsPerWarp() const { return kRowTile * rowTiles; }
  /// Rows of the warps that share tiles of keys.
  int64_t getRows() const {
    return getRowsPerWarp() * warps / (valueParts * keyParts);
  }
  /// Tiles of keys that shared memory holds.
  int64_t getNumStages() const { return stages * keyParts; }
  /// The value's channels of a warp.
  int64_t getValueChannels(const GpuAttentionSizes &sizes) const;

  /// Bytes from one row in shared memory to the next: an odd number of units of
  /// 16 bytes, so that eight rows are in different banks.
  static int64_t getPitch(int64_t dim, int64_t elementBytes);
  /// Bytes of the queries of all warps, of a tile of keys, of a tile of values,
  /// and of all.
  int64_t getQueryBytes(const GpuAttentionSizes &sizes) const;
  int64_t getKeyBytes(const GpuAttentionSizes &sizes) const;
  int64_t getValueBytes(const GpuAttentionSizes &sizes) const;
  int64_t getSharedBytes(const GpuAttentionSizes &sizes) const;
  /// Bytes of tiles and queries, and those in which the warps of swizzled tiles
  /// put accumulators while a tile has infinite values or NaN. Barriers follow.
  int64_t getTileBytes(const GpuAttentionSizes &sizes) const;
  int64_t getSpecialBytes(const GpuAttentionSizes &sizes) const;
};

/// Returns the tiles for GPUs from sm_80 on, or nullopt if no tiles fit in the
/// shared memory that all of these have, 99 KiB per block. With
/// `hasSmallSharedMemory`, tiles for multiprocessors of 100 KiB
/// (CudaTarget::hasSmallSharedMemory) that two blocks share, unless heads are
/// so wide that only the other tiles are useful.
std::optional<GpuAttentionTiles>
chooseAttentionTiles(const GpuAttentionSizes &sizes,
                     bool hasSmallSharedMemory = false);

/// The maximum number of queries of a sequence for which kernels divide the
/// keys into KV splits.
inline constexpr int64_t kMaxDecodedQueries = 16;

/// Keys of a KV split, which one warp adds, those of a split of heads that are
/// too wide for the kernels of few queries, which a block adds, and those of a
/// group of splits, whose results are added in their order before those of
/// groups. All start at multiples from key 0 on. A result does not depend on
/// the warp or block that computes a split.
inline constexpr int64_t kKeysPerSplit = 256, kKeysPerWideSplit = 2048,
                         kKeysPerGroup = 2048;

/// Returns the keys of a KV split of few queries.
int64_t getKeysPerSplit(const GpuAttentionSizes &sizes);

/// Returns the maximum number of queries of a sequence for which kernels divide
/// the keys into KV splits if the sequences of a call differ in their numbers
/// of queries, where `group` heads share keys: those that fill a tile of rows.
/// More would not read a key less often, and each needs memory for the results
/// of all splits.
inline int64_t getMaxRaggedDecodedQueries(int64_t group) {
  return std::max<int64_t>(
      GpuAttentionTiles::kRowTile / std::max<int64_t>(group, 1), 1);
}

/// Returns the tiles for few queries, with `rows` rows in all heads that share
/// keys, or nullopt if none fit. The rows do not determine the tiles of keys.
std::optional<GpuAttentionTiles>
chooseDecodeTiles(const GpuAttentionSizes &sizes, int64_t rows);

/// The same for sm_90a, whose bulk copies fill swizzled tiles.
std::optional<GpuAttentionTiles> chooseRingTiles(const GpuAttentionSizes &sizes,
                                                 int64_t rows);

/// The tiles of an attention kernel for sm_90a: one warpgroup, four warps,
/// copies tiles of keys and values, and others multiply.
struct WarpgroupTiles {
  int64_t consumers = 2, keys = 80, stages = 2;
  /// Registers of a thread of the copying and of the other warpgroups, those
  /// that it has from the launch on if they are equal.
  int64_t producerRegisters = 24, consumerRegisters = 240;
  /// Consumers that have the same 64 rows. Each of these computes all scores,
  /// and has a part of the value's channels.
  int64_t valueParts = 1;
  /// The maximum number of keys of a sequence for which blocks are persistent
  /// and compute several tiles of queries each; 0 for never. Results do not
  /// depend on it.
  int64_t maxPersistentKeys = 0;
  /// Whether values are the first channels of the keys in shared memory, too.
  /// Consumers that have the same rows then compute the scores of a part of the
  /// tile's keys each, and exchange maxima and weights.
  bool sharesValues = false;

  /// Rows of a warpgroup, threads of it, and bytes of a swizzled row.
  static constexpr int64_t kRows = 64, kThreads = 128, kRowBytes = 128;
  /// Barriers of a stage, bytes of one, and of a stage's header.
  static constexpr int64_t kBarriers = 4, kBarrierBytes = 8, kHeaderBytes = 4;
  int64_t getRows() const { return kRows * consumers / valueParts; }
  int64_t getThreads() const { return kThreads * (consumers + 1); }
  bool movesRegisters() const { return producerRegisters < consumerRegisters; }
  /// Columns of 128 bytes of a row of `dim` channels.
  static int64_t getColumns(int64_t dim) { return (dim + 63) / 64; }
  int64_t getQueryBytes(const GpuAttentionSizes &sizes) const {
    return getRows() * kRowBytes * getColumns(sizes.keyDim);
  }
  int64_t getKeyBytes(const GpuAttentionSizes &sizes) const {
    return keys * kRowBytes * getColumns(sizes.keyDim);
  }
  /// Columns of a consumer's part of the value. Columns after the last channel
  /// are zeros.
  int64_t getPartColumns(const GpuAttentionSizes &sizes) const {
    return (getColumns(sizes.valueDim) + valueParts - 1) / valueParts;
  }
  int64_t getPartBytes(const GpuAttentionSizes &sizes) const {
    return keys * kRowBytes * getPartColumns(sizes);
  }
  /// Bytes of a stage's values, without those that are in the keys.
  int64_t getValueBytes(const GpuAttentionSizes &sizes) const {
    return sharesValues ? 0 : valueParts * getPartBytes(sizes);
  }
  /// Keys of which a consumer computes scores, and bytes of the weights of a
  /// tile and of the maxima that consumers exchange.
  int64_t getScoredKeys() const {
    return sharesValues ? keys / valueParts : keys;
  }
  int64_t getWeightBytes() const {
    return sharesValues ? getRows() * keys * 2 : 0;
  }
  int64_t getMaximumBytes() const {
    return sharesValues ? getRows() * valueParts * 4 : 0;
  }
  /// Bytes of the queries, of all stages, and of what consumers exchange, which
  /// comes last. Barriers follow.
  int64_t getTileBytes(const GpuAttentionSizes &sizes) const {
    return getQueryBytes(sizes) +
           stages * (getKeyBytes(sizes) + getValueBytes(sizes)) +
           getWeightBytes() + getMaximumBytes();
  }
  /// Bytes of all, with the barriers and headers of the stages, and to align
  /// the first row.
  int64_t getSharedBytes(const GpuAttentionSizes &sizes) const;
};

/// Returns the tiles for sm_90a, or nullopt if heads are too wide for it.
std::optional<WarpgroupTiles>
chooseWarpgroupTiles(const GpuAttentionSizes &sizes);

} // namespace mlir::posenc

#endif // POSENC_TARGETINFO_GPUTILES_H
