//===- TvmFfi.h - the C ABI of TVM FFI --------------------------*-- C --*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_PRELUDE_TVMFFI_H
#define POSENC_PRELUDE_TVMFFI_H

#include "Loader.h"
#include "Report.h"

/* A value of TVM FFI that its owner lends. */
struct Any {
  int32_t type;
  uint32_t padding;
  union {
    int64_t integer;
    char *pointer;
  } value;
};

enum {
  kFfiNone = 0,
  kFfiInt = 1,
  kFfiTensorPointer = 7, /* DLTensor * */
  kFfiTensor = 70,       /* an object: a header, then a DLTensor */
  kFfiHeaderBytes = 24
};

/* Weak: a library of kernels does not need TVM FFI. Whoever calls it by this
 * ABI mostly has it. */
extern void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message)
    __attribute__((weak));

/* Turns the arguments of a call into those of launchTensors. */
static int32_t unpackArguments(struct Call *call, const struct Any *args,
                               int32_t count, int64_t *arguments) {
  const struct Description *description = call->description;
  int64_t expected = getNumArguments(description);
  if (count != expected)
    return fail(call, kArguments, "%d arguments, expected %d",
                VALUES(count, expected));
  for (int64_t i = 0; i < expected; ++i) {
    int isTensor = description->arguments[i].rank >= 0;
    int64_t value = args[i].value.integer;
    if (isTensor && args[i].type == kFfiTensor) {
      arguments[i] = (int64_t)(args[i].value.pointer + kFfiHeaderBytes);
    } else if (args[i].type == (isTensor ? kFfiTensorPointer : kFfiInt)) {
      arguments[i] = value;
    } else {
      return fail(call, kArguments,
                  isTensor ? "%n has type index %d, expected a tensor"
                           : "%n has type index %d, expected an integer",
                  VALUES(i, args[i].type));
    }
    if (!isTensor && description->arguments[i].bits == 32 &&
        value != (int32_t)value)
      return fail(call, kArguments, "%n is beyond 32 bits: %d",
                  VALUES(i, value));
  }
  return kOk;
}

typedef void (*SetFfiError)(const char *kind, const char *message);

/* What sets the error, or null where nobody has TVM FFI, or keeps it to
 * himself. It may have been loaded after this library. */
static SetFfiError findSetFfiError(void) {
  if (TVMFFIErrorSetRaisedFromCStr)
    return TVMFFIErrorSetRaisedFromCStr;
  void *everywhere = NULL;
  return dlsym ? (SetFfiError)dlsym(everywhere, "TVMFFIErrorSetRaisedFromCStr")
               : NULL;
}

/* What a call by this ABI returns; -1 with the error set. */
static int32_t raise(const struct Call *call, int32_t code) {
  if (code == kOk)
    return 0;
  const char *kind = code == kArguments || code == kType ? "TypeError"
                     : code == kCpu                      ? "RuntimeError"
                                                         : "ValueError";
  SetFfiError setError = findSetFfiError();
  if (setError)
    setError(kind, call->message);
  return -1;
}

#endif
