//===- ConvertTest.cpp - conversions in the PTX interpreter ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

using namespace posenc::test;

TEST(PtxConvert, Integers) {
  EXPECT_EQ(evaluate("mov.b32 %r0, -2; cvt.s64.s32 %d0, %r0;", "%d0"),
            uint64_t(-2));
  EXPECT_EQ(evaluate("mov.b32 %r0, -2; cvt.u64.u32 %d0, %r0;", "%d0"),
            0xfffffffeu);
  EXPECT_EQ(evaluate("mov.b64 %d0, 0x123456789; cvt.u32.u64 %r0, %d0;", "%r0"),
            0x23456789u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 0x1ff; cvt.s32.s8 %r1, %r0;", "%r1"),
            0xffffffffu);
  EXPECT_EQ(evaluate("mov.b16 %h0, 0xff; cvt.u32.u8 %r1, %h0;", "%r1"), 0xffu);
  EXPECT_EQ(evaluate("mov.b32 %r0, 300; cvt.sat.u8.u32 %r1, %r0;", "%r1"),
            255u);
  EXPECT_EQ(evaluate("mov.b32 %r0, -3; cvt.sat.u32.s32 %r1, %r0;", "%r1"), 0u);
  EXPECT_EQ(evaluate("mov.b32 %r0, -300; cvt.sat.s8.s32 %r1, %r0;", "%r1"),
            uint32_t(-128));
}

TEST(PtxConvert, FloatsToIntegers) {
  std::string a = "mov.b32 %r0, 0f40200000;"; // 2.5
  EXPECT_EQ(evaluate(a + "cvt.rni.s32.f32 %r1, %r0;", "%r1"), 2u);
  EXPECT_EQ(evaluate(a + "cvt.rpi.s32.f32 %r1, %r0;", "%r1"), 3u);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0fC0200000; cvt.rmi.s32.f32 %r1, %r0;", "%r1"),
      uint32_t(-3));
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0fC0200000; cvt.rzi.u32.f32 %r1, %r0;", "%r1"),
      0u);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0f4F800000; cvt.rzi.s32.f32 %r1, %r0;", "%r1"),
      0x7fffffffu);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0fDF800000; cvt.rzi.s64.f32 %d1, %r0;", "%d1"),
      uint64_t(1) << 63);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0f7FC00000; cvt.rzi.s32.f32 %r1, %r0;", "%r1"),
      0u);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0f40200000; cvt.rni.f32.f32 %r1, %r0;", "%r1"),
      0x40000000u);
}

TEST(PtxConvert, IntegersToFloats) {
  // 2^24 + 1 and 2^24 + 3 are ties.
  EXPECT_EQ(evaluate("mov.b32 %r0, 0x1000001; cvt.rn.f32.s32 %r1, %r0;", "%r1"),
            0x4b800000u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 0x1000003; cvt.rn.f32.s32 %r1, %r0;", "%r1"),
            0x4b800002u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 0x1000001; cvt.rp.f32.u32 %r1, %r0;", "%r1"),
            0x4b800001u);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, -0x1000001; cvt.rz.f32.s32 %r1, %r0;", "%r1"),
      0xcb800000u);
  // 2^64 - 1 has more bits than f32 and f64.
  EXPECT_EQ(evaluate("mov.b64 %d0, -1; cvt.rz.f32.u64 %r1, %d0;", "%r1"),
            0x5f7fffffu);
  EXPECT_EQ(evaluate("mov.b64 %d0, -1; cvt.rn.f64.s64 %d1, %d0;", "%d1"),
            0xbff0000000000000u);
  // 2^54 + 2^30 + 1 must not be rounded to f64 first.
  EXPECT_EQ(evaluate("mov.b64 %d0, 0x40000040000001; cvt.rn.f32.s64 %r1, %d0;",
                     "%r1"),
            0x5a800001u);
}

TEST(PtxConvert, FloatsToFloats) {
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0x3f808000; cvt.rn.bf16.f32 %h0, %r0;", "%h0"),
      0x3f80u);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0x3f818000; cvt.rn.bf16.f32 %h0, %r0;", "%h0"),
      0x3f82u);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0x3f81ffff; cvt.rz.bf16.f32 %h0, %r0;", "%h0"),
      0x3f81u);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0xff812345; cvt.rn.bf16.f32 %h0, %r0;", "%h0"),
      0x7fffu);
  // Around the largest f16, and around half of the smallest subnormal f16.
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0f477FEFFF; cvt.rn.f16.f32 %h0, %r0;", "%h0"),
      0x7bffu);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0f477FF000; cvt.rn.f16.f32 %h0, %r0;", "%h0"),
      0x7c00u);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0f477FF000; cvt.rz.f16.f32 %h0, %r0;", "%h0"),
      0x7bffu);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0x33000000; cvt.rn.f16.f32 %h0, %r0;", "%h0"), 0u);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0x33000001; cvt.rn.f16.f32 %h0, %r0;", "%h0"), 1u);
  EXPECT_EQ(evaluate("mov.b16 %h0, 1; cvt.f32.f16 %r0, %h0;", "%r0"),
            0x33800000u);
  EXPECT_EQ(evaluate("mov.b16 %h0, 0xc000; cvt.f32.bf16 %r0, %h0;", "%r0"),
            0xc0000000u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 0f3FC00000; cvt.f64.f32 %d0, %r0;", "%d0"),
            0x3ff8000000000000u);
  EXPECT_EQ(evaluate("mov.b64 %d0, 0d3FF0000010000000; cvt.rn.f32.f64 %r0,"
                     "%d0;",
                     "%r0"),
            0x3f800000u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 1; cvt.ftz.f32.f32 %r1, %r0;", "%r1"), 0u);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0f40000000; cvt.sat.f32.f32 %r1, %r0;", "%r1"),
      0x3f800000u);
}

TEST(PtxConvert, Pairs) {
  std::string ab = "mov.b32 %r0, 0f3F800000; mov.b32 %r1, 0f40000000;";
  EXPECT_EQ(evaluate(ab + "cvt.rn.bf16x2.f32 %r2, %r0, %r1;", "%r2"),
            0x3f804000u);
  EXPECT_EQ(evaluate(ab + "cvt.rn.f16x2.f32 %r2, %r0, %r1;", "%r2"),
            0x3c004000u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 0fBF800000; mov.b32 %r1, 0x3f81ffff;"
                     "cvt.rz.relu.bf16x2.f32 %r2, %r0, %r1;",
                     "%r2"),
            0x3f81u);
}

TEST(PtxConvert, InexactConversionsNeedARounding) {
  EXPECT_NE(getInstructionError("cvt.f16.f32 %h0, %r0;").find("a rounding"),
            std::string::npos);
  EXPECT_NE(getInstructionError("cvt.s32.f32 %r0, %r1;").find(".rzi"),
            std::string::npos);
  EXPECT_NE(getInstructionError("cvt.rn.f64.f32 %d0, %r1;").find("exact"),
            std::string::npos);
  EXPECT_NE(getInstructionError("cvt.rn.satfinite.e4m3x2.f32 %h0, %r0, %r1;")
                .find("'cvt'"),
            std::string::npos);
}

TEST(PtxConvert, Moves) {
  EXPECT_EQ(evaluate("mov.b64 %d0, 0x1122334455667788;"
                     "mov.b64 {%r0, %r1}, %d0; mov.b32 {%h0, %h1}, %r0;"
                     "mov.b64 %d1, {%r1, %r0}; mov.b32 %r2, {%h1, %h0};",
                     "%d1"),
            0x5566778811223344u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 0x11223344; mov.b32 {%h0, %h1}, %r0;"
                     "mov.b32 %r2, {%h1, %h0};",
                     "%r2"),
            0x33441122u);
  EXPECT_EQ(evaluate("mov.b64 %d0, 0x1122334455667788;"
                     "mov.b64 {%h0, %h1, %h2, %h3}, %d0;",
                     "%h2"),
            0x3344u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 0x11223344; mov.b32 {_, %h1}, %r0;", "%h1"),
            0x1122u);
  EXPECT_EQ(evaluate("mov.pred %p0, -1; selp.b32 %r0, 3, 4, %p0;", "%r0"), 3u);
  EXPECT_EQ(evaluate("{ .reg .b128 %q; mov.b64 %d0, 7; mov.b64 %d1, 9;"
                     "mov.b128 %q, {%d0, %d1}; mov.b128 {%d2, %d3}, %q; }",
                     "%d3"),
            9u);
}
