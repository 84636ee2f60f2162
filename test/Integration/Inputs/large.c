/*===- large.c - strided tensors larger than the cache ------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* Large tensors may be written with non-temporal stores and by many threads.
 * Their rows begin at any address. */

#include "rope.h"

#include "tensors.h"

enum { kHeads = 4, kDim = 64, kHidden = kHeads * kDim };

static float *allocate(size_t count) {
  float *result = (float *)malloc(count * sizeof(float));
  CHECK(result != NULL);
  return result;
}

/* Writes rows with a stride of `row` floats, which begin `offset` floats after
 * an address from malloc. */
static void checkRows(const float *q, const float *k, int64_t *positions,
                      int64_t tokens, int64_t row, int64_t offset) {
  int64_t shape[] = {1, tokens, kHeads, kDim};
  int64_t strides[] = {tokens * row, row, kDim, 1};
  size_t count = (size_t)(tokens * kHidden), i;
  size_t span = (size_t)(tokens * row + offset);
  float *expected[] = {allocate(count), allocate(count)}, *all = allocate(span);
  float *out[] = {all + offset, all + offset + kHidden};
  DLTensor in[3], result[2];
  int number, pass;
  in[0] = makeTensor((void *)q, kFloat, 32, 4, shape, NULL);
  in[1] = makeTensor((void *)k, kFloat, 32, 4, shape, NULL);
  in[2] = makeTensor(positions, kInt, 64, 2, shape, NULL);
  for (i = 0; i < (size_t)tokens; i += 64) {
    /* Calls with few tokens use the code for small tensors. */
    int64_t some = tokens - (int64_t)i < 64 ? tokens - (int64_t)i : 64;
    CHECK(rope_rope(q + i * kHidden, k + i * kHidden, positions + i,
                    expected[0] + i * kHidden, expected[1] + i * kHidden, 1,
                    some) == 0);
  }
  for (number = 0; number < 2; ++number)
    result[number] = makeTensor(out[number], kFloat, 32, 4, shape, strides);
  for (pass = 0; pass < 2; ++pass) {
    /* Out of place, then in place. */
    memset(all, 0xff, span * sizeof(float));
    for (i = 0; pass == 1 && i < (size_t)tokens; ++i) {
      memcpy(out[0] + i * (size_t)row, q + i * kHidden,
             kHidden * sizeof(float));
      memcpy(out[1] + i * (size_t)row, k + i * kHidden,
             kHidden * sizeof(float));
    }
    if (pass == 1) {
      in[0] = result[0];
      in[1] = result[1];
    }
    CHECK(rope_rope_dl(&in[0], &in[1], &in[2], &result[0], &result[1], NULL,
                       0) == 0);
    for (number = 0; number < 2; ++number)
      for (i = 0; i < (size_t)tokens; ++i)
        CHECK(memcmp(out[number] + i * (size_t)row,
                     expected[number] + i * kHidden,
                     kHidden * sizeof(float)) == 0);
    /* The gaps between rows are not written. */
    for (i = 0; i < (size_t)tokens && row > 2 * kHidden; ++i) {
      const unsigned char *gap =
          (const unsigned char *)(out[1] + i * (size_t)row + kHidden);
      CHECK(i + 1 == (size_t)tokens || (gap[0] == 0xff && gap[3] == 0xff));
    }
  }
  free(expected[0]);
  free(expected[1]);
  free(all);
}

int main(void) {
  enum { kTokens = 20000 };
  size_t count = (size_t)kTokens * kHidden, i;
  float *q = allocate(count), *k = allocate(count);
  int64_t *positions = (int64_t *)malloc(kTokens * sizeof(int64_t));
  CHECK(positions != NULL);
  for (i = 0; i < kTokens; ++i)
    positions[i] = (int64_t)(7 * i);
  fillFloats(q, count);
  fillFloats(k, count);
  checkRows(q, k, positions, kTokens, 2 * kHidden, 0);
  checkRows(q, k, positions, kTokens, 2 * kHidden, 1);
  checkRows(q, k, positions, kTokens, 2 * kHidden + 16, 0);
  checkRows(q, k, positions, kTokens, 2 * kHidden + 1, 4);
  free(q);
  free(k);
  free(positions);
  puts("ok");
  return 0;
}
