/*===- unload.c - unloads a library with idle threads ---------------------===*\
|*                                                                            *|
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.        *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef int32_t (*Rope)(const float *, const int64_t *, float *, int64_t);

int main(int argc, char **argv) {
  enum { tokens = 4096, size = 4 * 32 };
  float *x = calloc(tokens * size, sizeof *x);
  int64_t *positions = calloc(tokens, sizeof *positions);
  for (int round = 0; round < 40 && argc > 1; ++round) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    Rope rope = library ? (Rope)dlsym(library, "unload_rope") : NULL;
    if (!rope || rope(x, positions, x, tokens) != 0)
      return 1;
    dlclose(library);
    /* Gives a thread time to wake up in code that might be unloaded. */
    usleep(2000);
  }
  puts("ok");
  return 0;
}
