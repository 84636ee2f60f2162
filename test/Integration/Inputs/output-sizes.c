/*===- output-sizes.c - shapes of outputs before a call -----------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* A library computes the shapes of outputs. A call that fails writes nothing.
 */

#include "elements.h"

#include "tensors.h"

#include <string.h>

enum { kUnset = -7, kUnknown = 16 };

static int64_t shapes[2] = {kUnset, kUnset};
static char message[128];

/* Checks the code and the two sizes, and clears them. Prints a message. */
static void check(int32_t code, int32_t expected, int64_t rows,
                  int64_t columns) {
  CHECK(code == expected);
  CHECK(shapes[0] == rows && shapes[1] == columns);
  shapes[0] = shapes[1] = kUnset;
  if (*message)
    puts(message);
  *message = 0;
}

/* The shapes of inputs determine that of `join`. */
static void checkShapes(void) {
  int64_t n, m, inputs[2];
  for (n = 0; n < 4; ++n)
    for (m = 0; m < 4; ++m) {
      inputs[0] = n;
      inputs[1] = m;
      check(elements_join_output_sizes(inputs, shapes), 0, n + m, kUnset);
      strcpy(message, "stale");
      check(elements_join_output_sizes_by_values(inputs, NULL, shapes, message,
                                                 sizeof(message)),
            0, n + m, kUnset);
    }
  check(elements_join_output_sizes(NULL, shapes), 1, kUnset, kUnset);
  check(elements_join_output_sizes(inputs, NULL), 1, kUnset, kUnset);
  inputs[0] = -1;
  check(elements_join_output_sizes(inputs, shapes), 2, kUnset, kUnset);
  check(elements_join_output_sizes_by_values(inputs, NULL, shapes, message,
                                             sizeof(message)),
        2, kUnset, kUnset);
  inputs[0] = INT64_MAX;
  check(elements_join_output_sizes(inputs, shapes), 2, kUnset, kUnset);
  check(elements_join_output_sizes_by_values(inputs, NULL, shapes, message, 12),
        2, kUnset, kUnset);
}

/* A size that is an argument, dimension 0 of two inputs and of the output. */
static void checkSame(void) {
  int64_t inputs[4] = {5, 3, 5, 3};
  check(elements_sum_output_sizes(inputs, shapes), 0, 5, 3);
  inputs[2] = 4;
  check(elements_sum_output_sizes(inputs, shapes), 8, kUnset, kUnset);
  inputs[2] = 5;
  inputs[3] = 2;
  check(elements_sum_output_sizes(inputs, shapes), 8, kUnset, kUnset);
}

/* Values of inputs determine the shapes of the others. */
static void checkValues(void) {
  int64_t inputs[2] = {5, 1}, value;
  int32_t narrow;
  const void *values[1];
  values[0] = &value;
  check(elements_grow_output_sizes(inputs, shapes), kUnknown, -1, kUnset);
  check(elements_grow_output_sizes_by_values(inputs, NULL, shapes, message,
                                             sizeof(message)),
        kUnknown, -1, kUnset);
  for (value = -3; value < 12; ++value)
    check(elements_grow_output_sizes_by_values(inputs, values, shapes, message,
                                               sizeof(message)),
          0, value > 5 ? value : 5, kUnset);
  value = INT64_MIN;
  check(elements_grow_output_sizes_by_values(inputs, values, shapes, NULL, 0),
        0, 5, kUnset);
  inputs[1] = 2;
  check(elements_grow_output_sizes_by_values(inputs, values, shapes, message,
                                             sizeof(message)),
        8, kUnset, kUnset);

  values[0] = &narrow;
  for (narrow = 0; narrow < 6; ++narrow)
    check(elements_first_output_sizes_by_values(inputs, values, shapes, message,
                                                sizeof(message)),
          0, narrow, kUnset);
  check(elements_first_output_sizes_by_values(inputs, values, shapes, message,
                                              sizeof(message)),
        8, kUnset, kUnset);
}

/* One of two values may be unknown. */
static void checkPairs(void) {
  int64_t inputs[1] = {1}, first = 1, second = 3;
  const void *values[2];
  values[0] = &first;
  values[1] = &second;
  check(elements_pair_output_sizes(inputs, shapes), kUnknown, -1, -1);
  check(elements_pair_output_sizes_by_values(inputs, values, shapes, message,
                                             sizeof(message)),
        0, 4, 3);
  values[0] = NULL;
  check(elements_pair_output_sizes_by_values(inputs, values, shapes, message,
                                             sizeof(message)),
        kUnknown, -1, 3);
  values[0] = &first;
  first = -4;
  check(elements_pair_output_sizes_by_values(inputs, values, shapes, message,
                                             sizeof(message)),
        8, kUnset, kUnset);

  /* The size is the second scalar; the first is none. */
  second = 4;
  check(elements_fill_output_sizes(NULL, shapes), kUnknown, -1, kUnset);
  check(elements_fill_output_sizes_by_values(NULL, values, shapes, message,
                                             sizeof(message)),
        0, 4, kUnset);
  second = -4;
  check(elements_fill_output_sizes_by_values(NULL, values, shapes, message,
                                             sizeof(message)),
        2, kUnset, kUnset);
  second = INT64_MIN;
  check(elements_fill_output_sizes_by_values(NULL, values, shapes, NULL, 0), 2,
        kUnset, kUnset);

  /* Any number is a value. */
  for (second = INT64_MIN; second < INT64_MIN + 2; ++second)
    check(elements_cap_output_sizes_by_values(NULL, values, shapes, message,
                                              sizeof(message)),
          0, 4, kUnset);
}

int main(void) {
  checkShapes();
  checkSame();
  checkValues();
  checkPairs();
  puts("ok");
  return 0;
}
