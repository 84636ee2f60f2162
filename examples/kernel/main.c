/*===- main.c - calls compiled kernels --------------------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* Rotates one token of each model, at position 1, in place. */

#include "llama.h"
#include "phi.h"

#include <stdio.h>

enum { kLlamaDim = 128, kPhiDim = 80, kPhiHeads = 32 };

int main(void) {
  const uint16_t one = 0x3f80; /* 1.0 in bf16 */
  static uint16_t q[32 * kLlamaDim], k[8 * kLlamaDim];
  for (int i = 0; i < 32 * kLlamaDim; ++i)
    q[i] = one;
  for (int i = 0; i < 8 * kLlamaDim; ++i)
    k[i] = one;
  const int64_t position = 1;
  int error = llama_rope(q, k, &position, q, k, /*batch=*/1, /*sequence=*/1);
  if (error) {
    fprintf(stderr, "llama_rope: %d\n", error);
    return 1;
  }
  printf("llama: q[0] = 0x%04x\n", q[0]);

  static float x[kPhiHeads * kPhiDim], y[kPhiHeads * kPhiDim];
  for (int i = 0; i < kPhiHeads * kPhiDim; ++i)
    x[i] = y[i] = 1;
  error = phi_rope(x, y, &position, x, y, 1, 1);
  if (error) {
    fprintf(stderr, "phi_rope: %d\n", error);
    return 1;
  }
  printf("phi: q[0] = %.6f, q[40] = %.6f\n", x[0], x[40]);
  return 0;
}
