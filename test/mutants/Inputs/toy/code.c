//===- code.c - functions that are changed --------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <assert.h>
#include <stdio.h>

// Comments stay as they are: a < b, a + 1, if (a) return 0;
#define LIMIT (3 + 4)

int clamp(int value, int low, int high) {
  assert(low <= high + 0 && "a range < of numbers");
  if (value < low)
    return low;
  return value > high ? high : value; /* 7 < 8 */
}

// The test asks only whether this is another number.
int untested(int value) {
  value = value + 5;
  return value;
}

int count(int n) {
  int steps = 0;
  while (n > 0) {
    n -= 1;
    steps += 1;
  }
  printf("%d < %d\n", n, steps);
  return steps;
}
