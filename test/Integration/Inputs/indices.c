/*===- indices.c - invalid index operands are refused -------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* Each function is called with valid indices, which succeeds, and with invalid
 * ones: the message must name the invalid index, and no memory may change. */

#include "indices.h"

#include "tensors.h"

enum { kMaxTensors = 6, kRoom = 4096 };

static struct {
  float floats[kMaxTensors][kRoom];
  int64_t numbers[kMaxTensors][16];
} data, before;

static DLTensor t[kMaxTensors];
static int64_t shapes[kMaxTensors][4];
static int numTensors, numRefused;

typedef int32_t (*Call)(char *err, size_t errlen);
typedef int32_t (*Plain)(void);

#define F(i) ((float *)t[i].data)
#define I64(i) ((const int64_t *)t[i].data)
#define I32(i) ((const int32_t *)t[i].data)

static int32_t decode(char *err, size_t n) {
  return indices_decode_dl(&t[0], &t[1], &t[2], &t[3], err, n);
}
static int32_t plainDecode(void) {
  return indices_decode(F(0), F(1), I64(2), F(3), shapes[0][0], shapes[1][2]);
}
static int32_t paged(char *err, size_t n) {
  return indices_paged_dl(&t[0], &t[1], &t[2], &t[3], &t[4], err, n);
}
static int32_t plainPaged(void) {
  return indices_paged(F(0), F(1), I64(2), I32(3), F(4), shapes[0][0],
                       shapes[1][0], shapes[3][1]);
}
static int32_t masked(char *err, size_t n) {
  return indices_masked_dl(&t[0], &t[1], &t[2], &t[3], &t[4], &t[5], err, n);
}
static int32_t plainMasked(void) {
  return indices_masked(F(0), F(1), I64(2), I32(3), F(4), F(5), shapes[0][0],
                        shapes[1][0], shapes[3][1], shapes[4][3]);
}
static int32_t positioned(char *err, size_t n) {
  return indices_positioned_dl(&t[0], &t[1], &t[2], &t[3], &t[4], &t[5], err,
                               n);
}
static int32_t plainPositioned(void) {
  return indices_positioned(F(0), F(1), I64(2), I32(3), I32(4), F(5),
                            shapes[0][0], shapes[1][0], shapes[3][1]);
}
static int32_t ragged(char *err, size_t n) {
  return indices_ragged_dl(&t[0], &t[1], &t[2], &t[3], &t[4], err, n);
}
static int32_t plainRagged(void) {
  return indices_ragged(F(0), F(1), I32(2), I32(3), F(4), shapes[0][0],
                        shapes[1][0], shapes[2][0]);
}
static int32_t mixed(char *err, size_t n) {
  return indices_mixed_dl(&t[0], &t[1], &t[2], &t[3], &t[4], err, n);
}
static int32_t plainMixed(void) {
  return indices_mixed(F(0), F(1), I64(2), I32(3), F(4), shapes[0][0],
                       shapes[1][0], shapes[1][1], shapes[2][0]);
}
static int32_t append(char *err, size_t n) {
  return indices_append_dl(&t[0], &t[1], &t[2], &t[3], &t[4], &t[5], err, n);
}
static int32_t plainAppend(void) {
  return indices_append(F(0), I64(1), F(2), F(3), F(4), F(5), shapes[0][0],
                        shapes[0][1], shapes[2][1]);
}
static int32_t scatter(char *err, size_t n) {
  return indices_scatter_dl(&t[0], &t[1], &t[2], &t[3], &t[4], &t[5], err, n);
}
static int32_t plainScatter(void) {
  return indices_scatter(F(0), I32(1), F(2), F(3), F(4), F(5), shapes[0][0],
                         shapes[0][1], shapes[2][0]);
}
static int32_t scatterPacked(char *err, size_t n) {
  return indices_scatter_packed_dl(&t[0], &t[1], &t[2], &t[3], &t[4], &t[5],
                                   err, n);
}
static int32_t plainScatterPacked(void) {
  return indices_scatter_packed(F(0), I64(1), F(2), F(3), F(4), F(5),
                                shapes[0][0], shapes[2][0]);
}
static int32_t heads(char *err, size_t n) {
  return indices_heads_dl(&t[0], &t[1], &t[2], err, n);
}
static int32_t plainHeads(void) {
  return indices_heads(F(0), F(1), F(2), shapes[0][0], shapes[0][1],
                       shapes[0][2], shapes[1][1], shapes[1][2]);
}

static int32_t sizes(char *err, size_t n) {
  return indices_sizes_dl(&t[0], &t[1], &t[2], &t[3], err, n);
}
static int32_t plainSizes(void) {
  return indices_sizes(F(0), F(1), F(2), F(3), shapes[0][0], shapes[0][1],
                       shapes[1][1], shapes[2][0]);
}

static void add(int rank, int64_t a, int64_t b, int64_t c, int64_t d, int code,
                int bits, void *memory) {
  int64_t *shape = shapes[numTensors];
  shape[0] = a;
  shape[1] = b;
  shape[2] = c;
  shape[3] = d;
  t[numTensors] = makeTensor(memory, code, bits, rank, shape, NULL);
  ++numTensors;
}
static void addFloats(int rank, int64_t a, int64_t b, int64_t c, int64_t d) {
  add(rank, a, b, c, d, kFloat, 32, data.floats[numTensors]);
}
/* Rows of fewer numbers end with -1. */
static void addNumbers(int rank, int64_t rows, int64_t columns, int bits,
                       const int64_t *numbers) {
  int64_t i, count = rank == 2 ? rows * columns : rows;
  void *memory = data.numbers[numTensors];
  for (i = 0; i < count; ++i) {
    if (bits == 32)
      ((int32_t *)memory)[i] = (int32_t)numbers[i];
    else
      ((int64_t *)memory)[i] = numbers[i];
  }
  add(rank, rows, columns, 0, 0, kInt, bits, memory);
}
/* Makes a tensor invalid, and returns the expected error code. */
static int32_t breakTensor(int number, int kind) {
  static int64_t strides[4], other[4];
  DLTensor *tensor = &t[number];
  int64_t *shape = shapes[number];
  int dim;
  for (dim = tensor->ndim; dim-- > 0;)
    strides[dim] =
        dim + 1 == tensor->ndim ? 1 : strides[dim + 1] * shape[dim + 1];
  switch (kind) {
  case 0:
    tensor->data = NULL;
    return 1;
  case 1:
    tensor->shape = NULL;
    return 1;
  case 2:
    shape[tensor->ndim - 1] = -1;
    return 2;
  case 3:
    memcpy(other, shape, sizeof(other));
    /* A block table may be wider than needed. */
    other[tensor->dtype.code == kInt ? 0 : tensor->ndim - 1] += 1;
    tensor->shape = other;
    return 8;
  case 4:
    setDevice(tensor, 2);
    return 5;
  case 5:
    tensor->dtype.bits = tensor->dtype.bits == 32 ? 64 : 32;
    return 6;
  case 6:
    tensor->dtype.lanes = 2;
    return 6;
  case 7:
    tensor->ndim -= 1;
    return 7;
  case 8:
    tensor->data = (char *)tensor->data + 2;
    return 10;
  case 9:
    strides[tensor->ndim - 1] = 2;
    tensor->strides = strides;
    return 9;
  case 10:
    tensor->byte_offset = 1;
    return 10;
  }
  return 0;
}
enum { kBreaks = 11 };

/* Makes one tensor after another invalid, and lets outputs overlap other
 * tensors. */
static void tryBroken(Call call, void (*set)(void), int numInputs) {
  int kind, number, all;
  set();
  all = numTensors;
  for (number = 0; number < all; ++number)
    for (kind = 0; kind < kBreaks + all; ++kind) {
      char message[256] = "";
      int32_t code, expected;
      numTensors = 0;
      set();
      if (kind < kBreaks) {
        expected = breakTensor(number, kind);
      } else {
        /* An output within another tensor, but not all of it. */
        if (number < numInputs || kind - kBreaks == number)
          continue;
        t[number].data = (char *)t[kind - kBreaks].data + 8;
        expected = 3;
      }
      before = data;
      code = call(message, sizeof(message));
      if (code != expected) {
        fprintf(stderr, "tensor %d, kind %d: %d, expected %d: %s\n", number,
                kind, code, expected, message);
        exit(1);
      }
      CHECK(message[0]);
      CHECK(!memcmp(&before, &data, sizeof(data)));
      CHECK(call(NULL, 0) == expected);
      ++numRefused;
    }
  numTensors = 0;
}

#define N(...) ((const int64_t[]){__VA_ARGS__})

static void finish(Call call, Plain plain, int32_t expected) {
  char message[256] = "";
  int32_t code;
  before = data;
  code = call(message, sizeof(message));
  if (code != expected) {
    fprintf(stderr, "%d, expected %d: %s\n", code, expected, message);
    exit(1);
  }
  if (expected) {
    puts(message);
    CHECK(message[0]);
    CHECK(!memcmp(&before, &data, sizeof(data)));
    CHECK(call(NULL, 0) == expected);
    /* The plain entry point cannot detect contradictory sizes. */
    CHECK(plain() == expected);
    CHECK(!memcmp(&before, &data, sizeof(data)));
    ++numRefused;
  } else {
    CHECK(memcmp(&before, &data, sizeof(data)));
    CHECK(plain() == 0);
  }
  numTensors = 0;
}

/* Decode with a batch of 2 and caches of 6 keys. */
static void tryDecode(const int64_t *lengths, int32_t expected) {
  addFloats(4, 2, 1, 4, 8);
  addFloats(4, 2, 2, 6, 8);
  addNumbers(1, 2, 0, 64, lengths);
  addFloats(4, 2, 1, 4, 8);
  finish(decode, plainDecode, expected);
}

/* 3 pages of 4 keys; each sequence has up to 2 pages. */
static void tryPaged(const int64_t *lengths, const int64_t *table,
                     int32_t expected) {
  addFloats(4, 2, 1, 4, 8);
  addFloats(4, 3, 4, 2, 8);
  addNumbers(1, 2, 0, 64, lengths);
  addNumbers(2, 2, 2, 32, table);
  addFloats(4, 2, 1, 4, 8);
  finish(paged, plainPaged, expected);
}

/* The same pages, and a mask of 6 keys. */
static void tryMasked(const int64_t *lengths, int32_t expected) {
  addFloats(4, 2, 1, 4, 8);
  addFloats(4, 3, 4, 2, 8);
  addNumbers(1, 2, 0, 64, lengths);
  addNumbers(2, 2, 2, 32, N(2, 0, 1, 2));
  addFloats(4, 1, 1, 1, 6);
  addFloats(4, 2, 1, 4, 8);
  finish(masked, plainMasked, expected);
}

/* The same pages, and positions of 5 keys. */
static void tryPositioned(const int64_t *lengths, int32_t expected) {
  addFloats(4, 2, 1, 4, 8);
  addFloats(4, 3, 4, 2, 8);
  addNumbers(1, 2, 0, 64, lengths);
  addNumbers(2, 2, 2, 32, N(2, 0, 1, 2));
  addNumbers(2, 2, 5, 32, N(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  addFloats(4, 2, 1, 4, 8);
  finish(positioned, plainPositioned, expected);
}

/* 5 queries and 7 keys. */
static void tryRagged(int64_t count, const int64_t *queries,
                      const int64_t *keys, int32_t expected) {
  addFloats(3, 5, 4, 8, 0);
  addFloats(3, 7, 2, 8, 0);
  addNumbers(1, count, 0, 32, queries);
  addNumbers(1, count, 0, 32, keys);
  addFloats(3, 5, 4, 8, 0);
  finish(ragged, plainRagged, expected);
}

static void tryMixed(int64_t count, const int64_t *starts,
                     const int64_t *lengths, int32_t expected) {
  addFloats(3, 5, 4, 8, 0);
  addFloats(4, 2, 6, 2, 8);
  addNumbers(1, count, 0, 64, starts);
  addNumbers(1, 2, 0, 32, lengths);
  addFloats(3, 5, 4, 8, 0);
  finish(mixed, plainMixed, expected);
}

static void tryAppend(const int64_t *lengths, int32_t expected) {
  addFloats(4, 2, 3, 2, 8);
  addNumbers(1, 2, 0, 64, lengths);
  addFloats(4, 2, 6, 2, 8);
  addFloats(4, 2, 6, 2, 8);
  addFloats(4, 2, 6, 2, 8);
  addFloats(4, 2, 6, 2, 8);
  finish(append, plainAppend, expected);
}

/* 3 pages of 4 slots. */
static void tryScatter(const int64_t *slots, int32_t expected) {
  int i;
  addFloats(4, 2, 2, 2, 8);
  addNumbers(2, 2, 2, 32, slots);
  for (i = 0; i < 4; ++i)
    addFloats(4, 3, 4, 2, 8);
  finish(scatter, plainScatter, expected);
}
static void tryScatterPacked(const int64_t *slots, int32_t expected) {
  int i;
  addFloats(3, 3, 2, 8, 0);
  addNumbers(1, 3, 0, 64, slots);
  for (i = 0; i < 4; ++i)
    addFloats(4, 3, 4, 2, 8);
  finish(scatterPacked, plainScatterPacked, expected);
}

static void tryHeads(int64_t queryHeads, int64_t keyHeads, int32_t expected) {
  addFloats(4, 2, 3, queryHeads, 8);
  addFloats(4, 2, 5, keyHeads, 8);
  addFloats(4, 2, 3, queryHeads, 8);
  finish(heads, plainHeads, expected);
}

/* The op requires a batch of 3 and sinks for 4 heads. */
static void trySizes(int64_t batch, int64_t sinks, int32_t expected) {
  addFloats(4, batch, 2, 4, 8);
  addFloats(4, 3, 5, 2, 8);
  addFloats(1, sinks, 0, 0, 0);
  addFloats(4, batch, 2, 4, 8);
  finish(sizes, plainSizes, expected);
}

static void setDecode(void) {
  addFloats(4, 2, 1, 4, 8);
  addFloats(4, 2, 2, 6, 8);
  addNumbers(1, 2, 0, 64, N(6, 3));
  addFloats(4, 2, 1, 4, 8);
}
static void setPaged(void) {
  addFloats(4, 2, 1, 4, 8);
  addFloats(4, 3, 4, 2, 8);
  addNumbers(1, 2, 0, 64, N(4, 5));
  addNumbers(2, 2, 2, 32, N(1, 0, 2, 0));
  addFloats(4, 2, 1, 4, 8);
}
static void setScatter(void) {
  int i;
  addFloats(4, 2, 2, 2, 8);
  addNumbers(2, 2, 2, 32, N(0, 11, -1, 5));
  for (i = 0; i < 4; ++i)
    addFloats(4, 3, 4, 2, 8);
}

int main(void) {
  enum { kOk = 0, kShape = 8, kIndex = 12 };
  int64_t i;
  for (i = 0; i < kMaxTensors; ++i)
    fillFloats(data.floats[i], kRoom);

  tryDecode(N(6, 0), kOk);
  tryDecode(N(6, 7), kIndex);
  tryDecode(N(-1, 6), kIndex);
  tryDecode(N(INT64_MIN, 6), kIndex);
  tryDecode(N(6, INT64_MAX), kIndex);

  tryPaged(N(8, 0), N(2, 0, 99, -5), kOk);
  tryPaged(N(4, 5), N(1, 99, 2, 0), kOk);
  tryPaged(N(9, 0), N(2, 0, 1, 1), kIndex);
  tryPaged(N(8, 0), N(2, 3, 1, 1), kIndex);
  tryPaged(N(8, 5), N(2, 1, 0, -1), kIndex);
  tryPaged(N(8, 8), N(2, 1, INT32_MAX, 0), kIndex);
  tryPaged(N(8, -1), N(2, 1, 0, 0), kIndex);

  tryMasked(N(6, 0), kOk);
  tryMasked(N(6, 7), kIndex);
  tryMasked(N(8, 1), kIndex);
  tryPositioned(N(5, 4), kOk);
  tryPositioned(N(5, 6), kIndex);

  tryRagged(3, N(0, 2, 5), N(0, 0, 7), kOk);
  tryRagged(3, N(1, 1, 4), N(2, 3, 5), kOk);
  tryRagged(3, N(0, 2, 6), N(0, 0, 7), kIndex);
  tryRagged(3, N(0, 2, 5), N(0, 0, 8), kIndex);
  tryRagged(3, N(0, 3, 2), N(0, 0, 7), kIndex);
  tryRagged(3, N(-1, 3, 5), N(0, 0, 7), kIndex);
  tryRagged(0, N(0), N(0), kShape);

  tryMixed(3, N(0, 2, 5), N(6, 3), kOk);
  tryMixed(3, N(0, 2, 5), N(7, 3), kIndex);
  tryMixed(3, N(0, 6, 5), N(6, 3), kIndex);
  tryMixed(4, N(0, 1, 2, 5), N(6, 3), kShape);
  tryMixed(2, N(0, 5), N(6, 3), kShape);

  /* Tokens before the first slot are not written. */
  tryAppend(N(6, 1), kOk);
  tryAppend(N(7, 3), kIndex);
  tryAppend(N(3, -1), kIndex);
  tryAppend(N(3, INT64_MAX), kIndex);

  tryScatter(N(0, 11, -1, 5), kOk);
  tryScatter(N(0, 12, -1, 5), kIndex);
  tryScatter(N(0, 1, 2, INT32_MAX), kIndex);
  tryScatterPacked(N(11, INT64_MIN, 3), kOk);
  tryScatterPacked(N(3, 4, 12), kIndex);
  tryScatterPacked(N(3, 4, INT64_MAX), kIndex);

  tryHeads(6, 2, kOk);
  tryHeads(2, 2, kOk);
  tryHeads(5, 2, kShape);
  tryHeads(1, 2, kShape);
  tryHeads(2, 0, kShape);

  trySizes(3, 4, kOk);
  trySizes(3, 3, kShape);
  trySizes(3, 0, kShape);
  trySizes(2, 4, kShape);
  trySizes(4, 4, kShape);
  tryBroken(decode, setDecode, 3);
  tryBroken(paged, setPaged, 4);
  tryBroken(scatter, setScatter, 4);
  printf("%d calls refused\n", numRefused);
  return 0;
}
