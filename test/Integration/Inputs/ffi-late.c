/*===- ffi-late.c - TVM FFI loaded after a library ----------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* With TVM_FFI, a stand-in for TVM FFI, which with ERROR_OBJECTS can set an
 * error without a backtrace; without it, a program whose argument is the path
 * of the stand-in. */

#include <stdio.h>

#ifdef TVM_FFI
char lastError[300] = "nothing";
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) {
  snprintf(lastError, sizeof(lastError), "%s: %s", kind, message);
}

#ifdef ERROR_OBJECTS
typedef struct {
  const char *data;
  size_t size;
} Bytes;
static struct {
  char text[250];
  int references;
} object;

int TVMFFIErrorCreate(const Bytes *kind, const Bytes *message,
                      const Bytes *backtrace, void **error);
int TVMFFIErrorCreate(const Bytes *kind, const Bytes *message,
                      const Bytes *backtrace, void **error) {
  snprintf(object.text, sizeof(object.text), "%.*s: %.*s, backtrace of %d",
           (int)kind->size, kind->data, (int)message->size, message->data,
           (int)backtrace->size);
  object.references = 1;
  *error = &object;
  return 0;
}

void TVMFFIErrorSetRaised(void *error);
void TVMFFIErrorSetRaised(void *error) {
  if (error == &object)
    ++object.references;
}

int TVMFFIObjectDecRef(void *error);
int TVMFFIObjectDecRef(void *error) {
  if (error == &object)
    --object.references;
  snprintf(lastError, sizeof(lastError), "%s, %d reference", object.text,
           object.references);
  return 0;
}
#endif
#else

#include "table.h"

#include <dlfcn.h>

int __tvm_ffi_table_table(void *handle, const void *args, int32_t count,
                          void *result);

int main(int argc, char **argv) {
  int before = __tvm_ffi_table_table(NULL, NULL, 0, NULL);
  void *ffi = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
  const char *error = ffi ? dlsym(ffi, "lastError") : NULL;
  if (!error)
    return 1;
  printf("%d %s\n", before, error);
  int after = __tvm_ffi_table_table(NULL, NULL, 0, NULL);
  printf("%d %s\n", after, error);
  return 0;
}
#endif
