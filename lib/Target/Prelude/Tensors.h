//===- Tensors.h - the checks of DLPack tensors -----------------*-- C --*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_PRELUDE_TENSORS_H
#define POSENC_PRELUDE_TENSORS_H

#include "Report.h"

/* DLTensor of DLPack, in the layout of all its versions. */
struct Tensor {
  void *data;
  int32_t deviceType, deviceId;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: contiguous */
  uint64_t byteOffset;
};

enum { kDLCPU = 1, kDLCUDA = 2, kDLVulkan = 7, kDLCUDAManaged = 13 };

/* Sets the word of a size that no tensor has given yet, or says which tensor
 * or scalar disagrees. */
static int32_t bindSize(struct Call *call, int64_t number, int64_t dim,
                        int64_t word, int64_t size) {
  const struct Description *description = call->description;
  if (call->words[word] < 0)
    call->words[word] = size;
  if (call->words[word] == size)
    return kOk;
  int64_t scalar = description->sizes[word - getNumArguments(description)];
  if (scalar >= 0)
    return fail(call, kShape, "dimension %d of %n is %d, but %n is %d",
                VALUES(dim, number, size, scalar, call->words[word]));
  /* The first that has it; this dimension at the latest. */
  for (int64_t i = 0;; ++i) {
    const struct Argument *other = &description->arguments[i];
    for (int64_t d = 0; d < other->rank; ++d)
      if (description->dims[other->dims + d].word == word)
        return fail(call, kShape,
                    "dimension %d of %n is %d, but dimension %d of %n is %d",
                    VALUES(dim, number, size, d, i, call->words[word]));
  }
}

static int32_t bindShape(struct Call *call, int64_t number,
                         const struct Tensor *tensor) {
  const struct Argument *argument = &call->description->arguments[number];
  if (tensor->ndim != argument->rank)
    return fail(call, kRank, "%n has %d dimensions, expected %d",
                VALUES(number, tensor->ndim, argument->rank));
  if (argument->rank > 0 && !tensor->shape)
    return fail(call, kNull, "the shape of %n is NULL", VALUES(number));
  for (int64_t dim = 0; dim < argument->rank; ++dim) {
    const struct Dim *expected = &call->description->dims[argument->dims + dim];
    int64_t size = tensor->shape[dim];
    if (size < 0)
      return fail(call, kSize, "dimension %d of %n is negative: %d",
                  VALUES(dim, number, size));
    if (expected->word < 0 && size != expected->size)
      return fail(call, kShape, "dimension %d of %n is %d, expected %d",
                  VALUES(dim, number, size, expected->size));
    int32_t code = expected->word < 0
                       ? kOk
                       : bindSize(call, number, dim, expected->word, size);
    if (code)
      return code;
  }
  return kOk;
}

static int32_t bindStrides(struct Call *call, int64_t number,
                           const struct Tensor *tensor) {
  const struct Argument *argument = &call->description->arguments[number];
  if (!tensor->strides) {
    setContiguous(call->description, argument, call->words);
    return kOk;
  }
  int isEmpty = 0;
  for (int64_t dim = 0; dim < argument->rank; ++dim)
    isEmpty |= tensor->shape[dim] == 0;
  for (int64_t dim = 0; dim < argument->rank; ++dim) {
    /* A stride that nobody goes may be any number. */
    int64_t stride =
        isEmpty || tensor->shape[dim] == 1 ? 0 : tensor->strides[dim];
    if (dim + 1 < argument->rank)
      call->words[argument->strides + dim] = stride;
    else if (stride != 1 && !isEmpty && tensor->shape[dim] != 1)
      return fail(call, kStride,
                  "the last dimension of %n has stride %d, expected 1",
                  VALUES(number, stride));
  }
  return kOk;
}

/* Checks a tensor, and puts its address, sizes and strides into the words. */
static int32_t bindTensor(struct Call *call, int64_t number,
                          const struct Tensor *tensor) {
  const struct Argument *argument = &call->description->arguments[number];
  if (!tensor)
    return fail(call, kNull, "%n is NULL", VALUES(number));
  int isThere =
      tensor->deviceType == call->deviceType ||
      (call->deviceType == kDLCUDA && tensor->deviceType == kDLCUDAManaged);
  if (!isThere)
    return fail(call, kDevice,
                call->deviceType == kDLCPU
                    ? "%n is on a device of type %d, expected the CPU, type %d"
                : call->deviceType == kDLCUDA
                    ? "%n is on a device of type %d, expected CUDA, type %d"
                    : "%n is on a device of type %d, expected Vulkan, type %d",
                VALUES(number, tensor->deviceType, call->deviceType));
  if (tensor->code != argument->code || tensor->bits != argument->bits ||
      tensor->lanes != 1)
    return fail(call, kType, "%n has elements of type %t, expected %t",
                VALUES(number,
                       packType(tensor->code, tensor->bits, tensor->lanes),
                       packType(argument->code, argument->bits, 1)));
  int32_t code = bindShape(call, number, tensor);
  if (!code)
    code = bindStrides(call, number, tensor);
  if (code)
    return code;
  uint64_t address = 0;
  /* NULL with an offset is as little a tensor as NULL. */
  if (tensor->data && __builtin_add_overflow((uint64_t)tensor->data,
                                             tensor->byteOffset, &address))
    return fail(call, kSize, "%n is larger than any memory", VALUES(number));
  if (address & (uint64_t)(argument->bits / 8 - 1))
    return fail(call, kAlignment,
                "the address of %n is no multiple of its elements' %d bytes",
                VALUES(number, argument->bits / 8));
  call->words[number] = (int64_t)address;
  return kOk;
}

/* Fills in all words from the tensors and scalars. */
static int32_t bindArguments(struct Call *call, const int64_t *arguments) {
  const struct Description *description = call->description;
  int64_t numArguments = getNumArguments(description);
  for (int64_t i = 0; i < description->numSizes; ++i) {
    int64_t scalar = description->sizes[i];
    int64_t size = scalar < 0 ? -1 : arguments[scalar];
    if (scalar >= 0 && size < 0)
      return fail(call, kSize, "%n is negative: %d", VALUES(scalar, size));
    call->words[numArguments + i] = size;
  }
  for (int64_t i = 0; i < numArguments; ++i) {
    call->words[i] = arguments[i];
    int32_t code =
        description->arguments[i].rank < 0
            ? kOk
            : bindTensor(call, i, (const struct Tensor *)arguments[i]);
    if (code)
      return code;
  }
  return kOk;
}

#endif
