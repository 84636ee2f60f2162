//===- Arguments.h - shapes and contents of the tensors ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_HARDWARE_ARGUMENTS_H
#define POSENC_TEST_HARDWARE_ARGUMENTS_H

#include "DlTensor.h"

#include "posenc/runtime/Library.h"

#include <cstdint>
#include <string>
#include <vector>

namespace posenc::hardware {

bool isFloating(posenc_dtype dtype);

/// Returns the product of the sizes.
int64_t countElements(const std::vector<int64_t> &shape);

/// Returns the shape of an argument. `sizes` are the values of the dynamic
/// sizes of the function, in order. Throws Failure if their number differs.
std::vector<int64_t> getShape(const posenc_function &function,
                              const posenc_argument &argument,
                              const std::vector<int64_t> &sizes);

/// The values of positions: their indices, a permutation of these, or random
/// numbers that include the extremes of int32.
enum class Order { Ascending, Shuffled, Extreme };

/// Fills host memory with `count` random numbers in (-4, 4), or with positions
/// for integer types.
void fill(void *data, posenc_dtype dtype, int64_t count, Order order,
          uint64_t seed);

/// Fills host memory with normally distributed numbers; those of 8 bits are
/// about 1, integers of 8 bits any, and others in [0, 4096).
void fillNormal(void *data, posenc_dtype dtype, int64_t count, uint64_t seed);

/// A pseudo-random generator that is the same on all platforms.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed * 2 + 1) {}
  uint64_t operator()();

private:
  uint64_t state;
};

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_ARGUMENTS_H
