//===- OutputSizes.h - shapes of outputs before a call ------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_OUTPUTSIZES_H
#define POSENC_KERNEL_OUTPUTSIZES_H

#include "Tensors.h"

/* Whether sizes may depend on the value of an input: an integer, or the element
 * of a tensor that has one. */
static int hasSizeValue(const struct Argument *argument) {
  return argument->rank < 0 ? argument->code == kDLInt : argument->isSize != 0;
}

/* Sets the words of the values that are known: of scalars, which are int64_t,
 * and the addresses of elements. */
static void bindValues(struct Call *call, const void *const *values) {
  const struct Description *description = call->description;
  for (int64_t i = 0; i < description->numInputs; ++i) {
    const struct Argument *argument = &description->arguments[i];
    const void *value = NULL;
    if (values && hasSizeValue(argument))
      value = *values++;
    call->known[i] = value != NULL;
    if (value && argument->rank < 0)
      call->words[i] = *(const int64_t *)value;
    else
      call->words[i] = (int64_t)(uintptr_t)value;
  }
}

/* Sets the words of the sizes that are scalars or that inputs have. `shapes`
 * has all dimensions of the inputs. */
static int32_t bindInputShapes(struct Call *call, const int64_t *shapes) {
  const struct Description *description = call->description;
  for (int64_t i = 0; i < description->numSizes; ++i) {
    int64_t scalar = description->sizes[i], word = getSizeWord(description, i);
    call->known[word] = scalar >= 0 && call->known[scalar];
    call->words[word] = scalar >= 0 ? call->words[scalar] : -1;
    if (scalar >= 0 && call->words[word] < 0)
      return fail(call, kEntrySize, "%n is negative: %d",
                  VALUES(scalar, call->words[word]));
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
      int64_t word = description->dims[argument->dims + dim].word;
      if (word >= 0 && !call->known[word]) {
        call->known[word] = 1;
        call->words[word] = size;
      }
      int64_t expected = getSize(description, argument, dim, call->words);
      if (size != expected)
        return fail(call, kEntryShape, "dimension %d of %n is %d, expected %d",
                    VALUES(dim, i, size, expected));
    }
  }
  return kEntryOk;
}

/* Writes all dimensions of the outputs, -1 for those that are unknown. */
static int32_t writeOutputShapes(struct Call *call, int64_t *shapes) {
  const struct Description *description = call->description;
  int32_t code = kEntryOk;
  for (int64_t i = description->numInputs; i < getNumArguments(description);
       ++i) {
    const struct Argument *argument = &description->arguments[i];
    for (int64_t dim = 0; dim < argument->rank; ++dim) {
      if (!shapes)
        return fail(call, kEntryNull, "the shapes of the outputs are NULL",
                    NULL);
      int64_t word = description->dims[argument->dims + dim].word;
      int isKnown = word < 0 || call->known[word];
      *shapes++ =
          isKnown ? getSize(description, argument, dim, call->words) : -1;
      if (!isKnown && !code)
        code = fail(call, kEntryUnknown,
                    "dimension %d of %n does not follow from the shapes and "
                    "the known values of the inputs",
                    VALUES(dim, i));
    }
  }
  return code;
}

/* Checks the shapes of the inputs and computes those of the outputs. `values`
 * has the addresses of the integers that hasSizeValue() tells, in the order of
 * the inputs, or is NULL. One that is NULL is unknown. */
static int32_t computeOutputSizes(struct Call *call, const int64_t *inputs,
                                  const void *const *values, int64_t *outputs) {
  bindValues(call, values);
  int32_t code = bindInputShapes(call, inputs);
  if (!code)
    code = bindTerms(call);
  return code ? code : writeOutputShapes(call, outputs);
}

#endif
