//===- ScaleAVX512BF16.cpp - in-place scaling with VCVTNE2PS2BF16 ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScaleLoops.h"

#include <immintrin.h>

using namespace mlir::posenc;

static void scaleBF16(Rows rows, float factor) {
  scaleRows(rows, factor, [](char *at, float factor) {
    __m256i *p = reinterpret_cast<__m256i *>(at);
    __m512 a = _mm512_set1_ps(factor);
    auto scale = [&](const __m256i *from) {
      __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from));
      return _mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16)), a);
    };
    __m512bh both = _mm512_cvtne2ps_pbh(scale(p + 1), scale(p));
    __builtin_memcpy(at, &both, sizeof(both));
  });
}

const ScaleLoops mlir::posenc::kAVX512BF16Loops = {
    kAVX512Loops.f64, kAVX512Loops.f32, kAVX512Loops.f16, scaleBF16};
