/*===- check.h - helpers of the C test programs -------------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);  \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

/* Returns random numbers in [-1, 1), the same in every run. */
static inline double nextRandom(void) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) / 4503599627370496.0 - 1.0;
}

static inline void fillFloats(float *data, size_t count) {
  size_t i;
  for (i = 0; i < count; ++i)
    data[i] = (float)nextRandom();
}

/* Returns element `lane` of the row `x` with `dim` elements, rotated by
 * `position`. */
static inline double rotateLane(const double *x, int dim, int interleaved,
                                double base, double position, int lane) {
  int half = dim / 2;
  int pair = interleaved ? lane / 2 : lane % half;
  int isSecond = interleaved ? lane % 2 : lane >= half;
  int partner = interleaved ? lane ^ 1 : (lane + half) % dim;
  double angle = position * pow(base, -2.0 * pair / dim);
  return isSecond ? x[lane] * cos(angle) + x[partner] * sin(angle)
                  : x[lane] * cos(angle) - x[partner] * sin(angle);
}

#endif
