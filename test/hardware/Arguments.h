//===- Arguments.h - tensors of a function, and what is in them -*- C++ -*-===//
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

/// The product of sizes.
int64_t countElements(const std::vector<int64_t> &shape);

/// The shape of an argument, whose dynamic sizes are those of the function in
/// their order. Throws where there are not so many.
std::vector<int64_t> getShape(const posenc_function &function,
                              const posenc_argument &argument,
                              const std::vector<int64_t> &sizes);

/// How positions follow each other.
enum class Order { Ascending, Shuffled, Extreme };

/// Fills memory of the host with numbers in (-4, 4), or with positions.
void fill(void *data, posenc_dtype dtype, int64_t count, Order order,
          uint64_t seed);

/// Numbers that a seed decides.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed * 2 + 1) {}
  uint64_t operator()();

private:
  uint64_t state;
};

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_ARGUMENTS_H
