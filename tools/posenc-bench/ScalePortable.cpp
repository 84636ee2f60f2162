//===- ScalePortable.cpp - in-place scaling in portable C++ ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScaleLoops.h"

using namespace mlir::posenc;

template <typename T> static void scalePlain(Rows rows, float factor) {
  scaleRows(rows, factor, [](char *at, float factor) {
    T *p = reinterpret_cast<T *>(at);
    for (int i = 0; i < 64 / int(sizeof(T)); ++i)
      p[i] = static_cast<T>(p[i] * static_cast<T>(factor));
  });
}

static void scaleF16(Rows rows, float factor) {
  scaleRows(rows, factor, [](char *at, float factor) {
    _Float16 *p = reinterpret_cast<_Float16 *>(at);
    for (int i = 0; i < 32; ++i)
      p[i] = static_cast<_Float16>(static_cast<float>(p[i]) * factor);
  });
}

static void scaleBF16(Rows rows, float factor) {
  scaleRows(rows, factor, [](char *at, float factor) {
    uint16_t *p = reinterpret_cast<uint16_t *>(at);
    for (int i = 0; i < 32; ++i) {
      uint32_t bits = uint32_t(p[i]) << 16;
      float x;
      __builtin_memcpy(&x, &bits, sizeof(x));
      x *= factor;
      __builtin_memcpy(&bits, &x, sizeof(x));
      p[i] = static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    }
  });
}

const ScaleLoops mlir::posenc::kPortableLoops = {
    scalePlain<double>, scalePlain<float>, scaleF16, scaleBF16};
