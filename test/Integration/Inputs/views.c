/*===- views.c - strided tensors ----------------------------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* Compiled as C and as C++. Views of one buffer must get the same bits as
 * contiguous tensors through the plain entry point, and no other element may
 * change. */

#include "rope.h"

#include "tensors.h"

enum { kBatch = 2, kTokens = 5, kHeads = 4, kDim = 64 };
enum { kHidden = kHeads * kDim, kCount = kBatch * kTokens * kHidden };
enum { kArena = 8 * kCount };

static float arena[kArena], before[kArena];
static int64_t positions[kBatch * kTokens];
/* The same positions, with other elements after each sequence. */
static int64_t padded[kBatch * (kTokens + 3)];
static int64_t paddedStrides[] = {kTokens + 3, 1};

/* The location of a tensor [batch, token, head, dim] in the arena. */
typedef struct {
  int64_t offset, strides[4];
} Layout;

typedef struct {
  const char *name;
  Layout q, k, qOut, kOut;
} Case;

#define ROWS(offset, row) {offset, {kTokens * (row), row, kDim, 1}}
/* Head-major. */
#define HEADS(offset) {offset, {kTokens * kHidden, kDim, kTokens * kDim, 1}}
#define PACKED(number) ROWS((number) * kCount, kHidden)
/* Slices of rows [q | k | v]. */
#define FUSED(slice) ROWS((slice) * kHidden, 3 * kHidden)
/* Alternating heads of two tensors. */
#define TURNS(number)                                                          \
  {(number) * kDim, {2 * kTokens * kHidden, 2 * kHidden, 2 * kDim, 1}}
/* Heads with a stride of 67 floats, from an odd address. */
#define PADDED(number) {(number) * 2 * kCount + 1, {kTokens * 300, 300, 67, 1}}
/* Negative strides: the last sequence, token and head come first. */
#define REVERSED(number)                                                       \
  {(number) * kCount + kCount - kDim, {-kTokens * kHidden, -kHidden, -kDim, 1}}
/* Zero strides: one sequence, token or head for all. */
#define REPEATED(a, b, c) {0, {a, b, c, 1}}

static const Case cases[] = {
    {"contiguous", PACKED(0), PACKED(1), PACKED(2), PACKED(3)},
    {"in place", PACKED(0), PACKED(1), PACKED(0), PACKED(1)},
    {"fused in place", FUSED(0), FUSED(1), FUSED(0), FUSED(1)},
    {"fused, k first", FUSED(1), FUSED(0), FUSED(1), FUSED(0)},
    {"fused, q into v", FUSED(0), FUSED(1), FUSED(2), FUSED(1)},
    {"fused to contiguous", FUSED(0), FUSED(1), PACKED(6), PACKED(7)},
    {"heads in place", HEADS(0), HEADS(kCount), HEADS(0), HEADS(kCount)},
    {"heads to rows", HEADS(0), HEADS(kCount), PACKED(2), PACKED(3)},
    {"turns in place", TURNS(0), TURNS(1), TURNS(0), TURNS(1)},
    {"turns out of turns", TURNS(0), TURNS(1), PACKED(2), TURNS(1)},
    {"padded", PADDED(0), PADDED(1), PADDED(2), PADDED(3)},
    {"reversed in place", REVERSED(0), REVERSED(1), REVERSED(0), REVERSED(1)},
    {"reversed to rows", REVERSED(0), PACKED(1), PACKED(2), PACKED(3)},
    {"rows to reversed", PACKED(0), PACKED(1), REVERSED(2), REVERSED(3)},
    {"one batch for all", REPEATED(0, kHidden, kDim), PACKED(1), PACKED(2),
     PACKED(3)},
    {"one head for all", PACKED(1), REPEATED(kTokens * kDim, kDim, 0),
     PACKED(2), PACKED(3)},
    {"one row for all", REPEATED(0, 0, 0), REPEATED(0, 0, 0), PACKED(2),
     PACKED(3)},
    {"overlapping inputs", REPEATED(1, 2, 3), PACKED(1), PACKED(2), PACKED(3)},
};

static int64_t indexOf(const Layout *layout, int64_t batch, int64_t token,
                       int64_t head) {
  return layout->offset + batch * layout->strides[0] +
         token * layout->strides[1] + head * layout->strides[2];
}

static void gather(const Layout *layout, float *out) {
  int64_t b, t, h;
  for (b = 0; b < kBatch; ++b)
    for (t = 0; t < kTokens; ++t)
      for (h = 0; h < kHeads; ++h, out += kDim)
        memcpy(out, arena + indexOf(layout, b, t, h), kDim * sizeof(float));
}

/* Compares the result, and restores the arena. */
static void checkAndRestore(const Layout *layout, const float *expected) {
  int64_t b, t, h;
  for (b = 0; b < kBatch; ++b)
    for (t = 0; t < kTokens; ++t)
      for (h = 0; h < kHeads; ++h, expected += kDim) {
        int64_t at = indexOf(layout, b, t, h);
        CHECK(memcmp(arena + at, expected, kDim * sizeof(float)) == 0);
        memcpy(arena + at, before + at, kDim * sizeof(float));
      }
}

static DLTensor view(Layout *layout, int64_t *shape, int useOffset) {
  DLTensor result = makeTensor(arena + (useOffset ? 0 : layout->offset), kFloat,
                               32, 4, shape, layout->strides);
  if (useOffset)
    result.byte_offset = (uint64_t)layout->offset * sizeof(float);
  return result;
}

static void checkCase(Case it, int useOffset) {
  static float q[kCount], k[kCount], qOut[kCount], kOut[kCount];
  int64_t shape[] = {kBatch, kTokens, kHeads, kDim};
  DLTensor tensors[5];
  char message[100] = "?";
  int32_t code;
  fillFloats(arena, kArena);
  memcpy(before, arena, sizeof(arena));
  gather(&it.q, q);
  gather(&it.k, k);
  CHECK(rope_rope(q, k, positions, qOut, kOut, kBatch, kTokens) == 0);

  tensors[0] = view(&it.q, shape, useOffset);
  tensors[1] = view(&it.k, shape, useOffset);
  tensors[2] = makeTensor(padded, kInt, 64, 2, shape, paddedStrides);
  tensors[3] = view(&it.qOut, shape, useOffset);
  tensors[4] = view(&it.kOut, shape, useOffset);
  code = rope_rope_dl(&tensors[0], &tensors[1], &tensors[2], &tensors[3],
                      &tensors[4], message, sizeof(message));
  if (code != 0)
    fprintf(stderr, "%s: %d, %s\n", it.name, (int)code, message);
  CHECK(code == 0);
  CHECK(message[0] == 0);
  checkAndRestore(&it.qOut, qOut);
  checkAndRestore(&it.kOut, kOut);
  CHECK(memcmp(arena, before, sizeof(arena)) == 0);
}

/* Both tables are halves of the rows of one tensor. */
static void checkTables(void) {
  enum { kRows = kBatch * kTokens, kHalf = kDim / 2 };
  static float cosines[kRows * kHalf], sines[kRows * kHalf];
  static float rows[kRows][2][kHalf];
  int64_t shape[] = {kRows, kHalf}, strides[] = {kDim, 1};
  DLTensor at = makeTensor(positions, kInt, 64, 1, shape, NULL);
  DLTensor cosTensor = makeTensor(rows[0][0], kFloat, 32, 2, shape, strides);
  DLTensor sinTensor = makeTensor(rows[0][1], kFloat, 32, 2, shape, strides);
  int row;
  CHECK(rope_sincos(positions, cosines, sines, kRows) == 0);
  CHECK(rope_sincos_dl(&at, &cosTensor, &sinTensor, NULL, 0) == 0);
  for (row = 0; row < kRows; ++row) {
    CHECK(memcmp(rows[row][0], cosines + row * kHalf, sizeof(rows[0][0])) == 0);
    CHECK(memcmp(rows[row][1], sines + row * kHalf, sizeof(rows[0][1])) == 0);
  }
}

/* The strides of dimensions of size 1, and of empty tensors, may be anything.
 */
static void checkUnusedStrides(void) {
  static float q[kHidden], k[kHidden], qOut[kHidden], kOut[kHidden];
  static const int64_t odd[] = {0, 1, -1, INT64_MAX, INT64_MIN};
  int64_t shape[] = {1, 1, kHeads, kDim}, none[] = {1, 0, kHeads, kDim};
  size_t i;
  fillFloats(q, kHidden);
  fillFloats(k, kHidden);
  CHECK(rope_rope(q, k, positions, qOut, kOut, 1, 1) == 0);
  for (i = 0; i < sizeof(odd) / sizeof(*odd); ++i) {
    int64_t strides[] = {odd[i], odd[i], kDim, 1};
    int64_t wild[] = {odd[i], odd[i], odd[i], odd[i]};
    float *data[] = {q, k, qOut, kOut};
    DLTensor tensors[5];
    size_t j;
    for (j = 0; j < 4; ++j)
      tensors[j] = makeTensor(data[j], kFloat, 32, 4, shape, strides);
    tensors[4] = makeTensor(positions, kInt, 64, 2, shape, strides);
    CHECK(rope_rope_dl(&tensors[0], &tensors[1], &tensors[4], &tensors[2],
                       &tensors[3], NULL, 0) == 0);
    /* In place, with equivalent strides. */
    tensors[2] = makeTensor(q, kFloat, 32, 4, shape, NULL);
    CHECK(rope_rope_dl(&tensors[0], &tensors[1], &tensors[4], &tensors[2],
                       &tensors[3], NULL, 0) == 0);
    CHECK(memcmp(q, qOut, sizeof(q)) == 0);
    for (j = 0; j < 4; ++j)
      tensors[j] = makeTensor(NULL, kFloat, 32, 4, none, wild);
    tensors[4] = makeTensor(NULL, kInt, 64, 2, none, wild);
    CHECK(rope_rope_dl(&tensors[0], &tensors[1], &tensors[4], &tensors[2],
                       &tensors[3], NULL, 0) == 0);
    memcpy(q, k, sizeof(q));
    CHECK(rope_rope(q, k, positions, qOut, kOut, 1, 1) == 0);
  }
}

int main(void) {
  size_t i;
  int useOffset;
  for (i = 0; i < kBatch * kTokens; ++i)
    positions[i] = padded[i + i / kTokens * 3] = (int64_t)(3 * i + 1);
  for (i = 0; i < sizeof(cases) / sizeof(*cases); ++i)
    for (useOffset = 0; useOffset < 2; ++useOffset)
      checkCase(cases[i], useOffset);
  checkTables();
  checkUnusedStrides();
  printf("%d views\n", (int)(sizeof(cases) / sizeof(*cases)));
  return 0;
}
