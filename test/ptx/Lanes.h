//===- Lanes.h - scalar functions on the lanes of a warp --------*- C++ -*-===//
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

/// Calls `function` with each lane of `mask`.
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

/// A handler that gives every lane what the scalar function `F` makes of its
/// operands. The parameters' sizes are those of the registers.
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

/// The same for a function that answers yes or no; a predicate is written.
template <typename T, bool (*F)(T, T)>
LaneMask compareLanes(const Warp &warp, const Operand &a, const Operand &b,
                      LaneMask mask) {
  LaneMask result = 0;
  forLanes(mask, [&](unsigned lane) {
    result |= LaneMask(F(warp.get<T>(a, lane), warp.get<T>(b, lane))) << lane;
  });
  return result;
}

/// Gives every lane `sum(lane, in, out)`: `in` is the carry, or 0 unless the
/// instruction takes one, and `out` the carry that it may leave.
template <typename T, bool takes, bool leaves, typename Sum>
void sumLanes(Warp &warp, const Instruction &instruction, LaneMask mask,
              Sum sum) {
  if (takes && (mask & ~warp.carryDefined)) {
    warp.fault(FaultKind::Uninitialized,
               __builtin_ctz(mask & ~warp.carryDefined), instruction,
               "the carry has not been written");
    return;
  }
  LaneMask carries = 0;
  forLanes(mask, [&](unsigned lane) {
    bool out;
    T value = sum(lane, takes ? T((warp.carry >> lane) & 1) : T(0), out);
    warp.set<T>(instruction.operands[0], lane, value);
    carries |= LaneMask(out) << lane;
  });
  if (leaves) {
    warp.carry = (warp.carry & ~mask) | carries;
    warp.carryDefined |= mask;
  }
}

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_LANES_H
