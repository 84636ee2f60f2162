//===- Memory.h - checks of the memory of tensors -----------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_MEMORY_H
#define POSENC_KERNEL_MEMORY_H

#include "Report.h"
#include "View.h"

/* Returns whether an output and the input that it may replace are the same view
 * of memory. */
static int isSame(const struct Description *description, int64_t output,
                  int64_t input, const int64_t *words) {
  const struct Argument *a = &description->arguments[output];
  const struct Argument *b = &description->arguments[input];
  if (a->inPlace != input || words[output] != words[input])
    return 0;
  for (int64_t dim = 0; dim < a->rank; ++dim)
    if (getSize(description, a, dim, words) != 1 &&
        getStride(a, dim, words) != getStride(b, dim, words))
      return 0;
  return 1;
}

/* The views of the first arguments of a call. Those of further arguments are
 * created on demand, because the stack has space for a fixed number only. */
enum { kMaxViews = 8 };
struct Views {
  struct View views[kMaxViews];
  struct View more[2];
};

/* Returns the view of a tensor whose sizes have been checked. `which` is 0 or
 * 1: up to two views can be in use. */
static const struct View *getView(const struct Call *call, struct Views *views,
                                  int64_t number, int which) {
  if (number < kMaxViews)
    return &views->views[number];
  createView(call->description, number, call->words, &views->more[which]);
  return &views->more[which];
}

/* Checks that an output overlaps neither itself nor another tensor. */
static int32_t checkOutput(struct Call *call, struct Views *views,
                           int64_t number) {
  const struct Description *description = call->description;
  const struct View *view = getView(call, views, number, 0);
  if (!isInjective(view))
    return fail(call, kEntryOverlap, "elements of %n share memory",
                VALUES(number));
  for (int64_t i = 0; i < getNumArguments(description); ++i) {
    if (i == number || !hasElements(&description->arguments[i]) ||
        isSame(description, number, i, call->words) ||
        !overlap(view, getView(call, views, i, 1)))
      continue;
    if (description->arguments[number].inPlace == i)
      return fail(call, kEntryOverlap,
                  "%n overlaps %n but is not the same view of that memory",
                  VALUES(number, i));
    return fail(call, kEntryOverlap, "%n overlaps %n", VALUES(number, i));
  }
  return kEntryOk;
}

/* Checks the memory of all tensors, whose addresses, sizes and strides are in
 * the words. Sets *outputBytes to the bytes of the outputs. Not inlined, so
 * that the kernel runs without the stack space of the views. */
__attribute__((noinline)) static int32_t checkMemory(struct Call *call,
                                                     int64_t *outputBytes) {
  const struct Description *description = call->description;
  int64_t numArguments = getNumArguments(description);
  struct Views views;
  for (int64_t i = 0; i < numArguments; ++i) {
    if (!hasElements(&description->arguments[i]))
      continue;
    struct View *view = i < kMaxViews ? &views.views[i] : &views.more[0];
    if (createView(description, i, call->words, view))
      return fail(call, kEntrySize, "the size of %n exceeds the address space",
                  VALUES(i));
    if (!view->isEmpty && call->words[i] == 0)
      return fail(call, kEntryNull, "the data of %n is NULL", VALUES(i));
  }
  *outputBytes = 0;
  for (int64_t i = description->numInputs; i < numArguments; ++i) {
    int32_t code = checkOutput(call, &views, i);
    if (code)
      return code;
    *outputBytes += getBytes(getView(call, &views, i, 0));
  }
  return kEntryOk;
}

#endif
