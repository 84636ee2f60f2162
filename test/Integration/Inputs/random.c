/*===- random.c - random views of a buffer ------------------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* A call must be accepted if and only if its outputs overlap no other tensor,
 * except for the input that they may alias exactly; a list of all elements
 * tells. Accepted calls give the bits of contiguous tensors, and change no
 * other element.  */

#include "rope.h"

#include "tensors.h"

enum { kHeads = 4, kDim = 64, kMaxSize = 3, kExtent = 8, kLanes = 66 };
enum { kArena = kExtent * kExtent * kExtent * kLanes };
enum { kMaxCount = kMaxSize * kMaxSize * kHeads * kDim };

static float arena[kArena], before[kArena];
/* For each element, a bit mask of the tensors that contain it. */
static unsigned char owners[kArena];

typedef struct {
  int64_t offset, shape[4], strides[4];
} View;

static int64_t pick(int64_t below) {
  return (int64_t)((nextRandom() + 1.0) / 2.0 * (double)below) % below;
}

/* Makes a slice of a tensor [8][8][8][66], with dimensions in random order and
 * strides of 1 or 2 in either direction. */
static View makeView(int64_t batch, int64_t tokens) {
  View view = {0, {0}, {0}};
  int64_t extentStrides[3];
  int i, j;
  view.shape[0] = batch;
  view.shape[1] = tokens;
  view.shape[2] = kHeads;
  view.shape[3] = kDim;
  view.strides[3] = 1;
  view.offset = pick(kLanes - kDim + 1);
  extentStrides[2] = kLanes;
  extentStrides[1] = kExtent * extentStrides[2];
  extentStrides[0] = kExtent * extentStrides[1];
  for (i = 2; i > 0; --i) {
    int64_t stride = extentStrides[i];
    j = (int)pick(i + 1);
    extentStrides[i] = extentStrides[j];
    extentStrides[j] = stride;
  }
  for (i = 0; i < 3; ++i) {
    int64_t step = 1 + pick(2), last = (view.shape[i] - 1) * step;
    int64_t first = pick(kExtent - last);
    view.strides[i] = step * extentStrides[i];
    if (pick(4) == 0) {
      first += last;
      view.strides[i] = -view.strides[i];
    }
    view.offset += first * extentStrides[i];
  }
  return view;
}

/* Returns the offset of row `number` in the arena. */
static int64_t getRow(const View *view, int64_t number) {
  int64_t head = number % kHeads, token = number / kHeads % view->shape[1];
  int64_t batch = number / kHeads / view->shape[1];
  return view->offset + batch * view->strides[0] + token * view->strides[1] +
         head * view->strides[2];
}

static void own(const View *view, int64_t numRows, int bit) {
  int64_t row, lane;
  for (row = 0; row < numRows; ++row)
    for (lane = 0; lane < kDim; ++lane)
      owners[getRow(view, row) + lane] |= (unsigned char)bit;
}

static int owned(const View *view, int64_t numRows) {
  int64_t row, lane;
  int bits = 0;
  for (row = 0; row < numRows; ++row)
    for (lane = 0; lane < kDim; ++lane)
      bits |= owners[getRow(view, row) + lane];
  return bits;
}

static int isSame(const View *a, const View *b) {
  int dim, result = a->offset == b->offset;
  for (dim = 0; dim < 3; ++dim)
    result &= a->shape[dim] == 1 || a->strides[dim] == b->strides[dim];
  return result;
}

static int64_t positions[kMaxSize * kMaxSize];
static int numAccepted, numRefused;

static void checkCall(void) {
  static float data[4][kMaxCount];
  int64_t batch = 1 + pick(kMaxSize), tokens = 1 + pick(kMaxSize);
  int64_t numRows = batch * tokens * kHeads, row;
  View views[4];
  DLTensor tensors[4], at;
  int i, isAllowed;
  int32_t code;
  for (i = 0; i < 4; ++i)
    views[i] = i >= 2 && pick(3) ? views[i - 2] : makeView(batch, tokens);

  memset(owners, 0, sizeof(owners));
  for (i = 0; i < 4; ++i)
    if (i < 2 || !isSame(&views[i], &views[i - 2]))
      own(&views[i], numRows, 1 << i);
  isAllowed = 1;
  for (i = 2; i < 4; ++i)
    isAllowed &= owned(&views[i], numRows) ==
                 1 << (isSame(&views[i], &views[i - 2]) ? i - 2 : i);

  for (i = 0; i < 4; ++i)
    tensors[i] = makeTensor(arena + views[i].offset, kFloat, 32, 4,
                            views[i].shape, views[i].strides);
  at = makeTensor(positions, kInt, 64, 2, views[0].shape, NULL);
  for (i = 0; i < 2; ++i)
    for (row = 0; row < numRows; ++row)
      memcpy(data[i] + row * kDim, arena + getRow(&views[i], row),
             kDim * sizeof(float));
  memcpy(before, arena, sizeof(arena));
  code = rope_rope_dl(&tensors[0], &tensors[1], &at, &tensors[2], &tensors[3],
                      NULL, 0);
  CHECK(code == (isAllowed ? 0 : 3));
  if (isAllowed) {
    CHECK(rope_rope(data[0], data[1], positions, data[2], data[3], batch,
                    tokens) == 0);
    for (i = 2; i < 4; ++i)
      for (row = 0; row < numRows; ++row) {
        int64_t place = getRow(&views[i], row);
        CHECK(memcmp(arena + place, data[i] + row * kDim,
                     kDim * sizeof(float)) == 0);
        memcpy(arena + place, before + place, kDim * sizeof(float));
      }
  }
  CHECK(memcmp(arena, before, sizeof(arena)) == 0);
  ++*(isAllowed ? &numAccepted : &numRefused);
}

int main(void) {
  int i;
  for (i = 0; i < kMaxSize * kMaxSize; ++i)
    positions[i] = 5 * i + 1;
  fillFloats(arena, kArena);
  for (i = 0; i < 20000; ++i)
    checkCall();
  /* Accepted and refused calls are both frequent. */
  CHECK(numAccepted > 4000 && numRefused > 4000);
  printf("%d calls\n", numAccepted + numRefused);
  return 0;
}
