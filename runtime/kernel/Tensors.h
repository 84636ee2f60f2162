//===- Tensors.h - binds and checks DLPack tensors ----------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_TENSORS_H
#define POSENC_KERNEL_TENSORS_H

#include "Sizes.h"

/* The word of a shape-only argument that is NULL. Other tensors must determine
 * its sizes. */
enum { kAbsent = -1 };

/* Sets the word of a size, or fails if an earlier tensor or a scalar has set
 * another value. */
static int32_t bindSize(struct Call *call, int64_t number, int64_t dim,
                        int64_t word, int64_t size) {
  const struct Description *description = call->description;
  if (call->words[word] < 0)
    call->words[word] = size;
  if (call->words[word] == size)
    return kEntryOk;
  int64_t scalar = description->sizes[word - getNumArguments(description)];
  if (scalar >= 0)
    return fail(call, kEntryShape, "dimension %d of %n is %d, but %n is %d",
                VALUES(dim, number, size, scalar, call->words[word]));
  /* Finds the first dimension with this size, at the latest this one. */
  for (int64_t i = 0;; ++i) {
    const struct Argument *other = &description->arguments[i];
    if (other->isShapeOnly && call->words[i] == kAbsent)
      continue;
    for (int64_t d = 0; d < other->rank; ++d)
      if (description->dims[other->dims + d].word == word)
        return fail(call, kEntryShape,
                    "dimension %d of %n is %d, but dimension %d of %n is %d",
                    VALUES(dim, number, size, d, i, call->words[word]));
  }
}

static int32_t bindShape(struct Call *call, int64_t number,
                         const struct PosencDlTensor *tensor) {
  const struct Argument *argument = &call->description->arguments[number];
  if (tensor->ndim != argument->rank)
    return fail(call, kEntryRank, "%n has %d dimensions, expected %d",
                VALUES(number, tensor->ndim, argument->rank));
  if (argument->rank > 0 && !tensor->shape)
    return fail(call, kEntryNull, "the shape of %n is NULL", VALUES(number));
  for (int64_t dim = 0; dim < argument->rank; ++dim) {
    const struct Dim *expected = &call->description->dims[argument->dims + dim];
    int64_t size = tensor->shape[dim];
    if (size < 0)
      return fail(call, kEntrySize, "dimension %d of %n is negative: %d",
                  VALUES(dim, number, size));
    if (expected->word < 0 && size != expected->size)
      return fail(call, kEntryShape, "dimension %d of %n is %d, expected %d",
                  VALUES(dim, number, size, expected->size));
    int32_t code = expected->word < 0
                       ? kEntryOk
                       : bindSize(call, number, dim, expected->word, size);
    if (code)
      return code;
  }
  return kEntryOk;
}

static int32_t bindStrides(struct Call *call, int64_t number,
                           const struct PosencDlTensor *tensor) {
  const struct Argument *argument = &call->description->arguments[number];
  if (!tensor->strides) {
    setContiguous(call->description, argument, call->words);
    return kEntryOk;
  }
  int isEmpty = 0;
  for (int64_t dim = 0; dim < argument->rank; ++dim)
    isEmpty |= tensor->shape[dim] == 0;
  for (int64_t dim = 0; dim < argument->rank; ++dim) {
    /* The stride of a dimension of size 1 is not used and may be any number. */
    int64_t stride =
        isEmpty || tensor->shape[dim] == 1 ? 0 : tensor->strides[dim];
    if (dim + 1 < argument->rank)
      call->words[argument->strides + dim] = stride;
    else if (stride != 1 && !isEmpty && tensor->shape[dim] != 1)
      return fail(call, kEntryStride,
                  "the last dimension of %n has stride %d, expected 1",
                  VALUES(number, stride));
  }
  return kEntryOk;
}

/* Checks a tensor and sets the words of its address, sizes and strides. */
static int32_t bindTensor(struct Call *call, int64_t number,
                          const struct PosencDlTensor *tensor) {
  const struct Argument *argument = &call->description->arguments[number];
  if (!tensor && argument->isShapeOnly) {
    call->words[number] = kAbsent;
    for (int64_t dim = 0; dim + 1 < argument->rank; ++dim)
      call->words[argument->strides + dim] = 0;
    return kEntryOk;
  }
  if (!tensor)
    return fail(call, kEntryNull, "%n is NULL", VALUES(number));
  /* A shape-only tensor may be on any device. */
  int isThere =
      tensor->deviceType == call->deviceType || argument->isShapeOnly ||
      (call->deviceType == kDLCUDA && tensor->deviceType == kDLCUDAManaged);
  if (!isThere)
    return fail(call, kEntryDevice,
                call->deviceType == kDLCPU
                    ? "%n is on a device of type %d, expected the CPU, type %d"
                : call->deviceType == kDLCUDA
                    ? "%n is on a device of type %d, expected CUDA, type %d"
                    : "%n is on a device of type %d, expected Vulkan, type %d",
                VALUES(number, tensor->deviceType, call->deviceType));
  /* Frameworks without bool or f8 types pass them as uint8. */
  int isByte = argument->code == kDLBool ||
               argument->code == kDLFloat8_e4m3fn ||
               argument->code == kDLFloat8_e5m2;
  int isCode =
      tensor->code == argument->code || (isByte && tensor->code == kDLUInt);
  if (!isCode || tensor->bits != argument->bits || tensor->lanes != 1)
    return fail(call, kEntryType, "%n has elements of type %t, expected %t",
                VALUES(number,
                       packType(tensor->code, tensor->bits, tensor->lanes),
                       packType(argument->code, argument->bits, 1)));
  int32_t code = bindShape(call, number, tensor);
  if (!code && argument->isShapeOnly) {
    call->words[number] = 0;
    setContiguous(call->description, argument, call->words);
    return kEntryOk;
  }
  if (!code)
    code = bindStrides(call, number, tensor);
  if (code)
    return code;
  uint64_t address = 0;
  /* An offset does not make a NULL pointer valid. */
  if (tensor->data && __builtin_add_overflow((uint64_t)tensor->data,
                                             tensor->byteOffset, &address))
    return fail(call, kEntrySize, "the size of %n exceeds the address space",
                VALUES(number));
  if (address & (uint64_t)(argument->bits / 8 - 1))
    return fail(call, kEntryAlignment,
                "the address of %n is not aligned to its elements of %d bytes",
                VALUES(number, argument->bits / 8));
  call->words[number] = (int64_t)address;
  return kEntryOk;
}

/* Checks that a tensor or scalar has set each size. */
static int32_t checkSizesGiven(struct Call *call) {
  const struct Description *description = call->description;
  for (int64_t i = 0; i < getNumArguments(description); ++i) {
    const struct Argument *argument = &description->arguments[i];
    for (int64_t dim = 0; dim < argument->rank; ++dim)
      if (getSize(description, argument, dim, call->words) < 0)
        return fail(call, kEntryNull,
                    "%n is NULL, and no other tensor gives its dimension %d",
                    VALUES(i, dim));
  }
  return kEntryOk;
}

/* Fails for a size that differs from its term. */
static int32_t failTerm(struct Call *call, int64_t number, int64_t expected) {
  const struct Description *description = call->description;
  int64_t word = getSizeWord(description, number);
  for (int64_t i = 0; i < getNumArguments(description); ++i) {
    const struct Argument *argument = &description->arguments[i];
    for (int64_t dim = 0; dim < argument->rank; ++dim)
      if (description->dims[argument->dims + dim].word == word)
        return fail(call, kEntryShape, "dimension %d of %n is %d, expected %d",
                    VALUES(dim, i, call->words[word], expected));
  }
  return kEntryShape;
}

/* Compares the sizes of outputs that follow from others to their terms, which
 * have been evaluated. Sets their words if the arguments do not, as for the
 * plain entry point. */
static int32_t bindTermSizes(struct Call *call) {
  const struct Description *description = call->description;
  int64_t terms = getSizeWord(description, description->numSizes);
  for (int64_t i = 0; i < description->numSizes; ++i) {
    int64_t term = -2 - description->sizes[i];
    if (term < 0)
      continue;
    int64_t size = call->words[terms + term];
    int64_t *word = &call->words[getSizeWord(description, i)];
    if (size < 0)
      return fail(call, kEntrySize, "the size of an output is negative: %d",
                  VALUES(size));
    if (*word < 0)
      *word = size;
    if (call->known)
      call->known[getSizeWord(description, i)] = call->known[terms + term];
    if (*word != size)
      return failTerm(call, i, size);
  }
  return kEntryOk;
}

/* Checks all sizes and computes those of outputs that follow from others. */
static int32_t bindTerms(struct Call *call) {
  int32_t code = checkSizes(call);
  return code ? code : bindTermSizes(call);
}

/* Checks the arguments, DLTensor pointers and scalars, and sets all words. */
static int32_t bindArguments(struct Call *call, const int64_t *arguments) {
  const struct Description *description = call->description;
  int64_t numArguments = getNumArguments(description);
  for (int64_t i = 0; i < description->numSizes; ++i) {
    int64_t scalar = description->sizes[i];
    int64_t size = scalar < 0 ? -1 : arguments[scalar];
    if (scalar >= 0 && size < 0)
      return fail(call, kEntrySize, "%n is negative: %d", VALUES(scalar, size));
    call->words[getSizeWord(description, i)] = size;
  }
  int32_t code = kEntryOk;
  for (int64_t i = 0; i < numArguments; ++i) {
    call->words[i] = arguments[i];
    if (description->arguments[i].rank >= 0)
      code = bindTensor(call, i, (const struct PosencDlTensor *)arguments[i]);
    if (code)
      return code;
  }
  code = checkSizesGiven(call);
  return code ? code : bindTerms(call);
}

#endif
