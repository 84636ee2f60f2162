//===- BitsTest.cpp - logic, shifts and bit fields in the PTX interpreter -===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

using namespace posenc::test;

TEST(PtxBits, Logic) {
  EXPECT_EQ(evaluate("mov.b32 %r0, 0xf0; and.b32 %r1, %r0, 0x3c;", "%r1"),
            0x30u);
  EXPECT_EQ(evaluate("mov.b64 %d0, 0xf0; or.b64 %d1, %d0, 0x0f;", "%d1"),
            0xffu);
  EXPECT_EQ(evaluate("mov.b16 %h0, 0xf0; xor.b16 %h1, %h0, -1;", "%h1"),
            0xff0fu);
  EXPECT_EQ(evaluate("mov.b32 %r0, 0xf0; not.b32 %r1, %r0;", "%r1"),
            0xffffff0fu);
  EXPECT_EQ(evaluate("mov.b32 %r0, 7; cnot.b32 %r1, %r0;", "%r1"), 0u);
  EXPECT_EQ(evaluate("setp.eq.s32 %p0, 1, 1; setp.eq.s32 %p1, 1, 2;"
                     "and.pred %p2, %p0, %p1;",
                     "%p2"),
            0u);
  EXPECT_EQ(evaluate("setp.eq.s32 %p0, 1, 1; not.pred %p1, %p0;"
                     "xor.pred %p2, %p0, %p1;",
                     "%p2"),
            1u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 0xff00; mov.b32 %r1, 0xf0f0;"
                     "lop3.b32 %r2, %r0, %r1, 0xcccc, 0x96;",
                     "%r2"),
            0xff00u ^ 0xf0f0u ^ 0xccccu);
}

TEST(PtxBits, ShiftsAreClamped) {
  EXPECT_EQ(evaluate("mov.b32 %r0, 1; shl.b32 %r1, %r0, 31;", "%r1"),
            0x80000000u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 1; shl.b32 %r1, %r0, 32;", "%r1"), 0u);
  EXPECT_EQ(evaluate("mov.b32 %r0, -1; shr.u32 %r1, %r0, 33;", "%r1"), 0u);
  EXPECT_EQ(evaluate("mov.b32 %r0, -8; shr.s32 %r1, %r0, 99;", "%r1"),
            0xffffffffu);
  EXPECT_EQ(evaluate("mov.b64 %d0, -8; shr.s64 %d1, %d0, 1;", "%d1"),
            uint64_t(-4));
  EXPECT_EQ(evaluate("mov.b16 %h0, -8; shr.u16 %h1, %h0, 1;", "%h1"), 0x7ffcu);
}

TEST(PtxBits, FunnelShifts) {
  std::string ab = "mov.b32 %r0, 0x89abcdef; mov.b32 %r1, 0x01234567;";
  EXPECT_EQ(evaluate(ab + "shf.l.wrap.b32 %r2, %r0, %r1, 36;", "%r2"),
            0x12345678u);
  EXPECT_EQ(evaluate(ab + "shf.l.clamp.b32 %r2, %r0, %r1, 36;", "%r2"),
            0x89abcdefu);
  EXPECT_EQ(evaluate(ab + "shf.r.wrap.b32 %r2, %r0, %r1, 8;", "%r2"),
            0x6789abcdu);
  EXPECT_EQ(evaluate(ab + "shf.r.clamp.b32 %r2, %r0, %r1, 77;", "%r2"),
            0x01234567u);
}

TEST(PtxBits, BitFields) {
  std::string a = "mov.b32 %r0, 0x89abcdef;";
  EXPECT_EQ(evaluate(a + "bfe.u32 %r1, %r0, 8, 8;", "%r1"), 0xcdu);
  EXPECT_EQ(evaluate(a + "bfe.s32 %r1, %r0, 8, 8;", "%r1"), 0xffffffcdu);
  EXPECT_EQ(evaluate(a + "bfe.s32 %r1, %r0, 28, 8;", "%r1"), 0xfffffff8u);
  EXPECT_EQ(evaluate(a + "bfe.u32 %r1, %r0, 40, 8;", "%r1"), 0u);
  EXPECT_EQ(evaluate(a + "bfe.s32 %r1, %r0, 40, 8;", "%r1"), 0xffffffffu);
  EXPECT_EQ(evaluate(a + "bfe.u32 %r1, %r0, 4, 0;", "%r1"), 0u);
  EXPECT_EQ(evaluate("mov.b64 %d0, 0x89abcdef01234567;"
                     "bfe.u64 %d1, %d0, 60, 64;",
                     "%d1"),
            8u);
  EXPECT_EQ(evaluate(a + "bfi.b32 %r1, 0xff, %r0, 8, 4;", "%r1"), 0x89abcfefu);
  EXPECT_EQ(evaluate(a + "bfi.b32 %r1, 0, %r0, 0, 32;", "%r1"), 0u);
  EXPECT_EQ(evaluate(a + "bfi.b32 %r1, 0xff, %r0, 32, 4;", "%r1"), 0x89abcdefu);
  EXPECT_EQ(evaluate("bmsk.clamp.b32 %r1, 4, 8;", "%r1"), 0xff0u);
}

TEST(PtxBits, BytePermutes) {
  std::string ab = "mov.b32 %r0, 0x83828180; mov.b32 %r1, 0x07060504;";
  EXPECT_EQ(evaluate(ab + "prmt.b32 %r2, %r0, %r1, 0x7450;", "%r2"),
            0x07040580u);
  // Bit 3 of a selector replicates the sign of the byte.
  EXPECT_EQ(evaluate(ab + "prmt.b32 %r2, %r0, %r1, 0xc84b;", "%r2"),
            0x00ff04ffu);
  EXPECT_EQ(evaluate(ab + "prmt.b32.f4e %r2, %r0, %r1, 1;", "%r2"),
            0x04838281u);
  EXPECT_EQ(evaluate(ab + "prmt.b32.rc16 %r2, %r0, %r1, 1;", "%r2"),
            0x83828382u);
}

TEST(PtxBits, BitCounts) {
  EXPECT_EQ(evaluate("mov.b32 %r0, 0xf0f; popc.b32 %r1, %r0;", "%r1"), 8u);
  EXPECT_EQ(evaluate("mov.b64 %d0, -1; popc.b64 %r1, %d0;", "%r1"), 64u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 1; clz.b32 %r1, %r0;", "%r1"), 31u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 0; clz.b32 %r1, %r0;", "%r1"), 32u);
  EXPECT_EQ(evaluate("mov.b64 %d0, 1; clz.b64 %r1, %d0;", "%r1"), 63u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 1; brev.b32 %r1, %r0;", "%r1"), 0x80000000u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 0x100; bfind.u32 %r1, %r0;", "%r1"), 8u);
  EXPECT_EQ(evaluate("mov.b32 %r0, -2; bfind.s32 %r1, %r0;", "%r1"), 0u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 0; bfind.u32 %r1, %r0;", "%r1"), ~0u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 0x100; bfind.shiftamt.u32 %r1, %r0;", "%r1"),
            23u);
}
