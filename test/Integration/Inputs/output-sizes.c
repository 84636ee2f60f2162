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
  int64_t inputs[2] = {5, 1}, values[2];
  check(elements_grow_output_sizes(inputs, shapes), kUnknown, kUnset, kUnset);
  check(elements_grow_output_sizes_by_values(inputs, NULL, shapes, message,
                                             sizeof(message)),
        kUnknown, kUnset, kUnset);
  for (values[0] = -3; values[0] < 12; ++values[0])
    check(elements_grow_output_sizes_by_values(inputs, values, shapes, message,
                                               sizeof(message)),
          0, values[0] > 5 ? values[0] : 5, kUnset);
  values[0] = INT64_MIN;
  check(elements_grow_output_sizes_by_values(inputs, values, shapes, NULL, 0),
        0, 5, kUnset);
  inputs[1] = 2;
  check(elements_grow_output_sizes_by_values(inputs, values, shapes, message,
                                             sizeof(message)),
        8, kUnset, kUnset);

  /* The value of an i32 is a number of 64 bits, too. */
  for (values[0] = 0; values[0] < 6; ++values[0])
    check(elements_first_output_sizes_by_values(inputs, values, shapes, message,
                                                sizeof(message)),
          0, values[0], kUnset);
  check(elements_first_output_sizes_by_values(inputs, values, shapes, message,
                                              sizeof(message)),
        8, kUnset, kUnset);

  values[0] = 1;
  values[1] = 3;
  inputs[0] = 1;
  check(elements_pair_output_sizes(inputs, shapes), kUnknown, kUnset, kUnset);
  check(elements_pair_output_sizes_by_values(inputs, values, shapes, message,
                                             sizeof(message)),
        0, 4, 3);
  values[0] = -4;
  check(elements_pair_output_sizes_by_values(inputs, values, shapes, message,
                                             sizeof(message)),
        8, kUnset, kUnset);

  /* Of two scalars, one is a size. */
  values[0] = 9;
  values[1] = 4;
  check(elements_fill_output_sizes(NULL, shapes), kUnknown, kUnset, kUnset);
  check(elements_fill_output_sizes_by_values(NULL, values, shapes, message,
                                             sizeof(message)),
        0, 4, kUnset);
  values[1] = -4;
  check(elements_fill_output_sizes_by_values(NULL, values, shapes, message,
                                             sizeof(message)),
        2, kUnset, kUnset);
}

int main(void) {
  checkShapes();
  checkSame();
  checkValues();
  puts("ok");
  return 0;
}
