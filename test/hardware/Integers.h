//===- Integers.h - contents of integer tensors of a case -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_HARDWARE_INTEGERS_H
#define POSENC_TEST_HARDWARE_INTEGERS_H

#include <cstdint>
#include <string>
#include <vector>

namespace posenc::hardware {

/// Returns the elements of a tensor, such as lengths or a block table, from
/// text. RUNS are numbers with an optional count before them: 64*1,8192.
///   RUNS         the elements; a single number is all of them
///   iota         the indices of the elements
///   starts:RUNS  the sums of the numbers before each one, and of all:
///   cu_seqlens pages:RUNS   a block table: row i has RUNS[i] pages, which no
///   other row has
///                and which are not in order, and zeros
/// Throws Failure for other texts and other numbers of elements.
std::vector<int64_t> makeIntegers(const std::string &text,
                                  const std::vector<int64_t> &shape);

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_INTEGERS_H
