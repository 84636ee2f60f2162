//===- Case.h - what to measure ---------------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_HARDWARE_CASE_H
#define POSENC_TEST_HARDWARE_CASE_H

#include "Arguments.h"

#include <string>
#include <vector>

namespace posenc::hardware {

/// A line of a file of cases: `NAME FUNCTION SIZES [WORD...]`, where sizes are
/// as 1x4096, `-` is none, and words are those below.
struct Case {
  std::string name, function;
  std::vector<int64_t> sizes;
  Order order = Order::Ascending; ///< shuffled
  bool isInPlace = false;         ///< in-place
  /// strided: the first inputs are heads of one buffer [token, head, dim],
  /// where as many again as the last one has follow them, as in q, k, v.
  bool isStrided = false;
  /// graph: launches are recorded, and the data stays in the cache.
  bool isGraph = false;
};

/// Throws for a line that is none. What is behind a # is a comment.
std::vector<Case> readCases(const std::string &path);

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_CASE_H
