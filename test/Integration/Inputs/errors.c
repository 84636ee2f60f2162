/*===- errors.c - error codes of the header -----------------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#include "rope.h"

#include "check.h"

enum { kNull = 1, kSize = 2, kOverlap = 3, kCpu = 4 };
enum { kTokens = 3, kRow = 4 * 64, kCount = kTokens * kRow };

/* The tensors of rope_rope, with space for shifted ones. */
static struct {
  float q[2 * kCount], k[2 * kCount], qOut[2 * kCount], kOut[2 * kCount];
  int64_t positions[2 * kTokens];
} data, before;

/* Expects an error code, and that the call wrote nothing. */
static void checkFails(int32_t code, int32_t expected) {
  if (code != expected)
    fprintf(stderr, "expected code %d, found %d\n", (int)expected, (int)code);
  CHECK(code == expected);
  CHECK(memcmp(&data, &before, sizeof(data)) == 0);
}

static int32_t call(const float *q, const float *k, float *qOut, float *kOut) {
  return rope_rope(q, k, data.positions, qOut, kOut, 1, kTokens);
}

static void checkNull(void) {
  checkFails(call(NULL, data.k, data.qOut, data.kOut), kNull);
  checkFails(call(data.q, NULL, data.qOut, data.kOut), kNull);
  checkFails(call(data.q, data.k, NULL, data.kOut), kNull);
  checkFails(call(data.q, data.k, data.qOut, NULL), kNull);
  checkFails(call(NULL, NULL, NULL, NULL), kNull);
  checkFails(rope_rope(data.q, data.k, NULL, data.qOut, data.kOut, 1, kTokens),
             kNull);
  checkFails(rope_sincos(NULL, data.q, data.k, 1), kNull);
  checkFails(rope_sincos(data.positions, NULL, data.k, 1), kNull);
  checkFails(rope_sincos(data.positions, data.q, NULL, 1), kNull);
}

static int32_t callSizes(int64_t batch, int64_t tokens) {
  return rope_rope(data.q, data.k, data.positions, data.qOut, data.kOut, batch,
                   tokens);
}

static void checkSizes(void) {
  static const int64_t large[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2 + 1,
                                  INT64_MAX / kRow / 4 + 1, (int64_t)1 << 62};
  static const int64_t negative[] = {-1, -2, INT64_MIN, INT64_MIN + 1};
  size_t i, j;
  for (i = 0; i < sizeof(negative) / sizeof(*negative); ++i) {
    checkFails(callSizes(negative[i], 1), kSize);
    checkFails(callSizes(1, negative[i]), kSize);
    checkFails(callSizes(negative[i], negative[i]), kSize);
    /* Also if another size is 0. */
    checkFails(callSizes(0, negative[i]), kSize);
    checkFails(callSizes(negative[i], 0), kSize);
    checkFails(rope_sincos(NULL, NULL, NULL, negative[i]), kSize);
    for (j = 0; j < sizeof(large) / sizeof(*large); ++j)
      checkFails(callSizes(negative[i], large[j]), kSize);
  }
  for (i = 0; i < sizeof(large) / sizeof(*large); ++i) {
    checkFails(callSizes(large[i], 1), kSize);
    checkFails(callSizes(1, large[i]), kSize);
    for (j = 0; j < sizeof(large) / sizeof(*large); ++j)
      checkFails(callSizes(large[i], large[j]), kSize);
    /* If one size is 0, the others may be large. */
    checkFails(callSizes(large[i], 0), 0);
    checkFails(callSizes(0, large[i]), 0);
  }
  /* Each size fits, but the number of elements or bytes overflows. */
  checkFails(callSizes((int64_t)1 << 31, (int64_t)1 << 31), kSize);
  checkFails(callSizes((int64_t)1 << 27, (int64_t)1 << 26), kSize);
  checkFails(callSizes((int64_t)1 << 53, 1), kSize);
  checkFails(rope_sincos(data.positions, data.q, data.k, (int64_t)1 << 60),
             kSize);
  /* The largest size that fits: the error is the NULL pointer. */
  checkFails(rope_rope(NULL, data.k, data.positions, data.qOut, data.kOut,
                       ((int64_t)1 << 53) - 1, 1),
             kNull);
}

static void checkEmpty(void) {
  checkFails(rope_rope(NULL, NULL, NULL, NULL, NULL, 0, 0), 0);
  checkFails(rope_rope(NULL, NULL, NULL, NULL, NULL, 0, 5), 0);
  checkFails(rope_rope(NULL, NULL, NULL, NULL, NULL, 5, 0), 0);
  checkFails(callSizes(0, 5), 0);
  checkFails(rope_interleaved(NULL, NULL, NULL, 0), 0);
  checkFails(rope_sincos(NULL, NULL, NULL, 0), 0);
  /* Empty tensors overlap nothing. */
  checkFails(rope_rope(data.q, data.q, data.positions, data.q, data.q, 0, 1),
             0);
}

static void checkOverlap(void) {
  int offset;
  for (offset = 1 - kCount; offset < kCount; offset += 1) {
    float *q = data.q + kCount - 1;
    if (offset != 0)
      checkFails(call(q, data.k, q + offset, data.kOut), kOverlap);
    /* Also if they coincide: q_out may only alias q, and k_out only k. */
    checkFails(call(data.q + kCount, data.k + kCount, data.k + kCount + offset,
                    data.kOut),
               kOverlap);
    checkFails(call(data.q + kCount, data.k + kCount, data.qOut,
                    data.q + kCount + offset),
               kOverlap);
    checkFails(
        call(data.q, data.k, data.qOut + kCount, data.qOut + kCount + offset),
        kOverlap);
  }
  /* The positions, and tables, which may alias nothing. */
  checkFails(call(data.q, data.k, (float *)data.positions, data.kOut),
             kOverlap);
  checkFails(call(data.q, data.k, data.qOut,
                  (float *)data.positions + 2 * kTokens - 1),
             kOverlap);
  checkFails(rope_sincos(data.positions, data.q, data.q, kTokens), kOverlap);
  checkFails(rope_sincos(data.positions, data.q, data.q + 1, kTokens),
             kOverlap);
  checkFails(
      rope_sincos(data.positions, (float *)data.positions, data.q, kTokens),
      kOverlap);
  /* An overlap of one byte. */
  checkFails(call((float *)((char *)data.q + kCount * 4 - 1), data.k, data.q,
                  data.kOut),
             kOverlap);
}

/* Adjacent and aliased tensors that are allowed; these calls write. */
static void checkAllowed(void) {
  CHECK(call(data.q, data.k, data.q + kCount, data.k + kCount) == 0);
  CHECK(call(data.q + kCount, data.k + kCount, data.q, data.k) == 0);
  CHECK(call(data.q, data.q, data.qOut, data.kOut) == 0);
  CHECK(call(data.q, data.k, data.q, data.kOut) == 0);
  CHECK(call(data.q, data.k, data.qOut, data.k) == 0);
  CHECK(call(data.q, data.k, data.q, data.k) == 0);
  CHECK(rope_sincos(data.positions, data.q, data.q + kTokens * 32, kTokens) ==
        0);
}

int main(int argc, char **argv) {
  char message[100];
  fillFloats(data.q, 2 * kCount);
  fillFloats(data.k, 2 * kCount);
  before = data;
  if (argc > 1 && strcmp(argv[1], "cpu") == 0) {
    /* The CPU is checked before all other arguments. */
    checkFails(callSizes(1, kTokens), kCpu);
    checkFails(callSizes(-1, kTokens), kCpu);
    checkFails(call(NULL, NULL, NULL, NULL), kCpu);
    checkFails(rope_sincos(NULL, NULL, NULL, 0), kCpu);
    checkFails(
        rope_rope_dl(NULL, NULL, NULL, NULL, NULL, message, sizeof(message)),
        kCpu);
    CHECK(strcmp(message, "rope: the CPU lacks an instruction set that the "
                          "library was compiled for") == 0);
    CHECK(rope_metadata()[0] == '{');
  } else {
    checkNull();
    checkSizes();
    checkEmpty();
    checkOverlap();
    checkAllowed();
  }
  puts("ok");
  return 0;
}
