//===- IntegerTest.cpp - integer arithmetic in the PTX interpreter --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

using namespace posenc::test;

TEST(PtxInteger, AdditionAndSubtraction) {
  EXPECT_EQ(evaluate("mov.b32 %r0, 0x7fffffff; add.s32 %r1, %r0, 1;", "%r1"),
            0x80000000u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 0; sub.u32 %r1, %r0, 1;", "%r1"),
            0xffffffffu);
  EXPECT_EQ(evaluate("mov.b64 %d0, -1; add.s64 %d1, %d0, 3;", "%d1"), 2u);
  EXPECT_EQ(evaluate("mov.b16 %h0, -1; add.s16 %h1, %h0, 3;", "%h1"), 2u);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0x7fffffff; add.sat.s32 %r1, %r0, 1;", "%r1"),
      0x7fffffffu);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0x80000000; sub.sat.s32 %r1, %r0, 1;", "%r1"),
      0x80000000u);
}

TEST(PtxInteger, Carries) {
  // 2^64 - 1 + 2 by 32-bit halves.
  const char *add = "mov.b32 %r0, -1; add.cc.u32 %r1, %r0, 2;"
                    "addc.cc.u32 %r2, %r0, 0; addc.u32 %r3, 5, 0;"
                    "mov.b64 %d0, {%r1, %r2};";
  EXPECT_EQ(evaluate(add, "%d0"), 1u);
  EXPECT_EQ(evaluate(add, "%r3"), 6u);
  // 1 - 2 borrows from both halves.
  const char *sub = "mov.b32 %r0, 1; sub.cc.u32 %r1, %r0, 2;"
                    "subc.u32 %r2, 0, 0; mov.b64 %d0, {%r1, %r2};";
  EXPECT_EQ(evaluate(sub, "%d0"), ~uint64_t(0));
  EXPECT_EQ(evaluate("mov.b64 %d0, -1; add.cc.u64 %d1, %d0, 1;"
                     "addc.u64 %d2, 7, 0;",
                     "%d2"),
            8u);
  EXPECT_EQ(evaluate("mov.b32 %r0, -1; mad.lo.cc.u32 %r1, %r0, 1, 1;"
                     "madc.hi.u32 %r2, %r0, %r0, 0;",
                     "%r2"),
            0xffffffffu);
}

TEST(PtxInteger, UninitializedCarry) {
  Kernel kernel(makeModule("", "addc.u32 %r0, 1, 1;"));
  kernel.expectFault(posenc::ptx::FaultKind::Uninitialized, {},
                     {"carry", "thread (0, 0, 0)"});
}

TEST(PtxInteger, Multiplication) {
  EXPECT_EQ(evaluate("mov.b32 %r0, -3; mul.lo.s32 %r1, %r0, 5;", "%r1"),
            uint32_t(-15));
  EXPECT_EQ(evaluate("mov.b32 %r0, -1; mul.hi.u32 %r1, %r0, %r0;", "%r1"),
            0xfffffffeu);
  EXPECT_EQ(evaluate("mov.b32 %r0, -1; mul.hi.s32 %r1, %r0, 7;", "%r1"),
            0xffffffffu);
  EXPECT_EQ(evaluate("mov.b64 %d0, -1; mul.hi.u64 %d1, %d0, %d0;", "%d1"),
            0xfffffffffffffffeu);
  EXPECT_EQ(evaluate("mov.b32 %r0, -2; mul.wide.s32 %d1, %r0, 3;", "%d1"),
            uint64_t(-6));
  EXPECT_EQ(evaluate("mov.b32 %r0, -2; mul.wide.u32 %d1, %r0, 3;", "%d1"),
            0x2fffffffau);
  EXPECT_EQ(evaluate("mov.b16 %h0, -2; mul.wide.s16 %r1, %h0, 3;", "%r1"),
            uint32_t(-6));
  EXPECT_EQ(evaluate("mov.b32 %r0, -2; mad.wide.s32 %d1, %r0, 3, 10;", "%d1"),
            4u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 6; mad.lo.s32 %r1, %r0, 7, -2;", "%r1"),
            40u);
  EXPECT_EQ(evaluate("mov.b64 %d0, 1; mad.hi.u64 %d1, %d0, -1, 9;", "%d1"), 9u);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0x1ffffff; mul24.lo.u32 %r1, %r0, 2;", "%r1"),
      0x1fffffeu);
}

TEST(PtxInteger, Division) {
  EXPECT_EQ(evaluate("mov.b32 %r0, -7; div.s32 %r1, %r0, 2;", "%r1"),
            uint32_t(-3));
  EXPECT_EQ(evaluate("mov.b32 %r0, -7; rem.s32 %r1, %r0, 2;", "%r1"),
            uint32_t(-1));
  EXPECT_EQ(evaluate("mov.b32 %r0, -7; div.u32 %r1, %r0, 2;", "%r1"),
            0x7ffffffcu);
  EXPECT_EQ(evaluate("mov.b64 %d0, 1; shl.b64 %d0, %d0, 63;"
                     "div.s64 %d1, %d0, -1;",
                     "%d1"),
            uint64_t(1) << 63);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 9; mov.b32 %r2, 0; div.u32 %r1, %r0, %r2;", "%r1"),
      0xffffffffu);
}

TEST(PtxInteger, MinMaxAndAbs) {
  EXPECT_EQ(evaluate("mov.b32 %r0, -1; min.s32 %r1, %r0, 1;", "%r1"),
            0xffffffffu);
  EXPECT_EQ(evaluate("mov.b32 %r0, -1; min.u32 %r1, %r0, 1;", "%r1"), 1u);
  EXPECT_EQ(evaluate("mov.b32 %r0, -1; min.relu.s32 %r1, %r0, 1;", "%r1"), 0u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 3; min.relu.s32 %r1, %r0, 2;", "%r1"), 2u);
  EXPECT_EQ(evaluate("mov.b32 %r0, -1; max.relu.s32 %r1, %r0, -2;", "%r1"), 0u);
  EXPECT_EQ(evaluate("mov.b64 %d0, -1; max.s64 %d1, %d0, 1;", "%d1"), 1u);
  EXPECT_EQ(evaluate("mov.b32 %r0, -5; abs.s32 %r1, %r0;", "%r1"), 5u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 5; neg.s32 %r1, %r0;", "%r1"), uint32_t(-5));
  EXPECT_EQ(evaluate("mov.b32 %r0, 5; sad.u32 %r1, %r0, 9, 1;", "%r1"), 5u);
}

TEST(PtxInteger, Errors) {
  EXPECT_NE(getInstructionError("mul.s32 %r0, 1, 1;").find(".lo, .hi"),
            std::string::npos);
  EXPECT_NE(getInstructionError("add.foo.s32 %r0, 1, 1;").find("'.foo'"),
            std::string::npos);
  EXPECT_NE(
      getInstructionError("add.u16x2 %r0, 1, 1;").find("a supported type"),
      std::string::npos);
  EXPECT_NE(getInstructionError("add.s32 %r0, %d1, 1;").find("8 bytes"),
            std::string::npos);
  EXPECT_NE(getInstructionError("add.s32 %r0, %r1;").find("operands"),
            std::string::npos);
  EXPECT_NE(
      getInstructionError("add.s32 %r0, %r1, 0x100000000;").find("not fit"),
      std::string::npos);
}
