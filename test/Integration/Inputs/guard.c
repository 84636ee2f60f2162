/*===- guard.c - kernels stay within their tensors ----------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* Each tensor ends or begins at an inaccessible page. Strided tensors have gaps
 * between their rows that must not be written. */

#include "guarded.h"

#include "ropes.h"

#include "tensors.h"

enum { kMaxTokens = 67, kMaxDim = 67, kHeads = 2, kGap = 3 };
/* The tolerance for values below 2, which includes the rounding to the type. */
static const double kTolerance[] = {3e-7, 8e-3, 1e-3, 1e-13};

typedef void (*Function)(void);
typedef int32_t (*TensorFunction)(const DLTensor *x, const DLTensor *positions,
                                  const DLTensor *out, char *err,
                                  size_t errlen);

static const struct Case {
  const char *name;
  int interleaved;
  enum DType dtype;
  int dim;
  Function function;
  TensorFunction tensorFunction;
} cases[] = {
#include "table.inc"
};

static int32_t call(const struct Case *c, const void *x,
                    const int64_t *positions, void *out, int64_t tokens) {
  switch (c->dtype) {
  case F32:
    return ((int32_t (*)(const float *, const int64_t *, float *,
                         int64_t))c->function)((const float *)x, positions,
                                               (float *)out, tokens);
  case F64:
    return ((int32_t (*)(const double *, const int64_t *, double *,
                         int64_t))c->function)((const double *)x, positions,
                                               (double *)out, tokens);
  default:
    return ((int32_t (*)(const uint16_t *, const int64_t *, uint16_t *,
                         int64_t))c->function)((const uint16_t *)x, positions,
                                               (uint16_t *)out, tokens);
  }
}

/* Calls the function with DLPack tensors whose row stride is `row` elements. */
static void callTensors(const struct Case *c, void *x, int64_t *positions,
                        void *out, int64_t tokens, int64_t row) {
  static const int codes[] = {kFloat, kBfloat, kFloat, kFloat};
  int bits = 8 * (int)kBytes[c->dtype];
  int64_t shape[3], strides[3];
  DLTensor in, at, result;
  char message[100];
  int32_t code;
  shape[0] = tokens, shape[1] = kHeads, shape[2] = c->dim;
  strides[0] = kHeads * row, strides[1] = row, strides[2] = 1;
  in = makeTensor(x, codes[c->dtype], bits, 3, shape, strides);
  at = makeTensor(positions, kInt, 64, 1, shape, NULL);
  result = makeTensor(out, codes[c->dtype], bits, 3, shape, strides);
  code = c->tensorFunction(&in, &at, &result, message, sizeof(message));
  if (code != 0)
    fprintf(stderr, "%s: %s\n", c->name, message);
  CHECK(code == 0);
}

static void checkValues(const struct Case *c, const void *x, const void *out,
                        const int64_t *positions, int tokens) {
  int even = c->dim - c->dim % 2, row, lane;
  for (row = 0; row < tokens * kHeads; ++row) {
    double in[kMaxDim];
    for (lane = 0; lane < c->dim; ++lane)
      in[lane] = load(c->dtype, x, (size_t)(row * c->dim + lane));
    for (lane = 0; lane < c->dim; ++lane) {
      double actual = load(c->dtype, out, (size_t)(row * c->dim + lane));
      double expected = lane < even
                            ? rotateLane(in, even, c->interleaved, 10000.0,
                                         (double)positions[row / kHeads], lane)
                            : in[lane];
      if (fabs(actual - expected) > kTolerance[c->dtype])
        fprintf(stderr, "%s: row %d element %d: expected %g, found %g\n",
                c->name, row, lane, expected, actual);
      CHECK(fabs(actual - expected) <= kTolerance[c->dtype]);
    }
  }
}

/* Checks a case with `tokens` tokens; all tensors end or begin at a page. */
static void checkCase(const struct Case *c, int64_t tokens, int atEnd,
                      const struct Guarded *in, const struct Guarded *at,
                      const struct Guarded *out, char *expected) {
  size_t rowBytes = (size_t)c->dim * kBytes[c->dtype];
  size_t numRows = (size_t)tokens * kHeads, size = numRows * rowBytes;
  size_t step = rowBytes + kGap * kBytes[c->dtype];
  size_t span = size + (numRows - 1) * (step - rowBytes);
  char *x = (char *)place(in, size, atEnd),
       *y = (char *)place(out, size, atEnd);
  int64_t *positions =
      (int64_t *)place(at, (size_t)tokens * sizeof(int64_t), atEnd);
  size_t i;
  for (i = 0; i < (size_t)tokens; ++i)
    positions[i] = 2 * (int64_t)i + 1;
  for (i = 0; i < numRows * (size_t)c->dim; ++i)
    store(c->dtype, x, i, nextRandom());
  memset(y, 0xff, size);
  CHECK(call(c, x, positions, y, tokens) == 0);
  memcpy(expected, y, size);
  if (tokens == 1 || tokens == kMaxTokens)
    checkValues(c, x, y, positions, (int)tokens);
  memset(y, 0xff, size);
  callTensors(c, x, positions, y, tokens, c->dim);
  CHECK(memcmp(y, expected, size) == 0);
  /* In place. */
  memcpy(y, x, size);
  CHECK(call(c, y, positions, y, tokens) == 0);
  CHECK(memcmp(y, expected, size) == 0);

  /* Copies the input to rows with gaps. */
  y = (char *)place(out, span, atEnd);
  memset(y, 0xff, span);
  for (i = 0; i < numRows; ++i)
    memcpy(y + i * step, x + i * rowBytes, rowBytes);
  x = (char *)place(in, span, atEnd);
  memcpy(x, y, span);
  for (i = 0; i < 2; ++i) {
    char *target = i == 0 ? y : x;
    size_t row, byte;
    if (i == 0)
      memset(y, 0xff, span);
    callTensors(c, x, positions, target, tokens, c->dim + kGap);
    for (row = 0; row < numRows; ++row) {
      CHECK(memcmp(target + row * step, expected + row * rowBytes, rowBytes) ==
            0);
      for (byte = rowBytes; byte < step && row + 1 < numRows; ++byte)
        CHECK((unsigned char)target[row * step + byte] == 0xff);
    }
  }
}

int main(int argc, char **argv) {
  size_t bytes = kMaxTokens * kHeads * (kMaxDim + kGap) * sizeof(double);
  struct Guarded in = makeGuarded(bytes), out = makeGuarded(bytes),
                 at = makeGuarded(kMaxTokens * sizeof(int64_t));
  char *expected = (char *)malloc(bytes);
  size_t i;
  int64_t tokens;
  CHECK(expected != NULL);
  if (argc > 1) {
    /* Controls: one token too many, of contiguous and of strided tensors. */
    const struct Case *c = &cases[0];
    size_t count = (size_t)(4 * kHeads * c->dim);
    void *x = place(&in, count * kBytes[c->dtype], 1);
    void *y = place(&out, 2 * count * kBytes[c->dtype], 1);
    int64_t *positions = (int64_t *)place(&at, sizeof(int64_t) * 5, 1);
    if (strcmp(argv[1], "strided") == 0)
      callTensors(c, x, positions, y, 4, c->dim + 1);
    else
      call(c, x, positions, y, 5);
    return 0;
  }
  for (i = 0; i < sizeof(cases) / sizeof(*cases); ++i)
    for (tokens = 1; tokens <= kMaxTokens; ++tokens) {
      checkCase(&cases[i], tokens, 0, &in, &at, &out, expected);
      checkCase(&cases[i], tokens, 1, &in, &at, &out, expected);
    }
  printf("%d functions\n", (int)(sizeof(cases) / sizeof(*cases)));
  return 0;
}
