//===- Indices.h - checks of values that kernels use as indices ---*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_INDICES_H
#define POSENC_KERNEL_INDICES_H

#include "Report.h"

/* The values of BoundKind in dialect/posenc/IR/AbiAttrs.td. */
enum { kLengths, kStarts, kPages, kSlots, kHeads, kRows, kWrappedRows };

/* An integer tensor of rank 2, or of rank 1 with one row. */
struct Indices {
  int64_t number; /* index of the argument */
  const char *data;
  int64_t bytes; /* size of an element */
  int64_t rows, columns;
  int64_t rowStride; /* in bytes */
};

static struct Indices getIndices(const struct Call *call, int64_t number) {
  const struct Description *description = call->description;
  const struct Argument *argument = &description->arguments[number];
  int isMatrix = argument->rank == 2;
  struct Indices result;
  result.number = number;
  result.data = (const char *)call->words[number];
  result.bytes = argument->bits / 8;
  result.rows = isMatrix ? getSize(description, argument, 0, call->words) : 1;
  result.columns = getSize(description, argument, isMatrix, call->words);
  result.rowStride =
      isMatrix ? getStride(argument, 0, call->words) * result.bytes : 0;
  return result;
}

static int64_t getIndex(const struct Indices *indices, int64_t row,
                        int64_t column) {
  const char *at =
      indices->data + row * indices->rowStride + column * indices->bytes;
  return indices->bytes == 4 ? *(const int32_t *)at : *(const int64_t *)at;
}

static int64_t getFactor(const struct Call *call, const struct Dim *factor) {
  return factor->word < 0 ? factor->size : call->words[factor->word];
}

static int64_t getLimit(const struct Call *call, const struct Bound *bound) {
  int64_t limit;
  return __builtin_mul_overflow(getFactor(call, &bound->limit[0]),
                                getFactor(call, &bound->limit[1]), &limit)
             ? INT64_MAX
             : limit;
}

/* Checks that the first `count` values of a row are in [low, high]. INT64_MIN
 * as `low` means that only `high` is a bound. */
static int32_t checkRow(struct Call *call, const struct Indices *indices,
                        int64_t row, int64_t count, int64_t low, int64_t high) {
  int isMatrix = call->description->arguments[indices->number].rank == 2;
  for (int64_t i = 0; i < count; ++i) {
    int64_t index = getIndex(indices, row, i);
    if (index >= low && index <= high)
      continue;
    int hasLow = low != INT64_MIN;
    int64_t first = hasLow ? low : high;
    if (isMatrix)
      return fail(call, kEntryIndex,
                  hasLow ? "%n[%d, %d] is %d, expected at least %d and at "
                           "most %d"
                         : "%n[%d, %d] is %d, expected at most %d",
                  VALUES(indices->number, row, i, index, first, high));
    return fail(call, kEntryIndex,
                hasLow ? "%n[%d] is %d, expected at least %d and at most %d"
                       : "%n[%d] is %d, expected at most %d",
                VALUES(indices->number, i, index, first, high));
  }
  return kEntryOk;
}

/* Checks that sequence lengths are in [0, limit]. */
static int32_t checkLengths(struct Call *call, const struct Indices *lengths,
                            int64_t limit) {
  for (int64_t i = 0; i < lengths->columns; ++i) {
    int64_t length = getIndex(lengths, 0, i);
    if (length < 0 || length > limit)
      return fail(call, kEntryIndex, "%n[%d] is %d, expected 0 to %d",
                  VALUES(lengths->number, i, length, limit));
  }
  return kEntryOk;
}

/* Checks the starts of sequences (cu_seqlens): ascending, at most `limit`, and
 * one more than there are sequences, unless numSequences is negative. */
static int32_t checkStarts(struct Call *call, const struct Indices *starts,
                           int64_t limit, int64_t numSequences) {
  if (numSequences < 0 ? starts->columns < 1
                       : starts->columns - 1 != numSequences)
    return fail(call, kEntryShape, "dimension 0 of %n is %d, expected %d",
                VALUES(starts->number, starts->columns,
                       numSequences < 0 ? 1 : numSequences + 1));
  for (int64_t i = 0, last = 0; i < starts->columns; ++i) {
    int64_t start = getIndex(starts, 0, i);
    if (start < last || start > limit)
      return fail(call, kEntryIndex, "%n[%d] is %d, expected %d to %d",
                  VALUES(starts->number, i, start, last, limit));
    last = start;
  }
  return kEntryOk;
}

/* Checks the entries of a block table that the kernel reads: those of the pages
 * with keys. The lengths have been checked, so rows are long enough. */
static int32_t checkPages(struct Call *call, const struct Indices *pages,
                          const struct Bound *bound, int64_t limit) {
  struct Indices lengths = getIndices(call, bound->lengths);
  int64_t keys = getFactor(call, &bound->each);
  for (int64_t row = 0; row < pages->rows; ++row) {
    int64_t length = getIndex(&lengths, 0, row);
    int64_t used = length > 0 && keys > 0 ? (length - 1) / keys + 1 : 0;
    int32_t code = checkRow(call, pages, row, used, 0, limit - 1);
    if (code)
      return code;
  }
  return kEntryOk;
}

/* Checks that all values are in [low, high]. */
static int32_t checkAll(struct Call *call, const struct Indices *indices,
                        int64_t low, int64_t high) {
  for (int64_t row = 0; row < indices->rows; ++row) {
    int32_t code = checkRow(call, indices, row, indices->columns, low, high);
    if (code)
      return code;
  }
  return kEntryOk;
}

/* Checks the values of inputs that the kernel uses as indices. The tensors
 * themselves have been checked. */
static int32_t checkIndices(struct Call *call) {
  const struct Description *description = call->description;
  for (int64_t i = 0; i < description->numBounds; ++i) {
    const struct Bound *bound = &description->bounds[i];
    int64_t limit = getLimit(call, bound);
    int64_t each = getFactor(call, &bound->each);
    int32_t code = kEntryOk;
    if (bound->kind == kHeads) {
      if (limit == 0 ? each != 0 : each % limit != 0)
        code = fail(call, kEntryShape,
                    "the %d heads of %n are not a multiple of the %d key heads",
                    VALUES(each, bound->input, limit));
    } else {
      struct Indices indices = getIndices(call, bound->input);
      if (bound->kind == kLengths)
        code = checkLengths(call, &indices, limit);
      else if (bound->kind == kStarts)
        code = checkStarts(call, &indices, limit, each);
      else if (bound->kind == kPages)
        code = checkPages(call, &indices, bound, limit);
      else
        code = checkAll(call, &indices,
                        bound->kind == kRows          ? 0
                        : bound->kind == kWrappedRows ? -limit
                                                      : INT64_MIN,
                        limit - 1);
    }
    if (code)
      return code;
  }
  return kEntryOk;
}

#endif
