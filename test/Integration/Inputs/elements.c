/*===- elements.c - sizes that are elements of inputs -------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* Both entry points compute the size of a result from the element of an input.
 * Calls whose element is invalid write nothing. */

#include "elements.h"

#include "tensors.h"

enum { kRoom = 64 };

static float x[kRoom], out[kRoom];
static int64_t wide;
static int32_t narrow;
static int64_t xShape[1], outShape[2], oneShape[2] = {1, 1};
static int numRefused;

static void clear(void) {
  int i;
  for (i = 0; i < kRoom; ++i)
    out[i] = -1;
}

/* Prints the message of a call that writes nothing. */
static void checkRefused(const char *message) {
  int i;
  for (i = 0; i < kRoom; ++i)
    CHECK(out[i] == -1);
  if (*message)
    puts(message);
  ++numRefused;
}

/* Calls `grow` with n elements, the given total and a result of `rows`
 * elements. Returns the code. */
static int32_t callGrow(int64_t n, int64_t total, int64_t rows) {
  char message[128] = "";
  DLTensor tensors[3];
  int32_t code;
  xShape[0] = n;
  outShape[0] = rows;
  wide = total;
  tensors[0] = makeTensor(x, kFloat, 32, 1, xShape, NULL);
  tensors[1] = makeTensor(&wide, kInt, 64, 1, oneShape, NULL);
  tensors[2] = makeTensor(out, kFloat, 32, 1, outShape, NULL);
  clear();
  code = elements_grow_dl(&tensors[0], &tensors[1], &tensors[2], message,
                          sizeof(message));
  if (code)
    checkRefused(message);
  return code;
}

static void grow(void) {
  static const int64_t huge[] = {INT64_MAX, (int64_t)1 << 62, (int64_t)1 << 61,
                                 (int64_t)1 << 31};
  int64_t total, i;
  for (i = 0; i < kRoom; ++i)
    x[i] = (float)(i + 1);
  for (total = -2; total < 12; ++total) {
    int64_t rows = total > 5 ? total : 5;
    CHECK(callGrow(5, total, rows) == 0);
    for (i = 0; i < kRoom; ++i)
      CHECK(out[i] == (i >= rows ? -1 : i < 5 ? x[i] : 0));
    clear();
    CHECK(elements_grow(x, &wide, out, 5) == 0);
    for (i = 0; i < kRoom; ++i)
      CHECK(out[i] == (i >= rows ? -1 : i < 5 ? x[i] : 0));
    CHECK(callGrow(5, total, rows + 1));
    CHECK(callGrow(5, total, rows - 1));
  }
  CHECK(callGrow(5, INT64_MIN, 5) == 0);
  for (i = 0; i < 4; ++i)
    CHECK(callGrow(5, huge[i], 5));
  clear();
  wide = (int64_t)1 << 62;
  CHECK(elements_grow(x, &wide, out, 5));
  CHECK(elements_grow(x, NULL, out, 5));
  checkRefused("");
  {
    char message[128] = "";
    DLTensor tensors[3];
    tensors[0] = makeTensor(x, kFloat, 32, 1, xShape, NULL);
    tensors[1] = makeTensor(NULL, kInt, 64, 1, oneShape, NULL);
    tensors[2] = makeTensor(out, kFloat, 32, 1, outShape, NULL);
    CHECK(elements_grow_dl(&tensors[0], &tensors[1], &tensors[2], message,
                           sizeof(message)));
    checkRefused(message);
  }
}

static void first(void) {
  static const int32_t invalid[] = {-1, 9, INT32_MAX, INT32_MIN};
  char message[128];
  DLTensor tensors[3];
  int i;
  xShape[0] = 8;
  tensors[0] = makeTensor(x, kFloat, 32, 1, xShape, NULL);
  tensors[1] = makeTensor(&narrow, kInt, 32, 0, NULL, NULL);
  tensors[2] = makeTensor(out, kFloat, 32, 1, outShape, NULL);
  for (narrow = 0; narrow <= 8; ++narrow) {
    outShape[0] = narrow;
    clear();
    CHECK(elements_first_dl(&tensors[0], &tensors[1], &tensors[2], message,
                            sizeof(message)) == 0);
    for (i = 0; i < kRoom; ++i)
      CHECK(out[i] == (i < narrow ? x[i] : -1));
    clear();
    CHECK(elements_first(x, &narrow, out, 8) == 0);
    for (i = 0; i < kRoom; ++i)
      CHECK(out[i] == (i < narrow ? x[i] : -1));
  }
  for (i = 0; i < 4; ++i) {
    narrow = invalid[i];
    outShape[0] = i;
    clear();
    CHECK(elements_first_dl(&tensors[0], &tensors[1], &tensors[2], message,
                            sizeof(message)));
    CHECK(elements_first(x, &narrow, out, 8));
    checkRefused(message);
  }
}

static void computed(void) {
  static const int64_t invalid[] = {-1, INT32_MAX, INT64_MIN, INT64_MAX};
  char message[128];
  DLTensor tensors[2];
  int i;
  outShape[1] = 3;
  tensors[0] = makeTensor(&wide, kInt, 64, 2, oneShape, NULL);
  tensors[1] = makeTensor(out, kFloat, 32, 2, outShape, NULL);
  for (wide = 0; wide < 4; ++wide) {
    outShape[0] = 2 * wide + 1;
    clear();
    CHECK(elements_computed_dl(&tensors[0], &tensors[1], message,
                               sizeof(message)) == 0);
    for (i = 0; i < kRoom; ++i)
      CHECK(out[i] == (i < 3 * outShape[0] ? 5 : -1));
  }
  /* The high half is not read. */
  wide = ((int64_t)7 << 32) + 2;
  clear();
  CHECK(elements_computed(&wide, out) == 0);
  for (i = 0; i < kRoom; ++i)
    CHECK(out[i] == (i < 15 ? 5 : -1));
  for (i = 0; i < 4; ++i) {
    wide = invalid[i];
    outShape[0] = 2;
    clear();
    CHECK(elements_computed_dl(&tensors[0], &tensors[1], message,
                               sizeof(message)));
    checkRefused(message);
  }
}

/* Calls `pair` with both elements and a result of `rows` x `columns`. Returns
 * the code. */
static int32_t callPair(int64_t t, int64_t u, int64_t rows, int64_t columns) {
  char message[128] = "";
  DLTensor tensors[3];
  int32_t code;
  int64_t other = u;
  wide = t;
  outShape[0] = rows;
  outShape[1] = columns;
  tensors[0] = makeTensor(&wide, kInt, 64, 1, oneShape, NULL);
  tensors[1] = makeTensor(&other, kInt, 64, 0, NULL, NULL);
  tensors[2] = makeTensor(out, kFloat, 32, 2, outShape, NULL);
  clear();
  code = elements_pair_dl(&tensors[0], &tensors[1], &tensors[2], message,
                          sizeof(message));
  if (code)
    checkRefused(message);
  return code;
}

/* Two elements, whose sum or product may overflow. */
static void pair(void) {
  static const int64_t values[] = {
      0, 1, -1, INT64_MAX, INT64_MIN, (int64_t)1 << 32, (int64_t)1 << 62};
  int64_t i, j, other;
  CHECK(callPair(1, 3, 4, 3) == 0);
  for (i = 0; i < kRoom; ++i)
    CHECK(out[i] == (i < 12 ? 5 : -1));
  CHECK(callPair(-2, 3, 1, 3) == 0);
  CHECK(callPair(-3, 3, 0, 3) == 0);
  CHECK(callPair(7, 0, 7, 0) == 0);
  CHECK(callPair(-4, 3, 1, 3));
  CHECK(callPair(1, -1, 0, 1));
  CHECK(callPair(INT64_MAX, 1, 1, 1));
  CHECK(callPair((int64_t)1 << 32, (int64_t)1 << 32, 1, 1));
  CHECK(callPair(1, 3, 3, 4));
  /* The plain entry point writes nothing for large sizes, either. */
  for (i = 0; i < 7; ++i)
    for (j = 3; j < 7; ++j) {
      wide = values[i];
      other = values[j];
      if (wide == INT64_MIN && other == INT64_MAX)
        continue; /* The sum is -1: an error of its own. */
      clear();
      CHECK(elements_pair(&wide, &other, out));
      checkRefused("");
    }
}

/* Tensors that are not the element which the function expects. */
static void others(void) {
  int64_t two[2] = {5, 5}, twoShape[1] = {2};
  char message[128];
  DLTensor tensors[3], element;
  int i;
  xShape[0] = outShape[0] = 5;
  element = makeTensor(two, kInt, 64, 1, oneShape, NULL);
  for (i = 0; i < 6; ++i) {
    tensors[0] = makeTensor(x, kFloat, 32, 1, xShape, NULL);
    tensors[1] = element;
    tensors[2] = makeTensor(out, kFloat, 32, 1, outShape, NULL);
    switch (i) {
    case 0:
      tensors[1].shape = twoShape;
      break;
    case 1:
      tensors[1].dtype.bits = 32;
      break;
    case 2:
      tensors[1].dtype.code = kFloat;
      break;
    case 3:
      tensors[1].byte_offset = 4;
      break;
    case 4: /* The address is not that of the CPU's memory. */
      setDevice(&tensors[1], 2);
      tensors[1].data = (void *)64;
      break;
    default:
      tensors[1].ndim = 0;
    }
    clear();
    CHECK(elements_grow_dl(&tensors[0], &tensors[1], &tensors[2], message,
                           sizeof(message)));
    checkRefused(message);
  }
}

int main(void) {
  grow();
  first();
  computed();
  pair();
  others();
  printf("%d calls refused\n", numRefused);
  return 0;
}
