//===- Mma.cpp - products of matrices by one warp -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fragments.h"

using namespace llvm;

namespace posenc::ptx {

namespace {

// m16n8k16. Operands: d (4 registers), a (4), b (2), c (4). The 8x8 quarters of
// A are in the order top left, bottom left, top right, bottom right; B is
// stored by columns; D and C have rows 0-7 in the first two registers and rows
// 8-15 in the others.
template <bool isBFloat>
void runMma(Warp &warp, const Instruction &instruction, LaneMask) {
  const Operand *d = instruction.operands.data(), *a = d + 4, *b = a + 4,
                *c = b + 2;
  float left[16][16], right[16][8];
  for (unsigned i = 0; i < 4; ++i)
    forHalves(warp, a[i], isBFloat, [&](unsigned row, unsigned k, float value) {
      left[row + i % 2 * 8][k + i / 2 * 8] = value;
    });
  for (unsigned i = 0; i < 2; ++i)
    forHalves(warp, b[i], isBFloat,
              [&](unsigned column, unsigned k, float value) {
                right[k + i * 8][column] = value;
              });
  double sums[16][8];
  for (unsigned lane = 0; lane < warpSize; ++lane)
    for (unsigned i = 0; i < 4; ++i)
      sums[lane / 4 + i / 2 * 8][2 * (lane % 4) + i % 2] =
          warp.get<float>(c[i], lane);
  addProducts(sums[0], left[0], right[0], 16, 8);
  for (unsigned lane = 0; lane < warpSize; ++lane)
    for (unsigned i = 0; i < 4; ++i)
      warp.set<float>(
          d[i], lane,
          roundSum(sums[lane / 4 + i / 2 * 8][2 * (lane % 4) + i % 2]));
}

bool decodeMma(Decoder &d) {
  if (!d.needTarget(80))
    return false;
  bool isComplete = d.has(".sync") && d.has(".aligned") && d.has(".m16n8k16") &&
                    d.has(".row") && d.has(".col");
  Type types[4];
  for (Type &type : types)
    if (!d.takeType(type))
      return false;
  bool isBFloat = types[1] == Type::BF16;
  if (!isComplete || types[0] != Type::F32 || types[3] != Type::F32 ||
      types[1] != types[2] || (!isBFloat && types[1] != Type::F16))
    return d.fail("expected 'mma.sync.aligned.m16n8k16.row.col.f32' with "
                  "operands '.bf16.bf16.f32' or '.f16.f16.f32'");
  return d.expectOperands(4) && d.vectorDest(0, 4) && d.vectorSource(1, 4) &&
         d.vectorSource(2, 2) && d.vectorSource(3, 4) &&
         d.finishWholeWarp(isBFloat ? runMma<true> : runMma<false>);
}

} // namespace

void addMmaInstructions(OpcodeTable &table) { table["mma"] = decodeMma; }

} // namespace posenc::ptx
