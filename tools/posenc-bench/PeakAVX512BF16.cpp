//===- PeakAVX512BF16.cpp - FMA loops with VDPBF16PS ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PeakLoops.h"

#include <immintrin.h>

using namespace mlir::posenc;

/// Results are stored here, so that the compiler keeps the computation.
static volatile float keptSum;

/// VDPBF16PS adds two products to each of the 16 f32 lanes: 64 operations.
static double dotBF16(double flops, float factor, float addend) {
  __m512 chains[16];
  for (int chain = 0; chain < 16; ++chain)
    chains[chain] = _mm512_set1_ps(float(chain));
  __m512bh a =
      _mm512_cvtne2ps_pbh(_mm512_set1_ps(factor), _mm512_set1_ps(factor));
  __m512bh b =
      _mm512_cvtne2ps_pbh(_mm512_set1_ps(addend), _mm512_set1_ps(addend));
  double done = runChains(flops, 64, chains, [a, b](__m512 x) {
    return _mm512_dpbf16_ps(x, a, b);
  });
  for (int chain = 1; chain < 16; ++chain)
    chains[0] = _mm512_add_ps(chains[0], chains[chain]);
  keptSum = _mm512_cvtss_f32(chains[0]);
  return done;
}

static double fmaF64(double flops, float factor, float addend) {
  return kAVX512Peaks.f64(flops, factor, addend);
}

static double fmaF32(double flops, float factor, float addend) {
  return kAVX512Peaks.f32(flops, factor, addend);
}

static uint32_t read(const char *data, int64_t bytes, int64_t ahead) {
  return kAVX512Peaks.read(data, bytes, ahead);
}

const PeakLoops mlir::posenc::kAVX512BF16Peaks = {fmaF64, fmaF32, dotBF16,
                                                  read};
