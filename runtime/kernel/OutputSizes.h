//===- OutputSizes.h - shapes of outputs before a call ------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_OUTPUTSIZES_H
#define POSENC_KERNEL_OUTPUTSIZES_H

#include "Sizes.h"

/* Whether sizes may depend on the value of an input: an integer, or the element
 * of a tensor that has one. */
static int hasSizeValue(const struct Argument *argument) {
  return argument->rank < 0 ? argument->code == kDLInt : argument->isSize != 0;
}

/* Sets the words of the scalars, and, to the address of the value, those of the
 * tensors whose element a size may depend on. A narrow integer is in the first
 * bytes of its value. */
static void bindValues(struct Call *call, const int64_t *values) {
  const struct Description *description = call->description;
  for (int64_t i = 0; i < description->numInputs; ++i) {
    const struct Argument *argument = &description->arguments[i];
    int isScalar = argument->rank < 0;
    int isGiven = values && hasSizeValue(argument);
    if (isGiven)
      call->words[i] = isScalar ? *values : (int64_t)(uintptr_t)values;
    else
      call->words[i] = isScalar ? kUnknownSize : 0;
    values += isGiven;
  }
}

/* Sets the words of the sizes that are scalars or that inputs have, and
 * kUnknownSize for others. `shapes` has all dimensions of the inputs. */
static int32_t bindInputShapes(struct Call *call, const int64_t *shapes) {
  const struct Description *description = call->description;
  for (int64_t i = 0; i < description->numSizes; ++i) {
    int64_t scalar = description->sizes[i];
    int64_t size = scalar < 0 ? kUnknownSize : call->words[scalar];
    if (size < 0 && size != kUnknownSize)
      return fail(call, kEntrySize, "%n is negative: %d", VALUES(scalar, size));
    call->words[getSizeWord(description, i)] = size;
  }
  for (int64_t i = 0; i < description->numInputs; ++i) {
    const struct Argument *argument = &description->arguments[i];
    for (int64_t dim = 0; dim < argument->rank; ++dim) {
      if (!shapes)
        return fail(call, kEntryNull, "the shapes of the inputs are NULL",
                    NULL);
      int64_t size = *shapes++;
      if (size < 0)
        return fail(call, kEntrySize, "dimension %d of %n is negative: %d",
                    VALUES(dim, i, size));
      const struct Dim *it = &description->dims[argument->dims + dim];
      if (it->word >= 0 && call->words[it->word] == kUnknownSize)
        call->words[it->word] = size;
      int64_t expected = getSize(description, argument, dim, call->words);
      if (size != expected)
        return fail(call, kEntryShape, "dimension %d of %n is %d, expected %d",
                    VALUES(dim, i, size, expected));
    }
  }
  return kEntryOk;
}

/* Sets the words of the sizes that terms compute. */
static int32_t bindComputedSizes(struct Call *call) {
  const struct Description *description = call->description;
  int64_t terms = getSizeWord(description, description->numSizes);
  for (int64_t i = 0; i < description->numSizes; ++i) {
    int64_t term = -2 - description->sizes[i];
    if (term < 0)
      continue;
    int64_t size = call->words[terms + term];
    if (size < 0 && size != kUnknownSize)
      return fail(call, kEntrySize, "the size of an output is negative: %d",
                  VALUES(size));
    call->words[getSizeWord(description, i)] = size;
  }
  return kEntryOk;
}

/* Writes all dimensions of the outputs, or nothing if one is unknown. */
static int32_t writeOutputShapes(struct Call *call, int64_t *shapes) {
  const struct Description *description = call->description;
  for (int isWriting = 0; isWriting < 2; ++isWriting)
    for (int64_t i = description->numInputs; i < getNumArguments(description);
         ++i) {
      const struct Argument *argument = &description->arguments[i];
      for (int64_t dim = 0; dim < argument->rank; ++dim) {
        int64_t size = getSize(description, argument, dim, call->words);
        if (size == kUnknownSize)
          return fail(call, kEntryUnknown,
                      "dimension %d of %n does not follow from the shapes of "
                      "the inputs",
                      VALUES(dim, i));
        if (!shapes)
          return fail(call, kEntryNull, "the shapes of the outputs are NULL",
                      NULL);
        if (isWriting)
          *shapes++ = size;
      }
    }
  return kEntryOk;
}

/* Checks the shapes of the inputs and computes those of the outputs. `values`
 * has the integers that hasSizeValue() tells, in the order of the inputs, or is
 * NULL. */
static int32_t computeOutputSizes(struct Call *call, const int64_t *inputs,
                                  const int64_t *values, int64_t *outputs) {
  call->hasUnknowns = 1;
  bindValues(call, values);
  int32_t code = bindInputShapes(call, inputs);
  if (!code)
    code = checkSizes(call);
  if (!code)
    code = bindComputedSizes(call);
  return code ? code : writeOutputShapes(call, outputs);
}

#endif
