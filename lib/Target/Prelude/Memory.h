//===- Memory.h - that tensors keep out of each other's way -----*-- C --*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_PRELUDE_MEMORY_H
#define POSENC_PRELUDE_MEMORY_H

#include "Report.h"
#include "View.h"

/* Whether an output is the input that it may be, element by element. */
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

static int32_t createViewOrFail(struct Call *call, int64_t number,
                                struct View *view) {
  int32_t code = createView(call->description, number, call->words, view);
  return code ? fail(call, code, "%n is larger than any memory", VALUES(number))
              : kOk;
}

/* Checks an output against all other tensors. */
static int32_t checkOutput(struct Call *call, int64_t number,
                           const struct View *view) {
  const struct Description *description = call->description;
  if (!isInjective(view))
    return fail(call, kOverlap, "elements of %n share memory", VALUES(number));
  for (int64_t i = 0; i < getNumArguments(description); ++i) {
    if (i == number || description->arguments[i].rank < 0 ||
        isSame(description, number, i, call->words))
      continue;
    struct View other;
    int32_t code = createViewOrFail(call, i, &other);
    if (code)
      return code;
    if (!overlap(view, &other))
      continue;
    if (description->arguments[number].inPlace == i)
      return fail(call, kOverlap,
                  "%n overlaps %n but is not the same view of that memory",
                  VALUES(number, i));
    return fail(call, kOverlap, "%n overlaps %n", VALUES(number, i));
  }
  return kOk;
}

/* Checks the memory of all tensors, whose addresses, sizes and strides are in
 * the words. Adds up the bytes of the outputs. */
static int32_t checkMemory(struct Call *call, int64_t *outputBytes) {
  const struct Description *description = call->description;
  *outputBytes = 0;
  for (int64_t i = 0; i < getNumArguments(description); ++i) {
    if (description->arguments[i].rank < 0)
      continue;
    struct View view;
    int32_t code = createViewOrFail(call, i, &view);
    if (code)
      return code;
    if (view.isEmpty)
      continue;
    if (call->words[i] == 0)
      return fail(call, kNull, "the data of %n is NULL", VALUES(i));
    if (i < description->numInputs)
      continue;
    code = checkOutput(call, i, &view);
    if (code)
      return code;
    *outputBytes += getBytes(&view);
  }
  return kOk;
}

#endif
