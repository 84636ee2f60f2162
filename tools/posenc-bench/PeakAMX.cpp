//===- PeakAMX.cpp - FMA loops with TDPBF16PS -----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PeakLoops.h"

#include <immintrin.h>

using namespace mlir::posenc;

namespace {
/// The operand of LDTILECFG.
struct alignas(64) TileConfig {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t bytesPerRow[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
} // namespace

/// Results are stored here, so that the compiler keeps the computation.
static volatile float keptSum;

/// TDPBF16PS adds 32 products to each of 16 x 16 f32: 16384 operations.
double mlir::posenc::multiplyTiles(double flops, float factor, float addend) {
  alignas(64) float data[16 * 16];
  for (float &x : data)
    x = addend * factor;
  const TileConfig config;
  _tile_loadconfig(&config);
  _tile_loadd(0, data, 64);
  _tile_loadd(1, data, 64);
  _tile_loadd(2, data, 64);
  _tile_loadd(3, data, 64);
  _tile_loadd(4, data, 64);
  _tile_loadd(5, data, 64);
  constexpr double flopsPerRound = 4 * 16384;
  int64_t rounds = static_cast<int64_t>(flops / flopsPerRound) + 1;
  for (int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_stored(0, data, 64);
  _tile_stored(1, data, 64);
  _tile_stored(2, data, 64);
  _tile_stored(3, data, 64);
  _tile_release();
  keptSum = data[0];
  return static_cast<double>(rounds) * flopsPerRound;
}
