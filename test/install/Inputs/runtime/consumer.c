/*===- consumer.c - calls kernels with an installed runtime -------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#include <posenc/runtime/runtime.h>

#include <stdio.h>

int main(int argc, char **argv) {
  posenc_library *library = NULL;
  size_t i;
  if (argc != 2 || posenc_library_open(argv[1], &library) != POSENC_OK)
    return 1;
  for (i = 0; i < posenc_library_num_functions(library); ++i)
    printf("function %s\n",
           posenc_function_name(posenc_library_function(library, i)));
  posenc_library_close(library);
  return 0;
}
