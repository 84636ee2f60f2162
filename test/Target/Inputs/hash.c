/*===- hash.c - hashes of kernel results ------------------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* Calls the kernels of llama-3.1-8b.json, compiled with the prefix `k`, for
 * tensors whose C type is TYPE. Prints their return values and hashes of their
 * outputs. */

#include "k.h"

#include <stdio.h>
#include <string.h>

enum { kBatch = 3, kLength = 7, kTokens = kBatch * kLength, kDim = 128 };

static TYPE q[kTokens * 32 * kDim], k[kTokens * 8 * kDim];
static float cosines[kTokens * kDim / 2], sines[kTokens * kDim / 2];

static uint64_t state = 1;

static uint32_t getRandom(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}

/* Numbers of either sign between 2^-8 and 2^8. */
static void fill(TYPE *to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = getRandom() & 0x007fffff;
    bits |= (119 + getRandom() % 16) << 23;
    bits |= getRandom() << 31;
    bits >>= 32 - 8 * sizeof(TYPE);
    memcpy(&to[i], &bits, sizeof(TYPE));
  }
}

static uint64_t hash(const void *data, size_t size) {
  uint64_t result = 14695981039346656037u;
  for (size_t i = 0; i < size; ++i)
    result = (result ^ ((const unsigned char *)data)[i]) * 1099511628211u;
  return result;
}

int main(void) {
  int64_t positions[kTokens];
  for (int i = 0; i < kTokens; ++i)
    positions[i] = i % 3 == 0   ? i
                   : i % 3 == 1 ? (int64_t)getRandom()
                                : -(int64_t)(getRandom() % 100000);
  fill(q, sizeof(q) / sizeof(TYPE));
  fill(k, sizeof(k) / sizeof(TYPE));
  int rope = k_rope(q, k, positions, q, k, kBatch, kLength);
  printf("rope %d %016llx %016llx\n", rope,
         (unsigned long long)hash(q, sizeof(q)),
         (unsigned long long)hash(k, sizeof(k)));
  int sincos = k_sincos(positions, cosines, sines, kTokens);
  printf("sincos %d %016llx %016llx\n", sincos,
         (unsigned long long)hash(cosines, sizeof(cosines)),
         (unsigned long long)hash(sines, sizeof(sines)));
  return 0;
}
