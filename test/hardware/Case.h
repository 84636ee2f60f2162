//===- Case.h - a case of a benchmark ---------------------------*- C++ -*-===//
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

/// A line `NAME FUNCTION SIZES [WORD...]` of a file of cases. SIZES are the
/// dynamic sizes of the function, such as 1x4096, or `-` for none. The words
/// are listed below; those with `floor=` are for torch-attention.py.
struct Case {
  std::string name, function;
  std::vector<int64_t> sizes;
  Order order = Order::Ascending; ///< shuffled
  /// in-place: the outputs are the last inputs of floating-point numbers
  bool isInPlace = false;
  /// strided: the floating-point inputs are slices of one buffer [token, head,
  /// dim]. After them, the buffer has the heads of the last input once more, as
  /// v follows q and k.
  bool isStrided = false;
  /// attention, causal: the function is attention, of which a causal mask hides
  /// half of the products. Measures operations instead of bytes.
  bool isAttention = false, isCausal = false;
  /// graph: launches from a CUDA graph, with data that stays in the L2 cache,
  /// but not that of `reads`.
  bool isGraph = false;
  /// reads: the function reads its inputs once; its limit is the bandwidth of
  /// the datasheet.
  bool isRead = false;
  /// bytes=N: the bytes that it reads and writes, if they are not those of all
  /// tensors. ops=N: its floating-point operations, to measure those.
  double bytes = 0, operations = 0;
  /// values=TEXT;...: the contents of the integer inputs; see makeIntegers.
  std::vector<std::string> values;
};

/// Reads a file of cases, in which # starts a comment. Throws Failure for a
/// malformed line.
std::vector<Case> readCases(const std::string &path);

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_CASE_H
