//===- CInterface.c - Calls the runtime from C ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/runtime/runtime.h"
#include "posenc/runtime/vulkan.h"

int posencTestCInterface(const char *path);

int posencTestCInterface(const char *path) {
  posenc_library *library = NULL;
  if (posenc_library_open(path, &library) != POSENC_OK)
    return 1;
  float x[4] = {1, 2, 3, 4}, y[4];
  const int64_t shape[] = {1, 4};
  posenc_value input = {.kind = POSENC_TENSOR,
                        .tensor = {x, POSENC_F32, 2, shape}};
  posenc_value output = {.kind = POSENC_TENSOR,
                         .tensor = {y, POSENC_F32, 2, shape}};
  const posenc_function *function = posenc_library_find(library, "scale");
  int result =
      posenc_call(function, &input, 1, &output, 1) == POSENC_OK && y[3] == 8
          ? 0
          : 2;
  posenc_library_close(library);
  return result;
}
