//===- AsyncCopy.h - copies to shared memory in flight ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_ASYNCCOPY_H
#define POSENC_TEST_PTX_ASYNCCOPY_H

#include <array>
#include <cstdint>
#include <deque>

namespace posenc::ptx {

struct Instruction;

/// A cp.async that its thread has not waited for.
struct PendingCopy {
  const Instruction *instruction;
  uint32_t to;             // offset in shared memory
  uint8_t bytes = 0;       // written
  uint8_t sourceBytes = 0; // read; the rest is filled with zeros
  const uint8_t *from = nullptr;
  std::array<uint8_t, 16> data; // of the source when the copy was issued
};

/// The copies of one thread, oldest first.
struct CopyQueue {
  std::deque<PendingCopy> copies;
  std::deque<uint32_t> groups; // numbers of copies in the committed groups
  uint32_t uncommitted = 0;    // the last copies, which are in no group
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_ASYNCCOPY_H
