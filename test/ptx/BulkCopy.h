//===- BulkCopy.h - tensor copies in flight ---------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_BULKCOPY_H
#define POSENC_TEST_PTX_BULKCOPY_H

#include "TensorMap.h"

#include <deque>
#include <vector>

namespace posenc::ptx {

struct Instruction;

/// Bytes of shared memory.
struct ByteRange {
  uint32_t begin = 0, end = 0;
};

/// A copy to shared memory that has not completed.
struct BulkLoad {
  const Instruction *instruction = nullptr;
  uint32_t to = 0; // before swizzling
  uint32_t mbarrier = 0;
  TensorMap::Swizzle swizzle = TensorMap::None;
  std::vector<uint8_t> data;
};

/// The copies from shared memory of one thread, oldest first: the bytes that
/// they may still be reading.
struct StoreQueue {
  const Instruction *last = nullptr; // that started a copy
  std::deque<std::vector<ByteRange>> groups;
  std::vector<ByteRange> uncommitted;

  bool isEmpty() const { return groups.empty() && uncommitted.empty(); }
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_BULKCOPY_H
