//===- MapWeights.c - weights as the kernel support library maps them -----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/* The private headers of the kernel support library are C. */
#include "kernel/Weights.h"

int32_t mapWeightsOf(const struct WeightsFile *file, const char *path,
                     char *message, size_t size);

int32_t mapWeightsOf(const struct WeightsFile *file, const char *path,
                     char *message, size_t size) {
  struct Call call = {NULL, NULL, message, size, 0, kDLCPU, NULL, NULL};
  int32_t code = openLocked(&call, file, path);
  message[call.used] = 0;
  return code;
}
