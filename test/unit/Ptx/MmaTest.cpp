//===- MmaTest.cpp - mma.sync in the PTX interpreter ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

#include <cmath>
#include <random>

using namespace posenc;
using namespace posenc::test;

namespace {

// Each lane loads its registers of A, B and C, and stores those of D.
std::string makeMma(const std::string &types,
                    const std::string &tuning = ".maxntid 32") {
  return makeModule(
      ".param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d",
      "ld.param.b64 %d0, [a]; ld.param.b64 %d1, [b]; ld.param.b64 %d2, [c];\n"
      "ld.param.b64 %d3, [d]; mov.u32 %r0, %laneid;\n"
      "mad.wide.u32 %d0, %r0, 16, %d0; mad.wide.u32 %d1, %r0, 8, %d1;\n"
      "mad.wide.u32 %d2, %r0, 16, %d2; mad.wide.u32 %d3, %r0, 16, %d3;\n"
      "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d0];\n"
      "ld.global.v2.b32 {%r5, %r6}, [%d1];\n"
      "ld.global.v4.b32 {%r7, %r8, %r9, %r10}, [%d2];\n"
      "mma.sync.aligned.m16n8k16.row.col.f32." +
          types +
          ".f32 {%r11, %r12, %r13, %r14}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, "
          "{%r7, %r8, %r9, %r10};\n"
          "st.global.v4.b32 [%d3], {%r11, %r12, %r13, %r14};",
      tuning);
}

uint16_t toBFloat(float value) { // of a value that is exact
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits >> 16;
}
uint16_t toHalf(float value) { // of a value that is exact and normal, or 0
  if (value == 0)
    return 0;
  int exponent;
  float fraction = std::frexp(std::fabs(value), &exponent);
  return uint16_t(value < 0) << 15 | uint16_t(exponent + 14) << 10 |
         (uint16_t(std::ldexp(fraction, 11)) & 1023);
}

// The positions in A and B of element i of a lane, as in the PTX ISA.
unsigned getRowOfA(unsigned lane, unsigned i) {
  return (lane >> 2) + ((i < 2) || (i >= 4 && i < 6) ? 0 : 8);
}
unsigned getColumnOfA(unsigned lane, unsigned i) {
  return (lane % 4) * 2 + (i & 1) + (i >= 4 ? 8 : 0);
}
unsigned getRowOfB(unsigned lane, unsigned i) {
  return (lane % 4) * 2 + (i & 1) + (i >= 2 ? 8 : 0);
}
unsigned getRowOfC(unsigned lane, unsigned i) {
  return (lane >> 2) + (i < 2 ? 0 : 8);
}
unsigned getColumnOfC(unsigned lane, unsigned i) {
  return (lane % 4) * 2 + (i & 1);
}

void expectProduct(bool isBFloat) {
  auto convert = isBFloat ? toBFloat : toHalf;
  std::mt19937 random(isBFloat);
  // Multiples of 1/4 up to 16, whose products and sums are exact.
  auto draw = [&] { return (int(random() % 129) - 64) / 4.0f; };
  float a[16][16], b[16][8], c[16][8];
  for (auto &row : a)
    for (float &value : row)
      value = draw();
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned j = 0; j < 8; ++j) {
      b[i][j] = draw();
      c[i][j] = draw();
    }
  std::vector<uint16_t> left(256), right(128);
  std::vector<float> sums(128), out(128);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < 8; ++i)
      left[lane * 8 + i] =
          convert(a[getRowOfA(lane, i)][getColumnOfA(lane, i)]);
    for (unsigned i = 0; i < 4; ++i) {
      right[lane * 4 + i] = convert(b[getRowOfB(lane, i)][lane >> 2]);
      sums[lane * 4 + i] = c[getRowOfC(lane, i)][getColumnOfC(lane, i)];
    }
  }
  Kernel kernel(makeMma(isBFloat ? "bf16.bf16" : "f16.f16"));
  kernel.shape.block = {32, 1, 1};
  kernel.run({kernel.memory.add(left, ptx::Access::ReadOnly),
              kernel.memory.add(right, ptx::Access::ReadOnly),
              kernel.memory.add(sums, ptx::Access::ReadOnly),
              kernel.memory.add(out, ptx::Access::WriteOnly)});
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < 4; ++i) {
      unsigned row = getRowOfC(lane, i), column = getColumnOfC(lane, i);
      float expected = c[row][column];
      for (unsigned k = 0; k < 16; ++k)
        expected += a[row][k] * b[k][column];
      EXPECT_EQ(out[lane * 4 + i], expected) << row << " " << column;
    }
  }
}

} // namespace

TEST(PtxMma, BFloat) { expectProduct(/*isBFloat=*/true); }
TEST(PtxMma, Half) { expectProduct(/*isBFloat=*/false); }

// Sums are f32: large terms that cancel, infinities and NaN.
TEST(PtxMma, SpecialValues) {
  std::vector<uint16_t> a(256), b(128);
  std::vector<uint32_t> c(128), out(128);
  // Row 0 of A is {x, y, 0, ...}; column 0 of B is ones.
  auto compute = [&](float x, float y, float sum) {
    a[0] = toBFloat(x);
    a[1] = toBFloat(y);
    for (unsigned lane = 0; lane < 4; ++lane)
      for (unsigned i = 0; i < 4; ++i)
        b[lane * 4 + i] = toBFloat(1);
    std::memcpy(c.data(), &sum, 4);
    Kernel kernel(makeMma("bf16.bf16"));
    kernel.shape.block = {32, 1, 1};
    kernel.run({kernel.memory.add(a, ptx::Access::ReadOnly),
                kernel.memory.add(b, ptx::Access::ReadOnly),
                kernel.memory.add(c, ptx::Access::ReadOnly),
                kernel.memory.add(out, ptx::Access::WriteOnly)});
    return out[0];
  };
  EXPECT_EQ(compute(1, 0, 0x1p-24f), 0x3f800000u);
  EXPECT_EQ(compute(1, -1, 0x1p-30f), 0x30800000u);
  EXPECT_EQ(compute(0x1p127f, 0x1p127f, 0), 0x7f800000u);
  EXPECT_EQ(compute(INFINITY, -INFINITY, 1), 0x7fffffffu);
  EXPECT_EQ(compute(1, 2, -NAN), 0x7fffffffu);
}

TEST(PtxMma, Errors) {
  std::string operands = " {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, "
                         "{%r8, %r9}, {%r0, %r1, %r2, %r3};";
  std::string good = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32";
  EXPECT_EQ(getInstructionError(good + operands), "");
  auto expectError = [&](const std::string &text, const std::string &error) {
    std::string found = getInstructionError(text);
    EXPECT_NE(found.find(error), std::string::npos) << text << ": " << found;
  };
  for (const char *name :
       {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32",
        "mma.sync.aligned.m16n8k16.col.col.f32.bf16.bf16.f32",
        "mma.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.f16.f32",
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"})
    expectError(name + operands, "expected");
  expectError(good + " {%r0, %r1, %r2}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, "
                     "{%r0, %r1, %r2, %r3};",
              "expected 4 registers in braces as operand 1 of 'mma'");
  expectError(good + " {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, %r8, "
                     "{%r0, %r1, %r2, %r3};",
              "expected 2 registers in braces as operand 3 of 'mma'");
  expectError(good + " {%r0, %r1, %r2, %d3}, {%r4, %r5, %r6, %r7}, "
                     "{%r8, %r9}, {%r0, %r1, %r2, %r3};",
              "has 8 bytes");
  EXPECT_NE(getError(".version 8.0\n.target sm_75\n.visible .entry k() {\n"
                     ".reg .b32 %r<10>;\n" +
                     good + operands + "}")
                .find("'mma' requires sm_80 or later; the target is sm_75"),
            std::string::npos);
}

TEST(PtxMma, Lanes) {
  auto expectFault = [](const std::string &body, uint32_t threads,
                        ptx::FaultKind kind, const std::string &text) {
    std::string zeros = "mov.u32 %r9, %laneid; setp.lt.u32 %p0, %r9, 9;";
    for (unsigned i = 0; i < 8; ++i)
      zeros += "mov.b32 %r" + std::to_string(i) + ", 0;";
    Kernel kernel(makeModule("", zeros + body));
    kernel.shape.block = {threads, 1, 1};
    kernel.expectFault(kind, {}, {text});
  };
  std::string mma = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                    "{%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r4, %r5}, "
                    "{%r0, %r1, %r2, %r3};";
  expectFault("@%p0 " + mma, 32, ptx::FaultKind::Barrier, "excludes lanes");
  expectFault("@%p0 bra $A; " + mma + "bra.uni $B; $A: mov.b32 %r1, 1;" + mma +
                  "$B:",
              32, ptx::FaultKind::Barrier, "wait at line");
  expectFault("@%p0 exit; " + mma, 32, ptx::FaultKind::Undefined,
              "all 32 lanes of a warp must take part");
  expectFault(mma, 48, ptx::FaultKind::Undefined,
              "lanes 0xFFFF0000 have ended");
  expectFault("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r20}, {%r4, %r5}, "
              "{%r0, %r1, %r2, %r3};",
              32, ptx::FaultKind::Uninitialized, "has not been written");
}
