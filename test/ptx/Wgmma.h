//===- Wgmma.h - products of matrices by warpgroups -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_WGMMA_H
#define POSENC_TEST_PTX_WGMMA_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace posenc::ptx {

struct Instruction;

/// A wgmma.mma_async that its warp has not waited for.
struct PendingWgmma {
  const Instruction *instruction = nullptr;
  std::vector<uint32_t> chunks; // 16-byte parts of shared memory that it reads
};

/// The 16 rows of an accumulator that belong to one warp, while operations on
/// it are in flight.
struct Accumulator {
  const Instruction *instruction = nullptr; // the first one
  unsigned pending = 0;                     // number of operations
  std::vector<float> values;                // 16 x columns
};

/// The wgmma operations of a warp, oldest first.
struct WgmmaQueue {
  /// The operations in flight that use a register.
  struct Register {
    const Instruction *instruction = nullptr; // the last one
    uint16_t results = 0, sources = 0;        // numbers of operations
    uint32_t lastWrite = 0;                   // value of `fences`
  };

  std::deque<std::vector<PendingWgmma>> groups;
  std::vector<PendingWgmma> uncommitted;
  std::map<uint32_t, Accumulator> accumulators; // by their first register
  std::vector<Register> registers;
  uint32_t fences = 0;   // number of executed wgmma.fence
  uint32_t inFlight = 0; // number of operations

  void reset(std::size_t numRegisters) {
    groups.clear();
    uncommitted.clear();
    accumulators.clear();
    registers.assign(numRegisters, Register());
    fences = inFlight = 0;
  }
};

/// Checks that the four warps of a warpgroup execute the same operations.
struct Warpgroup {
  struct Operation {
    const Instruction *instruction;
    uint64_t a, b; // matrix descriptors
    bool isAdded;  // to the accumulator
    bool operator==(const Operation &other) const {
      return instruction == other.instruction && a == other.a && b == other.b &&
             isAdded == other.isAdded;
    }
  };
  std::deque<Operation> operations; // that some warp has not executed
  std::array<uint64_t, 4> counts{}; // of the operations of each warp
  uint64_t first = 0;               // number of the first of `operations`
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_WGMMA_H
