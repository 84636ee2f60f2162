//===- ScaleAVX512.cpp - in-place scaling and copies for AVX-512 ----------===//
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
    __m512d a = _mm512_set1_pd(static_cast<double>(factor));
    _mm512_storeu_pd(at, _mm512_mul_pd(_mm512_loadu_pd(at), a));
  });
}

static void scaleF32(Rows rows, float factor) {
  scaleRows(rows, factor, [](char *at, float factor) {
    __m512 a = _mm512_set1_ps(factor);
    _mm512_storeu_ps(at, _mm512_mul_ps(_mm512_loadu_ps(at), a));
  });
}

static void scaleF16(Rows rows, float factor) {
  scaleRows(rows, factor, [](char *at, float factor) {
    __m256i *p = reinterpret_cast<__m256i *>(at);
    __m512 a = _mm512_set1_ps(factor);
    for (int i = 0; i < 2; ++i) {
      __m512 x = _mm512_cvtph_ps(_mm256_loadu_si256(p + i));
      _mm256_storeu_si256(p + i, _mm512_cvtps_ph(_mm512_mul_ps(x, a),
                                                 _MM_FROUND_TO_NEAREST_INT));
    }
  });
}

/// Rounds to bf16, to nearest even. The result is in the upper 16 bits of each
/// lane; the lower bits are undefined.
static __m512i roundToBF16(__m512 x) {
  __m512i bits = _mm512_castps_si512(x);
  __m512i odd =
      _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  return _mm512_add_epi32(_mm512_add_epi32(bits, odd),
                          _mm512_set1_epi32(0x7fff));
}

static void scaleBF16(Rows rows, float factor) {
  scaleRows(rows, factor, [](char *at, float factor) {
    __m512 a = _mm512_set1_ps(factor);
    // Even and odd elements, widened and narrowed within their 32 bits.
    __m512i both = _mm512_loadu_si512(at);
    __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(both, 16));
    __m512 odd = _mm512_castsi512_ps(
        _mm512_and_si512(both, _mm512_set1_epi32(int(0xffff0000))));
    __m512i low = _mm512_srli_epi32(roundToBF16(_mm512_mul_ps(even, a)), 16);
    __m512i high = roundToBF16(_mm512_mul_ps(odd, a));
    _mm512_storeu_si512(at, _mm512_mask_blend_epi16(0xaaaaaaaa, low, high));
  });
}

const ScaleLoops mlir::posenc::kAVX512Loops = {scaleF64, scaleF32, scaleF16,
                                               scaleBF16};

void mlir::posenc::copyAVX512(char *to, const char *from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i *>(to + i),
                        _mm512_loadu_si512(from + i));
  _mm_sfence();
}
