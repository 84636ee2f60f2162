//===- View.h - the memory of strided tensors ---------------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_VIEW_H
#define POSENC_KERNEL_VIEW_H

#include "Description.h"

/* The bytes of a strided tensor: runs of `bytes` contiguous bytes, repeated by
 * nested levels with descending strides. Levels that continue each other
 * without a gap are merged, so a contiguous tensor has no levels. */
enum { kMaxLevels = 16 };

struct View {
  int isEmpty;
  int hasTooManyLevels; /* only `low` and `span` are valid */
  int isRepeating;      /* a dimension has stride 0 */
  uint64_t low, span;   /* address of the first byte; bytes up to the last */
  uint64_t bytes;
  int numLevels;
  struct Level {
    uint64_t stride; /* bytes */
    uint64_t size;   /* 2 or more */
  } levels[kMaxLevels];
};

/* Inserts a level in the order of strides. */
static inline void addLevel(struct View *view, uint64_t stride, uint64_t size) {
  if (view->numLevels == kMaxLevels) {
    view->hasTooManyLevels = 1;
    return;
  }
  int at = view->numLevels++;
  for (; at > 0 && view->levels[at - 1].stride < stride; --at)
    view->levels[at] = view->levels[at - 1];
  view->levels[at].stride = stride;
  view->levels[at].size = size;
}

/* A fast path of createView for contiguous tensors with elements. Returns 0 for
 * other tensors. */
static inline int createContiguousView(const struct Description *description,
                                       int64_t number, const int64_t *words,
                                       struct View *view) {
  const struct Argument *argument = &description->arguments[number];
  int64_t count = 1, bytes;
  for (int64_t dim = argument->rank - 1; dim >= 0; --dim) {
    int64_t size = getSize(description, argument, dim, words);
    if ((size != 1 && getStride(argument, dim, words) != count) ||
        __builtin_mul_overflow(count, size, &count))
      return 0;
  }
  if (count == 0 || __builtin_mul_overflow(count, argument->bits / 8, &bytes) ||
      (uint64_t)words[number] > UINTPTR_MAX - (uint64_t)bytes)
    return 0;
  view->isEmpty = view->hasTooManyLevels = view->isRepeating = 0;
  view->low = (uint64_t)words[number];
  view->span = view->bytes = (uint64_t)bytes;
  view->numLevels = 0;
  return 1;
}

/* Sets `view` to the memory of a tensor whose sizes and strides are in the
 * words. Returns kEntrySize if it exceeds the address space. */
static inline int32_t createView(const struct Description *description,
                                 int64_t number, const int64_t *words,
                                 struct View *view) {
  const struct Argument *argument = &description->arguments[number];
  if (createContiguousView(description, number, words, view))
    return kEntryOk;
  /* Initializes everything but `levels`. */
  view->isEmpty = view->hasTooManyLevels = view->isRepeating = 0;
  view->low = (uint64_t)words[number];
  view->span = 0;
  view->bytes = (uint64_t)argument->bits / 8;
  view->numLevels = 0;
  for (int64_t dim = 0; dim < argument->rank; ++dim)
    view->isEmpty |= getSize(description, argument, dim, words) == 0;
  if (view->isEmpty)
    return kEntryOk;

  /* The current level, which the next outer dimension may extend. */
  int64_t stride = (int64_t)view->bytes, size = 1;
  int isRun = 1;
  for (int64_t dim = argument->rank - 1; dim >= 0; --dim) {
    int64_t dimSize = getSize(description, argument, dim, words);
    if (dimSize == 1)
      continue;
    int64_t dimStride, extent;
    if (__builtin_mul_overflow(getStride(argument, dim, words),
                               argument->bits / 8, &dimStride) ||
        __builtin_mul_overflow(dimStride, dimSize - 1, &extent) ||
        extent == INT64_MIN)
      return kEntrySize;
    if (dimStride == 0) {
      view->isRepeating = 1;
      continue;
    }
    if (extent < 0 && view->low < (uint64_t)-extent)
      return kEntrySize;
    view->low -= extent < 0 ? (uint64_t)-extent : 0;
    view->span += (uint64_t)(extent < 0 ? -extent : extent);
    if (view->span > INT64_MAX)
      return kEntrySize;
    int64_t next;
    if (!__builtin_mul_overflow(stride, size, &next) && next == dimStride) {
      size *= dimSize;
      continue;
    }
    if (isRun)
      view->bytes *= (uint64_t)size;
    else
      addLevel(view, (uint64_t)(stride < 0 ? -stride : stride), (uint64_t)size);
    isRun = 0;
    stride = dimStride;
    size = dimSize;
  }
  if (isRun)
    view->bytes *= (uint64_t)size;
  else
    addLevel(view, (uint64_t)(stride < 0 ? -stride : stride), (uint64_t)size);
  view->span += (uint64_t)argument->bits / 8;
  return view->span > INT64_MAX || view->low > UINTPTR_MAX - view->span
             ? kEntrySize
             : kEntryOk;
}

/* Returns the bytes of all elements of an injective view. */
static inline int64_t getBytes(const struct View *view) {
  uint64_t bytes = view->isEmpty ? 0 : view->bytes;
  for (int level = 0; level < view->numLevels; ++level)
    bytes *= view->levels[level].size;
  return (int64_t)bytes;
}

/* Returns whether no byte belongs to two elements. May return 0 for an
 * injective view, but returns 1 for every slice of a contiguous tensor, in any
 * order of its dimensions. */
static inline int isInjective(const struct View *view) {
  if (view->isEmpty)
    return 1;
  if (view->isRepeating || view->hasTooManyLevels)
    return 0;
  uint64_t span = view->bytes;
  for (int level = view->numLevels - 1; level >= 0; --level) {
    if (view->levels[level].stride < span)
      return 0;
    span += view->levels[level].stride * (view->levels[level].size - 1);
  }
  return 1;
}

/* The levels of two views, merged by their strides. */
struct Pair {
  int numLevels;
  struct PairLevel {
    int64_t stride;
    int64_t sizes[2]; /* 1 for a view without this stride */
    int64_t spans[2]; /* bytes of this level and the inner ones */
  } levels[2 * kMaxLevels];
  int64_t bytes[2];
  int steps; /* limits the work of meets() */
};

/* Sets [*first, *last] to the differences between the indices of the first and
 * the second view at a level for which the inner levels may overlap, if the
 * second view begins `offset` bytes after the first. Returns 0 if they
 * overflow. */
static inline int findRange(const struct Pair *pair, int level, int64_t offset,
                            int64_t *first, int64_t *last) {
  const struct PairLevel *it = &pair->levels[level];
  *first = 1;
  *last = 0;
  if (offset >= it->spans[0] || -offset >= it->spans[1])
    return 1;
  int isLast = level + 1 == pair->numLevels;
  const int64_t *spans = isLast ? pair->bytes : it[1].spans;
  int64_t from = 1 - it->sizes[1], to = it->sizes[0] - 1;
  int64_t low, high;
  if (__builtin_sub_overflow(offset, spans[0], &low) ||
      __builtin_add_overflow(offset, spans[1], &high))
    return 0;
  *first = low / it->stride - (low % it->stride < 0) + 1;
  *last = high / it->stride - (high % it->stride <= 0);
  *first = *first > from ? *first : from;
  *last = *last < to ? *last : to;
  return 1;
}

/* Returns whether the views share a byte if the second begins `offset` bytes
 * after the first. Exact, unless it runs out of steps; then it returns 1. Not
 * recursive, so that its use of the stack is bounded. */
static inline int meets(struct Pair *pair, int64_t offset) {
  int64_t offsets[2 * kMaxLevels + 1];
  int64_t next[2 * kMaxLevels], last[2 * kMaxLevels];
  int level = 0, isNew = 1;
  offsets[0] = offset;
  while (level >= 0) {
    int64_t here = offsets[level];
    if (level == pair->numLevels) {
      if (here < pair->bytes[0] && -here < pair->bytes[1])
        return 1;
      --level;
      isNew = 0;
      continue;
    }
    if (isNew && !findRange(pair, level, here, &next[level], &last[level]))
      return 1;
    isNew = next[level] <= last[level];
    if (!isNew) {
      --level;
      continue;
    }
    if (--pair->steps < 0)
      return 1;
    offsets[level + 1] = here - next[level]++ * pair->levels[level].stride;
    ++level;
  }
  return 0;
}

/* Returns whether two tensors share memory. May return 1 for disjoint tensors
 * whose strides are unrelated. */
static inline int overlap(const struct View *a, const struct View *b) {
  if (a->isEmpty || b->isEmpty || a->low + a->span <= b->low ||
      b->low + b->span <= a->low)
    return 0;
  if (a->hasTooManyLevels || b->hasTooManyLevels)
    return 1;
  struct Pair pair;
  pair.numLevels = 0;
  pair.steps = 4096;
  pair.bytes[0] = (int64_t)a->bytes;
  pair.bytes[1] = (int64_t)b->bytes;
  for (int i = 0, j = 0; i < a->numLevels || j < b->numLevels;) {
    uint64_t strideA = i < a->numLevels ? a->levels[i].stride : 0;
    uint64_t strideB = j < b->numLevels ? b->levels[j].stride : 0;
    struct PairLevel *it = &pair.levels[pair.numLevels++];
    it->stride = (int64_t)(strideA > strideB ? strideA : strideB);
    it->sizes[0] = strideA >= strideB ? (int64_t)a->levels[i++].size : 1;
    it->sizes[1] = strideB >= strideA ? (int64_t)b->levels[j++].size : 1;
  }
  for (int view = 0; view < 2; ++view) {
    int64_t span = pair.bytes[view];
    for (int level = pair.numLevels - 1; level >= 0; --level) {
      struct PairLevel *it = &pair.levels[level];
      span += it->stride * (it->sizes[view] - 1);
      it->spans[view] = span;
    }
  }
  return meets(&pair, (int64_t)(b->low - a->low));
}

#endif
