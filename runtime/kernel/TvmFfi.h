//===- TvmFfi.h - the C ABI of TVM FFI ----------------------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_TVMFFI_H
#define POSENC_KERNEL_TVMFFI_H

#include "Loader.h"
#include "Tensors.h"

/* TVMFFIAny, the argument of a call. */
struct Any {
  int32_t type;
  uint32_t padding;
  union {
    int64_t integer;
    double real;
    char *pointer;
  } value;
};

enum {
  kFfiNone = 0,
  kFfiInt = 1,
  kFfiFloat = 3,
  kFfiTensorPointer = 7, /* DLTensor * */
  kFfiTensor = 70,       /* an object: a header, then a DLTensor */
  kFfiHeaderBytes = 24
};

/* Weak: kernel libraries do not require TVM FFI. Callers by this ABI usually
 * have loaded it. */
extern void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message)
    __attribute__((weak));

/* Returns the tensor of a value, or NULL if it is not a tensor. */
static const struct PosencDlTensor *getTensor(const struct Any *any) {
  if (any->type == kFfiTensor)
    return (const struct PosencDlTensor *)(any->value.pointer +
                                           kFfiHeaderBytes);
  if (any->type == kFfiTensorPointer)
    return (const struct PosencDlTensor *)any->value.pointer;
  return NULL;
}

/* Converts a number to a scalar of launchTensors. An integer is accepted for a
 * floating-point scalar. */
static int32_t unpackScalar(struct Call *call, int64_t number,
                            const struct Any *any, int64_t *word) {
  const struct Argument *argument = &call->description->arguments[number];
  int isReal = argument->code == kDLFloat;
  if (any->type != kFfiInt && !(isReal && any->type == kFfiFloat))
    return fail(call, kEntryArguments,
                isReal ? "%n has type index %d, expected a number"
                       : "%n has type index %d, expected an integer",
                VALUES(number, any->type));
  *word = any->value.integer;
  if (isReal) {
    double value =
        any->type == kFfiFloat ? any->value.real : (double)any->value.integer;
    float narrow = (float)value;
    *word = 0;
    if (argument->bits == 32)
      __builtin_memcpy(word, &narrow, sizeof(narrow));
    else
      __builtin_memcpy(word, &value, sizeof(value));
  } else if (argument->bits == 32 && *word != (int32_t)*word) {
    return fail(call, kEntryArguments, "%n is beyond 32 bits: %d",
                VALUES(number, *word));
  }
  return kEntryOk;
}

/* Whether the first tensor among the arguments is on a CUDA device. */
static int isOnCuda(const struct Any *args, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    const struct PosencDlTensor *tensor = getTensor(&args[i]);
    if (tensor)
      return tensor->deviceType == kDLCUDA ||
             tensor->deviceType == kDLCUDAManaged;
  }
  return 0;
}

/* Checks the workspace, a tensor of uint8 or None, and sets its word and
 * *bytes. */
static int32_t unpackWorkspace(struct Call *call, const struct Any *any,
                               int64_t *bytes) {
  const struct PosencDlTensor *tensor = getTensor(any);
  int64_t *word = getLastWord(call->description, call->words, kScratchWord);
  *word = *bytes = 0;
  call->workspaceBytes = bytes;
  if (any->type == kFfiNone)
    return kEntryOk;
  if (!tensor)
    return fail(call, kEntryArguments,
                "the workspace has type index %d, expected a tensor",
                VALUES(any->type));
  if (tensor->deviceType != call->deviceType)
    return fail(call, kEntryDevice,
                call->deviceType == kDLCPU
                    ? "the workspace is on a device of type %d, expected the "
                      "CPU, type %d"
                    : "the workspace is on a device of type %d, expected CUDA, "
                      "type %d",
                VALUES(tensor->deviceType, call->deviceType));
  if (tensor->code != kDLUInt || tensor->bits != 8 || tensor->lanes != 1)
    return fail(call, kEntryType,
                "the workspace has elements of type %t, expected %t",
                VALUES(packType(tensor->code, tensor->bits, tensor->lanes),
                       packType(kDLUInt, 8, 1)));
  int64_t count = 1;
  for (int64_t dim = tensor->ndim - 1; dim >= 0; --dim) {
    int64_t size = tensor->shape[dim];
    if (tensor->strides && size > 1 && tensor->strides[dim] != count)
      return fail(call, kEntryStride, "the workspace is not contiguous", NULL);
    if (size < 0 || __builtin_mul_overflow(count, size, &count))
      return fail(call, kEntrySize,
                  "the size of the workspace exceeds the address space", NULL);
  }
  *bytes = count;
  if (tensor->data)
    *word = (int64_t)((uint64_t)tensor->data + tensor->byteOffset);
  return kEntryOk;
}

/* Converts the arguments of a call to those of launchTensors. */
static int32_t unpackArguments(struct Call *call, const struct Any *args,
                               int32_t count, int64_t *arguments,
                               int64_t *workspaceBytes) {
  const struct Description *description = call->description;
  int64_t numArguments = getNumArguments(description);
  int64_t expected = numArguments + (description->hasWorkspace ? 1 : 0);
  if (count != expected)
    return fail(call, kEntryArguments, "%d arguments, expected %d",
                VALUES(count, expected));
  for (int64_t i = 0; i < numArguments; ++i) {
    const struct Argument *argument = &description->arguments[i];
    int32_t code = kEntryOk;
    arguments[i] = (int64_t)getTensor(&args[i]);
    int isAbsent = args[i].type == kFfiNone && argument->isShapeOnly;
    if (argument->rank < 0)
      code = unpackScalar(call, i, &args[i], &arguments[i]);
    else if (args[i].type != kFfiTensor && args[i].type != kFfiTensorPointer &&
             !isAbsent)
      code =
          fail(call, kEntryArguments, "%n has type index %d, expected a tensor",
               VALUES(i, args[i].type));
    if (code)
      return code;
  }
  return description->hasWorkspace
             ? unpackWorkspace(call, &args[numArguments], workspaceBytes)
             : kEntryOk;
}

typedef void (*SetFfiError)(const char *kind, const char *message);

/* Returns the function that sets the error, or NULL if TVM FFI is not loaded or
 * its symbols are local. It may have been loaded after this library. */
static SetFfiError findSetFfiError(void) {
  if (TVMFFIErrorSetRaisedFromCStr)
    return TVMFFIErrorSetRaisedFromCStr;
  void *everywhere = NULL;
  return dlsym ? (SetFfiError)dlsym(everywhere, "TVMFFIErrorSetRaisedFromCStr")
               : NULL;
}

/* TVMFFIByteArray. */
struct Bytes {
  const char *data;
  size_t size;
};

typedef int (*CreateFfiError)(const struct Bytes *kind,
                              const struct Bytes *message,
                              const struct Bytes *backtrace, void **error);
typedef void (*SetFfiErrorObject)(void *error);
typedef int (*ReleaseFfiObject)(void *object);

/* Sets the error of TVM FFI without a backtrace. TVMFFIErrorSetRaisedFromCStr
 * records one, and reads the debug information of the whole process for the
 * first (2 s and 80 MB with PyTorch). Returns 0 if TVM FFI lacks the functions
 * for this. */
static int setFfiErrorFast(struct Bytes kind, struct Bytes message) {
  if (!dlsym)
    return 0;
  void *everywhere = NULL;
  CreateFfiError create =
      (CreateFfiError)dlsym(everywhere, "TVMFFIErrorCreate");
  SetFfiErrorObject set =
      (SetFfiErrorObject)dlsym(everywhere, "TVMFFIErrorSetRaised");
  ReleaseFfiObject release =
      (ReleaseFfiObject)dlsym(everywhere, "TVMFFIObjectDecRef");
  struct Bytes backtrace = {"", 0};
  void *error = NULL;
  if (!create || !set || !release ||
      create(&kind, &message, &backtrace, &error) != 0)
    return 0;
  set(error); /* This adds a reference. */
  release(error);
  return 1;
}

/* Returns 0 for kEntryOk; otherwise sets the error of TVM FFI, returns -1. */
static int32_t raise(const struct Call *call, int32_t code) {
  if (code == kEntryOk)
    return 0;
  const char *kind =
      code == kEntryArguments || code == kEntryType ? "TypeError"
      : code == kEntryCpu || code == kEntryNoGpu || code == kEntryGpuFailed
          ? "RuntimeError"
          : "ValueError";
  struct Bytes name = {kind, 0}, message = {call->message, call->used};
  while (kind[name.size])
    ++name.size;
  if (setFfiErrorFast(name, message))
    return -1;
  SetFfiError setError = findSetFfiError();
  if (setError)
    setError(kind, call->message);
  return -1;
}

#endif
