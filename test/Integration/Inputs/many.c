/*===- many.c - a function with many tensors ----------------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* More tensors than the checks can cache. Each overlap of an output with
 * another tensor is detected, while interleaved rows are accepted. */

#include "many.h"

#include "tensors.h"

enum { kTensors = 18, kInputs = 9, kRows = 2, kDim = 8 };

static float data[kTensors][kRows][kDim], before[kTensors][kRows][kDim];
static int64_t shape[] = {kRows, kDim}, strides[] = {kTensors * kDim, 1};
static char message[100];

static int32_t call(const DLTensor *t) {
  return many_many_dl(&t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7],
                      &t[8], &t[9], &t[10], &t[11], &t[12], &t[13], &t[14],
                      &t[15], &t[16], &t[17], message, sizeof(message));
}

int main(void) {
  DLTensor tensors[kTensors];
  float *rows = &data[0][0][0];
  int i, j, row;
  fillFloats(rows, sizeof(data) / sizeof(float));
  for (i = 0; i < kTensors; ++i)
    tensors[i] = makeTensor(rows + i * kDim, kFloat, 32, 2, shape, strides);
  CHECK(call(tensors) == 0);
  for (i = 0; i < kInputs; ++i)
    for (row = 0; row < kRows; ++row)
      CHECK(memcmp(rows + (row * kTensors + i) * kDim,
                   rows + (row * kTensors + i + kInputs) * kDim,
                   kDim * sizeof(float)) == 0);
  memcpy(before, data, sizeof(data));
  for (i = kInputs; i < kTensors; ++i)
    for (j = 0; j < kTensors; ++j) {
      void *own = tensors[i].data;
      if (i == j)
        continue;
      tensors[i].data = (char *)tensors[j].data + (j ? -4 : 4);
      CHECK(call(tensors) == 3);
      CHECK(strstr(message, " overlaps ") != NULL);
      CHECK(memcmp(before, data, sizeof(data)) == 0);
      tensors[i].data = own;
    }
  CHECK(call(tensors) == 0);
  puts("ok");
  return 0;
}
