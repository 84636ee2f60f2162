//===- Compare.h - differences of results -----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_HARDWARE_COMPARE_H
#define POSENC_TEST_HARDWARE_COMPARE_H

#include "posenc/runtime/Array.h"

#include <string>

namespace posenc::hardware {

/// Whether two arrays have the same bytes. `count` is the number of elements of
/// both, if they are not whole arrays.
bool hasSameBits(const runtime::Array &left, const runtime::Array &right);

/// Whether elements of the type are floating-point numbers, which devices round
/// differently; others are compared by their bits.
bool isNumeric(posenc_dtype dtype);

/// The distance of a result from that of another device, relative to the norm
/// of the latter: of all elements, and of the row, along the last dimension,
/// where it is largest. Infinite if infinities or NaNs are at other places.
struct Distance {
  double all = 0, row = 0;
  int64_t rowIndex = 0;
};
Distance getDistance(const runtime::Array &result,
                     const runtime::Array &expected);

/// The distance that a result on a GPU may have from that on a CPU, for a
/// function whose first result has this type. Throws Failure for types that are
/// not numeric.
Distance getLimit(posenc_dtype dtype);

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_COMPARE_H
