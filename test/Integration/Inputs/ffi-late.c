/*===- ffi-late.c - TVM FFI loaded after a library ----------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* With TVM_FFI, a stand-in for TVM FFI; without it, a program whose argument is
 * the path of the stand-in. */

#include <stdio.h>

#ifdef TVM_FFI
char lastError[300] = "nothing";
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) {
  snprintf(lastError, sizeof(lastError), "%s: %s", kind, message);
}
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
