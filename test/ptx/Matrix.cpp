//===- Matrix.cpp - loads and stores of 8x8 matrices ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneAccess.h"

using namespace llvm;

namespace posenc::ptx {

namespace {

// Row r of matrix i is at the address of lane 8 * i + r. Lane l has the
// elements 2 * (l % 4) and 2 * (l % 4) + 1 of row l / 4, or of column l / 4
// with .trans. A row counts as accessed by the lane that has its address.

/// An 8x8 matrix of 16-bit elements.
struct Matrix {
  uint16_t at[8][8];

  void transpose() {
    for (unsigned i = 0; i < 8; ++i)
      for (unsigned j = 0; j < i; ++j)
        std::swap(at[i][j], at[j][i]);
  }
};

// The lanes whose addresses are used.
LaneMask getAddressLanes(const Instruction &instruction) {
  unsigned lanes = 8 * instruction.matrices;
  return lanes == warpSize ? ~LaneMask(0) : (LaneMask(1) << lanes) - 1;
}

// Operands: the destinations, then the base of the addresses.
template <bool isTransposed>
void runLoad(Warp &warp, const Instruction &instruction, LaneMask) {
  unsigned count = instruction.matrices;
  LaneMask rows = getAddressLanes(instruction);
  LaneAccess access(warp, instruction);
  if (!access.resolve(instruction.operands[count], rows, /*isStore=*/false))
    return;
  for (unsigned lane = 0; lane < 8 * count; ++lane)
    if (!access.load(lane))
      return;
  for (unsigned i = 0; i < count; ++i) {
    Matrix matrix;
    for (unsigned row = 0; row < 8; ++row)
      std::memcpy(matrix.at[row], access.at(8 * i + row), 16);
    if (isTransposed)
      matrix.transpose();
    std::memcpy(warp.at(instruction.operands[i]), matrix.at, sizeof(matrix));
  }
}

// Operands: the base of the addresses, then the sources.
template <bool isTransposed>
void runStore(Warp &warp, const Instruction &instruction, LaneMask) {
  unsigned count = instruction.matrices;
  LaneMask rows = getAddressLanes(instruction);
  LaneAccess access(warp, instruction);
  if (!access.resolve(instruction.operands[0], rows, /*isStore=*/true))
    return;
  for (unsigned i = 0; i < count; ++i) {
    Matrix matrix;
    std::memcpy(matrix.at, warp.at(instruction.operands[1 + i]),
                sizeof(matrix));
    if (isTransposed)
      matrix.transpose();
    for (unsigned row = 0; row < 8; ++row)
      if (!access.store(8 * i + row,
                        reinterpret_cast<const uint8_t *>(matrix.at[row])))
        return;
  }
}

template <bool isStore> bool decodeMatrix(Decoder &d) {
  if (!d.needTarget(isStore ? 90 : 75))
    return false;
  bool isComplete = d.has(".sync") && d.has(".aligned") && d.has(".m8n8");
  StringRef count = d.takeOneOf({".x1", ".x2", ".x4"});
  bool isTransposed = d.has(".trans");
  d.out.access.space = d.takeSpace().value_or(Space::Generic);
  Type type;
  if (!isComplete || count.empty() || d.out.access.space != Space::Shared ||
      !d.takeType(type) || type != Type::B16)
    return d.fail("expected '" + d.getSyntax().opcode +
                  ".sync.aligned.m8n8.{x1,x2,x4}{.trans}.shared.b16'");
  d.out.access.bytes = 16;
  d.out.matrices = count[2] - '0';
  if (!d.expectOperands(2))
    return false;
  if (isStore)
    return d.address(0) && d.vectorSource(1, d.out.matrices) &&
           d.finishWholeWarp(isTransposed ? runStore<true> : runStore<false>);
  return d.vectorDest(0, d.out.matrices) && d.address(1) &&
         d.finishWholeWarp(isTransposed ? runLoad<true> : runLoad<false>);
}

} // namespace

void addMatrixInstructions(OpcodeTable &table) {
  table["ldmatrix"] = decodeMatrix<false>;
  table["stmatrix"] = decodeMatrix<true>;
}

} // namespace posenc::ptx
