//===- LoadTrips.h - dependent loads of the threads of a warp ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts how often a thread waits for global memory: its round trips. A thread
// executes its instructions in order, and waits when it uses a register whose
// load is under way. Loads that are started before the first use of one of them
// are one trip together. Moves are no uses, since ptxas removes them.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_LOADTRIPS_H
#define POSENC_TEST_PTX_LOADTRIPS_H

#include "Program.h"

#include "llvm/ADT/ArrayRef.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace posenc::ptx {

class LoadTrips {
public:
  void reset(size_t numRegisters) {
    for (uint32_t reg : loaded)
      registers[reg] = {};
    loaded.clear();
    registers.resize(numRegisters);
    done.fill(0);
  }
  /// Notes that a lane starts to load a register from global memory.
  void addLoad(uint32_t reg, unsigned lane) { set(reg, lane, done[lane] + 1); }
  /// Lets lanes wait for the registers that they use. Returns the largest
  /// number of trips of these lanes, or 0 if none had to wait.
  uint32_t use(llvm::ArrayRef<uint32_t> reads, LaneMask mask) {
    uint32_t maxTrips = 0;
    if (loaded.empty())
      return maxTrips;
    forEach(reads, mask, [&](Register &reg, unsigned lane) {
      done[lane] = std::max(done[lane], reg.trips[lane]);
      maxTrips = std::max(maxTrips, done[lane]);
      reg.lanes &= ~(LaneMask(1) << lane);
    });
    if (maxTrips)
      removeUsed();
    return maxTrips;
  }
  /// Moves registers to others.
  void copy(llvm::ArrayRef<uint32_t> reads, llvm::ArrayRef<uint32_t> writes,
            LaneMask mask) {
    if (loaded.empty())
      return;
    std::array<uint32_t, warpSize> trips{};
    forEach(reads, mask, [&](Register &reg, unsigned lane) {
      trips[lane] = std::max(trips[lane], reg.trips[lane]);
    });
    overwrite(writes, mask);
    for (unsigned lane = 0; lane < warpSize; ++lane)
      for (uint32_t reg : writes)
        if (trips[lane])
          set(reg, lane, trips[lane]);
  }
  /// Forgets the loads of registers that an instruction overwrites.
  void overwrite(llvm::ArrayRef<uint32_t> writes, LaneMask mask) {
    if (loaded.empty())
      return;
    for (uint32_t reg : writes)
      registers[reg].lanes &= ~mask;
  }

private:
  struct Register {
    LaneMask lanes = 0; // that have not waited for it
    bool isListed = false;
    std::array<uint32_t, warpSize> trips{};
  };
  void set(uint32_t number, unsigned lane, uint32_t trip) {
    Register &reg = registers[number];
    if (!reg.isListed)
      loaded.push_back(number);
    reg.isListed = true;
    reg.lanes |= LaneMask(1) << lane;
    reg.trips[lane] = trip;
  }
  template <typename Body>
  void forEach(llvm::ArrayRef<uint32_t> numbers, LaneMask mask, Body body) {
    for (uint32_t number : numbers) {
      Register &reg = registers[number];
      for (LaneMask lanes = reg.lanes & mask; lanes; lanes &= lanes - 1)
        body(reg, unsigned(__builtin_ctz(lanes)));
    }
  }
  void removeUsed() {
    auto isUsed = [&](uint32_t reg) {
      registers[reg].isListed = registers[reg].lanes != 0;
      return !registers[reg].isListed;
    };
    loaded.erase(std::remove_if(loaded.begin(), loaded.end(), isUsed),
                 loaded.end());
  }

  std::vector<Register> registers;
  /// Registers that may have lanes.
  std::vector<uint32_t> loaded;
  /// The round trips that each lane has waited for.
  std::array<uint32_t, warpSize> done{};
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_LOADTRIPS_H
