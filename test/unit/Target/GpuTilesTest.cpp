//===- GpuTilesTest.cpp - tiles of attention on GPUs ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/TargetInfo/GpuTiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

using namespace mlir::posenc;

/// The widest heads that have kernels.
constexpr int64_t kMaxDim = 576;

/// Registers of a thread, and those that it needs for operands and addresses.
constexpr int64_t kRegisters = 255, kOthers = 32;

TEST(GpuTiles, AllHeadsFitInSharedMemory) {
  for (int64_t bytes : {2, 4, 8})
    for (int64_t dim = 8; dim <= kMaxDim; dim += 8) {
      SCOPED_TRACE(testing::Message() << dim << " of " << bytes << " bytes");
      GpuAttentionSizes sizes{dim, dim, bytes};
      std::optional<GpuAttentionTiles> tiles = chooseAttentionTiles(sizes);
      // Two stages of the smallest tiles of f64 need more than 99 KiB from here
      // on.
      EXPECT_EQ(tiles.has_value(), bytes < 8 || dim <= 384);
      if (!tiles)
        continue;
      EXPECT_LE(tiles->getSharedBytes(sizes), 99 * 1024);
      EXPECT_GE(tiles->getValueChannels(sizes) * tiles->valueParts, dim);
      // Copies have 16 bytes; loads by ldmatrix read 16 columns.
      EXPECT_EQ(tiles->getPitch(dim, bytes) % 16, 0);
      EXPECT_GE(tiles->getPitch(dim, bytes), dim * bytes);
      EXPECT_EQ(tiles->keys % 8, 0);
      EXPECT_EQ(tiles->warps % tiles->valueParts, 0);
      // Results, scores and, on tensor cores, their weights of two per
      // register.
      int64_t columns = tiles->getValueChannels(sizes) + tiles->keys;
      int64_t registers =
          tiles->rowTiles * columns / 8 * 4 * (bytes == 8 ? 2 : 1);
      EXPECT_LE(registers + kOthers, kRegisters);
    }
}

// Two blocks share the 100 KiB of a multiprocessor of sm_86, sm_89 and sm_120,
// of each of which the system takes 1 KiB. Wider heads have the tiles of all
// GPUs.
TEST(GpuTiles, TwoBlocksShareSmallSharedMemory) {
  constexpr int64_t kMultiprocessor = 100 * 1024, kSystem = 1024;
  for (auto [bytes, maxDim] :
       {std::pair<int64_t, int64_t>{2, 240}, {4, 144}, {8, 64}})
    for (int64_t keyDim = 8; keyDim <= kMaxDim; keyDim += 8)
      for (int64_t valueDim : {keyDim, int64_t(64)}) {
        SCOPED_TRACE(testing::Message() << keyDim << " and " << valueDim
                                        << " of " << bytes << " bytes");
        GpuAttentionSizes sizes{keyDim, valueDim, bytes};
        std::optional<GpuAttentionTiles> all = chooseAttentionTiles(sizes),
                                         small =
                                             chooseAttentionTiles(sizes, true);
        ASSERT_EQ(small.has_value(), all.has_value());
        if (!small)
          continue;
        bool areTwo =
            2 * (small->getSharedBytes(sizes) + kSystem) <= kMultiprocessor;
        if (std::max(keyDim, valueDim) <= maxDim) {
          EXPECT_TRUE(areTwo);
          EXPECT_EQ(small->warps, 4);
          EXPECT_EQ(small->valueParts, 1);
          EXPECT_EQ(small->keys % 8, 0);
          EXPECT_EQ(small->keyParts, 1);
        } else if (!areTwo) {
          EXPECT_EQ(small->getSharedBytes(sizes), all->getSharedBytes(sizes));
          EXPECT_EQ(small->keys, all->keys);
        }
      }
  GpuAttentionSizes half{128, 128, 2};
  EXPECT_EQ(chooseAttentionTiles(half, true)->getRows(), 64);
  EXPECT_GT(chooseAttentionTiles(half)->getSharedBytes(half), 49 * 1024);
}

TEST(GpuTiles, TilesOfTensorCores) {
  auto choose = [](int64_t keyDim, int64_t valueDim) {
    return *chooseAttentionTiles({keyDim, valueDim, 2});
  };
  // Two tiles of rows per warp halve the reads of shared memory.
  EXPECT_EQ(choose(64, 64).getRows(), 128);
  EXPECT_EQ(choose(64, 64).keys, 64);
  EXPECT_EQ(choose(128, 128).getRows(), 128);
  EXPECT_EQ(choose(128, 128).keys, 32);
  EXPECT_EQ(choose(256, 256).getRows(), 64);
  // Warps share the rows of latent attention, and the channels are divided.
  EXPECT_GT(choose(576, 512).valueParts, 1);
}

TEST(GpuTiles, RowsDoNotChangeTheKeysOfDecodeTiles) {
  for (int64_t bytes : {2, 4, 8})
    for (int64_t dim = 8; dim <= kMaxDim; dim += 8) {
      SCOPED_TRACE(testing::Message() << dim << " of " << bytes << " bytes");
      GpuAttentionSizes sizes{dim, dim, bytes};
      std::optional<GpuAttentionTiles> few = chooseDecodeTiles(sizes, 16),
                                       many = chooseDecodeTiles(sizes, 17);
      EXPECT_EQ(few.has_value(), many.has_value());
      EXPECT_TRUE(few || dim > 128);
      if (!few)
        continue;
      EXPECT_EQ(few->getRows(), 16);
      EXPECT_EQ(few->keys, many->keys);
      EXPECT_EQ(few->keyParts, many->keyParts);
      EXPECT_EQ(getKeysPerSplit(sizes), kKeysPerSplit);
      EXPECT_EQ(kKeysPerSplit % few->keys, 0);
      for (const GpuAttentionTiles &tiles : {*few, *many}) {
        EXPECT_LE(tiles.getSharedBytes(sizes), 99 * 1024);
        // Each warp has queries of its own.
        EXPECT_EQ(tiles.keyParts, tiles.warps);
        EXPECT_EQ(tiles.getQueryBytes(sizes),
                  tiles.warps * tiles.getRows() *
                      GpuAttentionTiles::getPitch(dim, bytes));
      }
    }
}

TEST(GpuTiles, RingsHaveTheirSharedMemoryAndRegisters) {
  for (int64_t dim = 8; dim <= kMaxDim; dim += 8) {
    SCOPED_TRACE(dim);
    GpuAttentionSizes sizes{dim, dim, 2};
    std::optional<GpuAttentionTiles> few = chooseRingTiles(sizes, 16),
                                     many = chooseRingTiles(sizes, 17);
    EXPECT_EQ(few.has_value(), many.has_value());
    EXPECT_TRUE(few || dim > 256);
    if (!few)
      continue;
    EXPECT_EQ(few->getRows(), 16);
    EXPECT_EQ(few->keys, many->keys);
    EXPECT_EQ(few->keyParts, many->keyParts);
    EXPECT_EQ(getKeysPerSplit(sizes), kKeysPerSplit);
    EXPECT_EQ(kKeysPerSplit % few->keys, 0);
    for (const GpuAttentionTiles &tiles : {*few, *many}) {
      EXPECT_LE(tiles.getSharedBytes(sizes), 227 * 1024);
      // The next tile must be aligned as the swizzle's pattern is.
      EXPECT_EQ(tiles.getKeyBytes(sizes) % GpuAttentionTiles::kAlignment, 0);
      EXPECT_EQ(tiles.getValueBytes(sizes) % GpuAttentionTiles::kAlignment, 0);
      EXPECT_EQ(tiles.getTileBytes(sizes) % GpuAttentionTiles::kBarrierBytes,
                0);
    }
  }
  EXPECT_EQ(chooseRingTiles({128, 128, 2}, 4)->keys, 32);
  EXPECT_FALSE(chooseRingTiles({128, 128, 4}, 4));
  // MLA.
  EXPECT_FALSE(chooseRingTiles({576, 512, 2}, 16));
}

TEST(GpuTiles, WarpgroupsHaveTheirSharedMemoryAndRegisters) {
  for (int64_t i = 0; i < 3 * kMaxDim / 8; ++i) {
    int64_t dim = 8 * (i / 3 + 1);
    SCOPED_TRACE(testing::Message() << dim << ", form " << i % 3);
    GpuAttentionSizes sizes{dim, dim, 2};
    sizes.masksPositions = i % 3 == 1;
    sizes.changesScores = i % 3 == 2;
    std::optional<WarpgroupTiles> tiles = chooseWarpgroupTiles(sizes);
    ASSERT_TRUE(tiles);
    EXPECT_EQ(tiles->valueParts > 1, dim > 256);
    EXPECT_EQ(tiles->consumers % tiles->valueParts, 0);
    EXPECT_LE(tiles->getSharedBytes(sizes), 227 * 1024);
    EXPECT_GE(tiles->getColumns(dim) * 64, dim);
    // wgmma multiplies 8 to 256 columns, and 16 keys at a time.
    EXPECT_EQ(tiles->keys % 16, 0);
    EXPECT_LE(tiles->keys, 256);
    // The registers that a block has from its launch on, the same number for
    // each thread, in the units of setmaxnreg. The wait for more never ends.
    int64_t registers = 65536 / tiles->getThreads() / 8 * 8;
    EXPECT_EQ(tiles->producerRegisters % 8, 0);
    EXPECT_EQ(tiles->consumerRegisters % 8, 0);
    EXPECT_LE(tiles->producerRegisters +
                  tiles->consumers * tiles->consumerRegisters,
              registers * (tiles->consumers + 1));
    // The loop over tiles of queries takes registers that others lack.
    EXPECT_EQ(tiles->maxPersistentKeys > 0, dim <= 128 && i % 3 != 2);
    // Results and scores in f32, and weights of two keys per register.
    int64_t channels = dim;
    if (tiles->valueParts > 1) {
      channels = 64 * tiles->getPartColumns(sizes);
      EXPECT_GE(channels * tiles->valueParts, dim);
      EXPECT_LE(channels, 256);
    }
    EXPECT_LE(channels / 2 + tiles->keys / 2 + tiles->keys / 4 + kOthers,
              tiles->consumerRegisters);
  }
}

TEST(GpuTiles, WarpgroupsMultiplyTwoBytes) {
  for (int64_t bytes : {4, 8})
    EXPECT_FALSE(chooseWarpgroupTiles({64, 64, bytes}));
}

TEST(GpuTiles, WarpgroupsShareTheRowsOfWideHeads) {
  auto choose = [](int64_t keyDim, int64_t valueDim) {
    return chooseWarpgroupTiles({keyDim, valueDim, 2});
  };
  EXPECT_EQ(choose(256, 256)->valueParts, 1);
  EXPECT_EQ(choose(576, 512)->valueParts, 2);
  EXPECT_EQ(choose(576, 512)->getRows(), 64);
  EXPECT_EQ(choose(576, 520)->valueParts, 3);
  EXPECT_EQ(choose(64, 320)->valueParts, 2);
  EXPECT_FALSE(choose(584, 64));
  EXPECT_FALSE(choose(64, 584));
  // All widths fit in shared memory; parts begin with a column of 64 channels.
  for (int64_t keyDim = 8; keyDim <= kMaxDim; keyDim += 8)
    for (int64_t valueDim = 8; valueDim <= kMaxDim; valueDim += 8)
      EXPECT_LE(choose(keyDim, valueDim)->getSharedBytes({keyDim, valueDim, 2}),
                227 * 1024)
          << keyDim << ", " << valueDim;
}

TEST(GpuTiles, PitchesSpreadRowsOverBanks) {
  for (int64_t dim = 8; dim <= kMaxDim; dim += 8)
    EXPECT_EQ(GpuAttentionTiles::getPitch(dim, 2) / 16 % 2, 1);
}
