//===- Lanes.h - runs scalar functions on the lanes of a warp ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_LANES_H
#define POSENC_TEST_PTX_LANES_H

#include "Machine.h"

namespace posenc::ptx {

/// Calls `function` with the index of each lane in `mask`.
template <typename F> void forLanes(LaneMask mask, F function) {
  if (mask == ~LaneMask(0)) {
    for (unsigned lane = 0; lane < warpSize; ++lane)
      function(lane);
    return;
  }
  for (; mask; mask &= mask - 1)
    function(unsigned(__builtin_ctz(mask)));
}

template <auto F> struct Lanes;

/// A handler that applies the scalar function `F` to the operands of each lane.
/// The parameters of `F` must have the sizes of the registers.
template <typename D, typename... S, D (*F)(S...)> struct Lanes<F> {
  static void run(Warp &warp, const Instruction &instruction, LaneMask mask) {
    runIndexed(warp, instruction, mask, std::index_sequence_for<S...>());
  }

private:
  template <size_t... I>
  static void runIndexed(Warp &warp, const Instruction &instruction,
                         LaneMask mask, std::index_sequence<I...>) {
    uint8_t *to = warp.at(instruction.operands[0]);
    const uint8_t *from[] = {warp.at(instruction.operands[1 + I])...};
    forLanes(mask, [=](unsigned lane) {
      D value = F(read<S>(from[I], lane)...);
      std::memcpy(to + lane * sizeof(D), &value, sizeof(D));
    });
  }
  template <typename T> static T read(const uint8_t *from, unsigned lane) {
    T value;
    std::memcpy(&value, from + lane * sizeof(T), sizeof(T));
    return value;
  }
};

template <auto F> constexpr Handler lanes = &Lanes<F>::run;

/// Returns the mask of the lanes of `mask` for which `F(a, b)` is true.
template <typename T, bool (*F)(T, T)>
LaneMask compareLanes(const Warp &warp, const Operand &a, const Operand &b,
                      LaneMask mask) {
  LaneMask result = 0;
  forLanes(mask, [&](unsigned lane) {
    result |= LaneMask(F(warp.get<T>(a, lane), warp.get<T>(b, lane))) << lane;
  });
  return result;
}

/// Sets the result of each lane to `sum(lane, in, out)`. `in` is the carry
/// flag, or 0 without hasCarryIn; `out` becomes the carry flag with
/// hasCarryOut.
template <typename T, bool hasCarryIn, bool hasCarryOut, typename Sum>
void sumLanes(Warp &warp, const Instruction &instruction, LaneMask mask,
              Sum sum) {
  if (hasCarryIn && (mask & ~warp.carryDefined)) {
    warp.fault(FaultKind::Uninitialized,
               __builtin_ctz(mask & ~warp.carryDefined), instruction,
               "the carry flag has not been written");
    return;
  }
  LaneMask carries = 0;
  forLanes(mask, [&](unsigned lane) {
    bool out;
    T value = sum(lane, hasCarryIn ? T((warp.carry >> lane) & 1) : T(0), out);
    warp.set<T>(instruction.operands[0], lane, value);
    carries |= LaneMask(out) << lane;
  });
  if (hasCarryOut) {
    warp.carry = (warp.carry & ~mask) | carries;
    warp.carryDefined |= mask;
  }
}

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_LANES_H
