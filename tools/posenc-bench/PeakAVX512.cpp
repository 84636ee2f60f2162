//===- PeakAVX512.cpp - FMA and read loops for AVX-512 --------------------===//
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

static double fmaF64(double flops, float factor, float addend) {
  __m512d chains[16], a = _mm512_set1_pd(double(factor));
  __m512d b = _mm512_set1_pd(double(addend));
  for (int chain = 0; chain < 16; ++chain)
    chains[chain] = _mm512_set1_pd(double(chain));
  double done = runChains(flops, 16, chains, [a, b](__m512d x) {
    return _mm512_fmadd_pd(x, a, b);
  });
  for (int chain = 1; chain < 16; ++chain)
    chains[0] = _mm512_add_pd(chains[0], chains[chain]);
  keptSum = static_cast<float>(_mm512_cvtsd_f64(chains[0]));
  return done;
}

static double fmaF32(double flops, float factor, float addend) {
  __m512 chains[16], a = _mm512_set1_ps(factor), b = _mm512_set1_ps(addend);
  for (int chain = 0; chain < 16; ++chain)
    chains[chain] = _mm512_set1_ps(float(chain));
  double done = runChains(
      flops, 32, chains, [a, b](__m512 x) { return _mm512_fmadd_ps(x, a, b); });
  for (int chain = 1; chain < 16; ++chain)
    chains[0] = _mm512_add_ps(chains[0], chains[chain]);
  keptSum = _mm512_cvtss_f32(chains[0]);
  return done;
}

static uint32_t read(const char *data, int64_t bytes, int64_t ahead) {
  __m512i sums[4];
  for (__m512i &sum : sums)
    sum = _mm512_setzero_si512();
  uint32_t rest = readRun(data, bytes, ahead, [&sums](const char *at) {
    for (int i = 0; i < 4; ++i)
      sums[i % 4] =
          _mm512_add_epi32(sums[i % 4], _mm512_loadu_si512(at + 64 * i));
  });
  sums[0] = _mm512_add_epi32(_mm512_add_epi32(sums[0], sums[1]),
                             _mm512_add_epi32(sums[2], sums[3]));
  uint32_t lanes[16];
  __builtin_memcpy(lanes, &sums[0], sizeof(lanes));
  for (uint32_t lane : lanes)
    rest += lane;
  return rest;
}

const PeakLoops mlir::posenc::kAVX512Peaks = {fmaF64, fmaF32, fmaF32, read};
