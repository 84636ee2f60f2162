/*===- overlap.c - overlap of views -------------------------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* Random views of a small memory: whether two views share a byte, and whether a
 * view contains a byte twice. */

#include "View.h"

#include "check.h"

enum { kDims = 4, kMemory = 1 << 14, kMiddle = kMemory / 2 };

static int64_t pick(int64_t below) {
  return (int64_t)((nextRandom() + 1.0) / 2.0 * (double)below) % below;
}

/* A view, and how often it contains each byte of the memory. */
struct Sample {
  struct View view;
  unsigned char counts[kMemory];
  int isRepeated;
};

static void count(struct Sample *sample, const int64_t *words, int dim,
                  int64_t at, int64_t bits) {
  if (dim == kDims) {
    for (int64_t i = 0; i < bits / 8; ++i)
      sample->isRepeated |= sample->counts[kMiddle + at + i]++ > 0;
    return;
  }
  int64_t stride = dim + 1 == kDims ? 1 : words[1 + kDims + dim];
  for (int64_t i = 0; i < words[1 + dim]; ++i)
    count(sample, words, dim + 1, at + i * stride * (bits / 8), bits);
}

/* Makes a slice of a tensor [3][4][8][5] with dimensions in random order, or,
 * if `isWild`, with random strides. */
static void makeSample(struct Sample *sample, int isWild) {
  static const int64_t extents[] = {3, 4, 8, 5};
  struct Argument argument = {
      .bits = pick(2) ? 32 : 16, .rank = kDims, .strides = 1 + kDims};
  struct Dim dims[kDims];
  /* The address, the sizes, and the strides of all dimensions but the last. */
  int64_t words[2 * kDims], stride = 1;
  memset(sample, 0, sizeof(*sample));
  words[0] = kMiddle;
  for (int dim = kDims - 1; dim >= 0; --dim) {
    int64_t size = 1 + pick(extents[dim]);
    int64_t step = dim + 1 < kDims ? 1 + (pick(8) == 0) : 1;
    if (step == 2)
      size = (size + 1) / 2;
    int64_t first = pick(extents[dim] - (size - 1) * step);
    dims[dim] = (struct Dim){1 + dim, -1};
    words[1 + dim] = size;
    int isBackwards = dim + 1 < kDims && pick(6) == 0;
    if (isBackwards)
      first += (size - 1) * step;
    words[0] += first * stride * (argument.bits / 8);
    if (dim + 1 < kDims)
      words[1 + kDims + dim] = isWild        ? pick(120) - 60
                               : isBackwards ? -step * stride
                                             : step * stride;
    stride *= extents[dim];
  }
  for (int swaps = 0; swaps < 3; ++swaps) {
    int a = (int)pick(kDims - 1), b = (int)pick(kDims - 1);
    int64_t size = words[1 + a], other = words[1 + kDims + a];
    words[1 + a] = words[1 + b];
    words[1 + b] = size;
    words[1 + kDims + a] = words[1 + kDims + b];
    words[1 + kDims + b] = other;
  }
  struct Description description = {.arguments = &argument, .dims = dims};
  CHECK(createView(&description, 0, words, &sample->view) == kEntryOk);
  count(sample, words, 0, words[0] - kMiddle, argument.bits);
}

int main(void) {
  static struct Sample a, b;
  int numOverlaps = 0, numRepeated = 0, numPairs = 100000;
  for (int i = 0; i < numPairs; ++i) {
    int isWild = i % 4 == 0, isShared = 0;
    int64_t bytes = 0;
    makeSample(&a, isWild);
    makeSample(&b, i % 8 == 0);
    for (int at = 0; at < kMemory; ++at) {
      isShared |= a.counts[at] && b.counts[at];
      bytes += a.counts[at] > 0;
    }
    CHECK(overlap(&a.view, &b.view) == isShared);
    CHECK(overlap(&b.view, &a.view) == isShared);
    /* The check may refuse valid views with random strides. */
    if (!isWild)
      CHECK(isInjective(&a.view) == !a.isRepeated);
    if (isInjective(&a.view)) {
      CHECK(!a.isRepeated);
      CHECK(getBytes(&a.view) == bytes);
    }
    numOverlaps += isShared;
    numRepeated += a.isRepeated;
  }
  /* Both answers are frequent. */
  CHECK(numOverlaps > numPairs / 10 && numOverlaps < numPairs * 9 / 10);
  CHECK(numRepeated > numPairs / 20);
  printf("%d pairs\n", numPairs);
  return 0;
}
