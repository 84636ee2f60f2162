//===- ScaleAVX2.cpp - in-place scaling and copies for AVX2 ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScaleLoops.h"

#include <immintrin.h>

using namespace mlir::posenc;

static void scaleF64(Rows rows, float factor) {
  scaleRows(rows, factor, [](char *at, float factor) {
    double *p = reinterpret_cast<double *>(at);
    __m256d a = _mm256_set1_pd(static_cast<double>(factor));
    _mm256_storeu_pd(p, _mm256_mul_pd(_mm256_loadu_pd(p), a));
    _mm256_storeu_pd(p + 4, _mm256_mul_pd(_mm256_loadu_pd(p + 4), a));
  });
}

static void scaleF32(Rows rows, float factor) {
  scaleRows(rows, factor, [](char *at, float factor) {
    float *p = reinterpret_cast<float *>(at);
    __m256 a = _mm256_set1_ps(factor);
    _mm256_storeu_ps(p, _mm256_mul_ps(_mm256_loadu_ps(p), a));
    _mm256_storeu_ps(p + 8, _mm256_mul_ps(_mm256_loadu_ps(p + 8), a));
  });
}

static void scaleF16(Rows rows, float factor) {
  scaleRows(rows, factor, [](char *at, float factor) {
    __m128i *p = reinterpret_cast<__m128i *>(at);
    __m256 a = _mm256_set1_ps(factor);
    for (int i = 0; i < 4; ++i) {
      __m256 x = _mm256_cvtph_ps(_mm_loadu_si128(p + i));
      _mm_storeu_si128(p + i, _mm256_cvtps_ph(_mm256_mul_ps(x, a),
                                              _MM_FROUND_TO_NEAREST_INT));
    }
  });
}

/// Rounds to bf16, to nearest even. The result is in the upper 16 bits of each
/// lane; the lower bits are undefined.
static __m256i roundToBF16(__m256 x) {
  __m256i bits = _mm256_castps_si256(x);
  __m256i odd =
      _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  return _mm256_add_epi32(_mm256_add_epi32(bits, odd),
                          _mm256_set1_epi32(0x7fff));
}

static void scaleBF16(Rows rows, float factor) {
  scaleRows(rows, factor, [](char *at, float factor) {
    __m256i *p = reinterpret_cast<__m256i *>(at);
    __m256 a = _mm256_set1_ps(factor);
    for (int i = 0; i < 2; ++i) {
      // Even and odd elements, widened and narrowed within their 32 bits.
      __m256i both = _mm256_loadu_si256(p + i);
      __m256 even = _mm256_castsi256_ps(_mm256_slli_epi32(both, 16));
      __m256 odd = _mm256_castsi256_ps(
          _mm256_and_si256(both, _mm256_set1_epi32(int(0xffff0000))));
      __m256i low = _mm256_srli_epi32(roundToBF16(_mm256_mul_ps(even, a)), 16);
      __m256i high = roundToBF16(_mm256_mul_ps(odd, a));
      _mm256_storeu_si256(p + i, _mm256_blend_epi16(low, high, 0xaa));
    }
  });
}

const ScaleLoops mlir::posenc::kAVX2Loops = {scaleF64, scaleF32, scaleF16,
                                             scaleBF16};

void mlir::posenc::copyAVX2(char *to, const char *from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) {
    const __m256i *source = reinterpret_cast<const __m256i *>(from + i);
    __m256i *target = reinterpret_cast<__m256i *>(to + i);
    __m256i low = _mm256_loadu_si256(source);
    __m256i high = _mm256_loadu_si256(source + 1);
    _mm256_stream_si256(target, low);
    _mm256_stream_si256(target + 1, high);
  }
  _mm_sfence();
}
