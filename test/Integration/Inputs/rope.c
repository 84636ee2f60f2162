/*===- rope.c - calls a library through its header ----------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* Compiled as C and as C++. */

#include "rope.h"

#include "check.h"

enum { kBatch = 2, kTokens = 37, kHeads = 4, kDim = 64 };
enum { kRow = kHeads * kDim, kSize = kBatch * kTokens * kRow };

static float q[kSize], k[kSize], qOut[kSize], kOut[kSize];
static int64_t positions[kBatch * kTokens];

static void checkRope(const float *in, const float *out) {
  int token, head, lane;
  for (token = 0; token < kBatch * kTokens; ++token)
    for (head = 0; head < kHeads; ++head) {
      const float *row = in + token * kRow + head * kDim;
      double x[kDim];
      for (lane = 0; lane < kDim; ++lane)
        x[lane] = (double)row[lane];
      for (lane = 0; lane < kDim; ++lane) {
        double expected =
            rotateLane(x, kDim, 0, 10000.0, (double)positions[token], lane);
        double actual = (double)out[token * kRow + head * kDim + lane];
        CHECK(fabs(actual - expected) < 3e-7);
      }
    }
}

static void checkInterleaved(void) {
  static double x[kTokens * kDim], out[kTokens * kDim];
  static int32_t at[kTokens];
  int token, lane;
  for (token = 0; token < kTokens; ++token)
    at[token] = 5 * token - 60;
  for (lane = 0; lane < kTokens * kDim; ++lane)
    x[lane] = nextRandom();
  CHECK(rope_interleaved(x, at, out, kTokens) == 0);
  for (token = 0; token < kTokens; ++token)
    for (lane = 0; lane < kDim; ++lane) {
      double expected =
          rotateLane(x + token * kDim, kDim, 1, 10000.0, at[token], lane);
      CHECK(fabs(out[token * kDim + lane] - expected) < 1e-13);
    }
  CHECK(rope_interleaved(x, at, x, kTokens) == 0);
  CHECK(memcmp(x, out, sizeof(x)) == 0);
}

static void checkTables(void) {
  static float cosines[kTokens * kDim / 2], sines[kTokens * kDim / 2];
  int token, pair;
  CHECK(rope_sincos(positions, cosines, sines, kTokens) == 0);
  for (token = 0; token < kTokens; ++token)
    for (pair = 0; pair < kDim / 2; ++pair) {
      double angle =
          (double)positions[token] * pow(10000.0, -2.0 * pair / kDim);
      int i = token * kDim / 2 + pair;
      CHECK(fabs((double)cosines[i] - cos(angle)) < 1e-7);
      CHECK(fabs((double)sines[i] - sin(angle)) < 1e-7);
    }
}

int main(void) {
  int i;
  for (i = 0; i < kBatch * kTokens; ++i)
    positions[i] = i % 3 ? 7 * i : -i;
  fillFloats(q, kSize);
  fillFloats(k, kSize);

  CHECK(rope_rope(q, k, positions, qOut, kOut, kBatch, kTokens) == 0);
  checkRope(q, qOut);
  checkRope(k, kOut);
  /* In place, for one and for both tensors. */
  static float qIn[kSize];
  memcpy(qIn, q, sizeof(q));
  CHECK(rope_rope(q, k, positions, q, kOut, kBatch, kTokens) == 0);
  CHECK(memcmp(q, qOut, sizeof(q)) == 0);
  checkRope(k, kOut);
  memcpy(q, qIn, sizeof(q));
  CHECK(rope_rope(q, k, positions, q, k, kBatch, kTokens) == 0);
  CHECK(memcmp(q, qOut, sizeof(q)) == 0);
  CHECK(memcmp(k, kOut, sizeof(k)) == 0);

  checkInterleaved();
  checkTables();
  CHECK(strstr(rope_metadata(), "\"prefix\":\"rope\"") != NULL);
  rope_set_parallel_for(NULL, NULL);
  puts("ok");
  return 0;
}
