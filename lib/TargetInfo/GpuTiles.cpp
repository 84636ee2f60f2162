//===- GpuTiles.cpp - tiles of attention on GPUs --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/TargetInfo/GpuTiles.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir::posenc;

/// Shared memory of a block on sm_86, sm_89 and sm_120, the smallest of all
/// GPUs from sm_80 on.
static constexpr int64_t kSharedBytes = 99 * 1024;

/// Shared memory of each of two blocks on a multiprocessor of these: half of
/// 100 KiB without 1 KiB that the system takes of each block.
static constexpr int64_t kHalfSharedBytes = 49 * 1024;

/// Shared memory of a block on sm_90.
static constexpr int64_t kSharedBytes90 = 227 * 1024;

/// Registers of a thread that the accumulators and scores may take. The other
/// registers of at most 255 hold operands and addresses.
static constexpr int64_t kMaxRegisters = 168;

int64_t
GpuAttentionTiles::getValueChannels(const GpuAttentionSizes &sizes) const {
  return llvm::alignTo(llvm::divideCeil(sizes.valueDim, valueParts), valueUnit);
}

int64_t GpuAttentionTiles::getPitch(int64_t dim, int64_t elementBytes) {
  constexpr int64_t kUnit = 16;
  int64_t units =
      llvm::divideCeil(llvm::alignTo(dim, kRowTile) * elementBytes, kUnit);
  return (units | 1) * kUnit;
}

int64_t GpuAttentionTiles::getQueryBytes(const GpuAttentionSizes &sizes) const {
  return keyParts * getRows() * getPitch(sizes.keyDim, sizes.elementBytes);
}

/// Returns the bytes of a row in all columns of 128 bytes.
static int64_t getSwizzledBytes(int64_t dim, int64_t elementBytes) {
  return llvm::alignTo(dim * elementBytes, GpuAttentionTiles::kRowBytes);
}

int64_t GpuAttentionTiles::getKeyBytes(const GpuAttentionSizes &sizes) const {
  if (isSwizzled)
    return keys * getSwizzledBytes(sizes.keyDim, sizes.elementBytes);
  return keys * getPitch(sizes.keyDim, sizes.elementBytes);
}

int64_t GpuAttentionTiles::getValueBytes(const GpuAttentionSizes &sizes) const {
  if (isSwizzled)
    return keys * getSwizzledBytes(sizes.valueDim, sizes.elementBytes);
  return keys *
         getPitch(valueParts * getValueChannels(sizes), sizes.elementBytes);
}

int64_t GpuAttentionTiles::getTileBytes(const GpuAttentionSizes &sizes) const {
  return getQueryBytes(sizes) +
         getNumStages() * (getKeyBytes(sizes) + getValueBytes(sizes));
}

int64_t
GpuAttentionTiles::getSpecialBytes(const GpuAttentionSizes &sizes) const {
  // Other accumulators stay in registers.
  constexpr int64_t kMaxChannels = 192;
  int64_t channels = getValueChannels(sizes);
  if (!isSwizzled || channels <= kMaxChannels)
    return 0;
  return warps * getRowsPerWarp() * channels * 4;
}

int64_t
GpuAttentionTiles::getSharedBytes(const GpuAttentionSizes &sizes) const {
  int64_t others = isSwizzled ? kAlignment + getSpecialBytes(sizes) +
                                    getNumStages() * kBarrierBytes
                              : 0;
  return others + getTileBytes(sizes);
}

/// Returns the registers of a thread's accumulators and scores.
static int64_t countRegisters(const GpuAttentionTiles &tiles,
                              const GpuAttentionSizes &sizes) {
  // A thread has 4 of the 16 x 8 elements of a fragment.
  int64_t columns = tiles.getValueChannels(sizes) + tiles.keys;
  return tiles.rowTiles * columns / 8 * 4 * (sizes.elementBytes == 8 ? 2 : 1);
}

std::optional<GpuAttentionTiles>
mlir::posenc::chooseAttentionTiles(const GpuAttentionSizes &sizes,
                                   bool hasSmallSharedMemory) {
  // In order of preference: two tiles of rows halve the reads of shared memory,
  // and larger tiles of keys the number of barriers.
  static constexpr GpuAttentionTiles kTensorCores[] = {
      {4, 1, 2, 64, 2}, {4, 1, 2, 32, 2}, {4, 1, 1, 32, 2}, {4, 1, 1, 16, 2},
      {4, 2, 1, 16, 2}, {4, 4, 1, 16, 2}, {4, 4, 1, 16, 1}};
  static constexpr GpuAttentionTiles kThreads[] = {
      {4, 1, 1, 16, 2}, {2, 1, 1, 16, 2}, {2, 1, 1, 8, 2},
      {1, 1, 1, 8, 2},  {2, 2, 1, 8, 2},  {4, 4, 1, 8, 1}};
  // Two blocks of four warps should hide each other's barriers, so that one
  // stage is enough. Tiles that divide the channels among warps are none of
  // these: the warps would compute the same scores more often.
  static constexpr GpuAttentionTiles kHalfOfTensorCores[] = {{4, 1, 2, 64, 2},
                                                             {4, 1, 2, 32, 2},
                                                             {4, 1, 1, 32, 2},
                                                             {4, 1, 1, 16, 2},
                                                             {4, 1, 1, 16, 1}};
  static constexpr GpuAttentionTiles kHalfOfThreads[] = {
      {4, 1, 1, 16, 2}, {4, 1, 1, 8, 2}, {4, 1, 1, 8, 1}};
  bool isTensorCore = sizes.elementBytes == 2;
  auto choose = [&](llvm::ArrayRef<GpuAttentionTiles> all,
                    int64_t sharedBytes) -> std::optional<GpuAttentionTiles> {
    for (const GpuAttentionTiles &tiles : all)
      if (tiles.getSharedBytes(sizes) <= sharedBytes &&
          countRegisters(tiles, sizes) <= kMaxRegisters)
        return tiles;
    return std::nullopt;
  };
  std::optional<GpuAttentionTiles> half;
  if (hasSmallSharedMemory)
    half = isTensorCore ? choose(kHalfOfTensorCores, kHalfSharedBytes)
                        : choose(kHalfOfThreads, kHalfSharedBytes);
  if (half)
    return half;
  return isTensorCore ? choose(kTensorCores, kSharedBytes)
                      : choose(kThreads, kSharedBytes);
}

/// Returns the first of some tiles that fits in `sharedBytes` and in the
/// registers, with two tiles of rows if one has too few rows and both fit.
static std::optional<GpuAttentionTiles>
chooseFitting(llvm::ArrayRef<GpuAttentionTiles> all,
              const GpuAttentionSizes &sizes, int64_t rows,
              int64_t sharedBytes) {
  auto fits = [&](const GpuAttentionTiles &tiles) {
    return tiles.getSharedBytes(sizes) <= sharedBytes &&
           countRegisters(tiles, sizes) <= kMaxRegisters;
  };
  for (const GpuAttentionTiles &tiles : all)
    if (fits(tiles)) {
      GpuAttentionTiles twice = tiles;
      twice.rowTiles = 2;
      return rows > tiles.getRows() && fits(twice) ? twice : tiles;
    }
  return std::nullopt;
}

std::optional<GpuAttentionTiles>
mlir::posenc::chooseDecodeTiles(const GpuAttentionSizes &sizes, int64_t rows) {
  // Each warp has two tiles of its own, so that no barrier of the block ends a
  // tile, and the reads of a multiprocessor are many.
  static constexpr GpuAttentionTiles kTensorCores[] = {{4, 1, 1, 32, 2, 4},
                                                       {4, 1, 1, 16, 2, 4},
                                                       {2, 1, 1, 16, 2, 2},
                                                       {1, 1, 1, 16, 2, 1}};
  static constexpr GpuAttentionTiles kThreads[] = {{4, 1, 1, 16, 2, 4},
                                                   {4, 1, 1, 8, 2, 4},
                                                   {2, 1, 1, 8, 2, 2},
                                                   {1, 1, 1, 8, 2, 1}};
  llvm::ArrayRef<GpuAttentionTiles> all(kThreads);
  if (sizes.elementBytes == 2)
    all = kTensorCores;
  return chooseFitting(all, sizes, rows, kSharedBytes);
}

std::optional<GpuAttentionTiles>
mlir::posenc::chooseRingTiles(const GpuAttentionSizes &sizes, int64_t rows) {
  static constexpr GpuAttentionTiles kTensorCores[] = {
      {4, 1, 1, 32, 2, 4, /*isSwizzled=*/true},
      {4, 1, 1, 16, 2, 4, /*isSwizzled=*/true}};
  if (sizes.elementBytes != 2)
    return std::nullopt;
  return chooseFitting(kTensorCores, sizes, rows, kSharedBytes90);
}

int64_t mlir::posenc::getKeysPerSplit(const GpuAttentionSizes &sizes) {
  // Wherever bulk copies serve, the tiles of sm_80 do, too, which calls that
  // bulk copies cannot serve fall back to.
  return chooseDecodeTiles(sizes, GpuAttentionTiles::kRowTile)
             ? kKeysPerSplit
             : kKeysPerWideSplit;
}

int64_t WarpgroupTiles::getSharedBytes(const GpuAttentionSizes &sizes) const {
  constexpr int64_t kAlignment = 1024;
  return kAlignment + getTileBytes(sizes) +
         stages * (kBarriers * kBarrierBytes + kHeaderBytes);
}

std::optional<WarpgroupTiles>
mlir::posenc::chooseWarpgroupTiles(const GpuAttentionSizes &sizes) {
  // The tiles for heads up to a width, those if positions mask keys, whose code
  // takes more registers, and those if a mask or a region changes scores, which
  // takes still more. Three warpgroups hide each other's latency, but have 160
  // registers each. Persistent blocks hide the start of a tile of queries,
  // which matters if its loop over keys is short. Prototypes whose blocks take
  // tiles from a counter gain 4 to 8 % up to 1,024 keys, nothing for 2,048, and
  // lose 1 to 3 % for 8,192 (H200).
  constexpr int64_t kFewKeys = 1024;
  struct Row {
    int64_t maxDim;
    WarpgroupTiles tiles, masked, changed;
  };
  static constexpr Row kRows[] = {
      {64,
       {3, 128, 3, 32, 160, 1, kFewKeys},
       {3, 128, 3, 32, 160, 1, kFewKeys},
       {2, 128, 3, 24, 240}},
      {128,
       {3, 80, 3, 32, 160, 1, kFewKeys},
       {3, 80, 3, 32, 160, 1, kFewKeys},
       {2, 128, 2, 24, 240}},
      {192, {2, 96, 2, 24, 240}, {2, 96, 2, 24, 240}, {2, 96, 2, 24, 240}},
      {256, {2, 80, 2, 24, 240}, {2, 64, 2, 24, 240}, {2, 64, 2, 24, 240}}};
  // The accumulators of more channels do not fit in the registers of one
  // warpgroup: two or three share the rows. The queries of wide keys leave no
  // shared memory for more rows either. Three spill 36 to 116 bytes, most
  // of them in tiles with masked pairs.
  struct WideRow {
    int64_t maxKeyDim, maxValueDim;
    WarpgroupTiles tiles;
  };
  static constexpr WideRow kWideRows[] = {{576, 128, {2, 32, 2, 168, 168, 2}},
                                          {320, 320, {2, 64, 2, 40, 232, 2}},
                                          {384, 384, {2, 48, 2, 40, 232, 2}},
                                          {576, 512, {2, 32, 2, 40, 232, 2}},
                                          {576, 576, {3, 32, 2, 32, 160, 3}}};
  // Two consumers have the scores of 32 of 64 keys each, and half of the
  // value's channels. The queries of 576 channels and two stages fill shared
  // memory.
  static constexpr WarpgroupTiles kSharedValues = {
      2, 64, 2, 40, 232, 2, 0, /*sharesValues=*/true};
  constexpr int64_t kMaxUnsharedDim = 256, kMaxSharedDim = 512;
  if (sizes.elementBytes != 2)
    return std::nullopt;
  // The keys have all columns of both parts.
  if (sizes.sharesValues && sizes.valueDim > kMaxUnsharedDim &&
      sizes.valueDim <= kMaxSharedDim &&
      kSharedValues.valueParts * kSharedValues.getPartColumns(sizes) <=
          WarpgroupTiles::getColumns(sizes.keyDim) &&
      kSharedValues.getSharedBytes(sizes) <= kSharedBytes90)
    return kSharedValues;
  for (const Row &row : kRows)
    if (std::max(sizes.keyDim, sizes.valueDim) <= row.maxDim)
      return sizes.changesScores    ? row.changed
             : sizes.masksPositions ? row.masked
                                    : row.tiles;
  for (const WideRow &row : kWideRows)
    if (sizes.keyDim <= row.maxKeyDim && sizes.valueDim <= row.maxValueDim)
      return row.tiles;
  return std::nullopt;
}
