/*===- ffi.h - values of TVM FFI ----------------------------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#ifndef FFI_H
#define FFI_H

/* Included after the header of a library, which defines DLTensor. */

#include <string.h>

/* The struct TVMFFIAny. */
typedef struct {
  int32_t type;
  uint32_t padding;
  union {
    int64_t integer;
    const void *pointer;
  } value;
} Any;

/* A tensor object: a TVMFFIObject, followed by the tensor. */
typedef struct {
  uint64_t references;
  int32_t type;
  uint32_t padding;
  void (*deleter)(void *, int);
  DLTensor tensor;
} Object;

static inline Any makePointer(const DLTensor *tensor) {
  Any any;
  any.type = 7;
  any.padding = 0;
  any.value.pointer = tensor;
  return any;
}

static inline Any makeObject(Object *object, const DLTensor *tensor) {
  Any any;
  memset(object, 0, sizeof(*object));
  object->references = 1;
  object->type = any.type = 70;
  object->tensor = *tensor;
  any.padding = 0;
  any.value.pointer = object;
  return any;
}

static inline Any makeInteger(int64_t integer) {
  Any any;
  any.type = 1;
  any.padding = 0;
  any.value.integer = integer;
  return any;
}

#ifndef NO_TVM_FFI
/* The program's stand-in for TVM FFI, which stores the last error. A library
 * finds it if the program exports it. */
static char lastKind[32], lastMessage[300];
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) {
  strncpy(lastKind, kind, sizeof(lastKind) - 1);
  strncpy(lastMessage, message, sizeof(lastMessage) - 1);
}
#endif

int __tvm_ffi_rope_rope(void *handle, const Any *args, int32_t count,
                        Any *result);
int __tvm_ffi_rope_interleaved(void *handle, const Any *args, int32_t count,
                               Any *result);
int __tvm_ffi_rope_sincos(void *handle, const Any *args, int32_t count,
                          Any *result);
int __tvm_ffi_table_table(void *handle, const Any *args, int32_t count,
                          Any *result);

#endif
