//===- FloatTest.cpp - float arithmetic in the PTX interpreter ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "ptx/Rounding.h"

#include "llvm/ADT/StringExtras.h"

#include <mpfr.h>

#include <cstring>
#include <random>
#include <set>

using namespace posenc;
using namespace posenc::test;

namespace {

std::string hex(uint64_t bits, unsigned digits) {
  std::string text = llvm::utohexstr(bits);
  return std::string(digits - text.size(), '0') + text;
}

// A floating-point format in terms of MPFR.
struct Format {
  const char *type;
  unsigned bytes, precision;
  int minExponent, maxExponent; // in the convention of MPFR
};
const Format f16{"f16", 2, 11, -23, 16};
const Format bf16{"bf16", 2, 8, -132, 128};
const Format f32{"f32", 4, 24, -148, 128};
const Format f64{"f64", 8, 53, -1073, 1024};

double decode(const Format &format, uint64_t bits) {
  if (&format == &f16)
    return ptx::toDouble(ptx::Half{uint16_t(bits)});
  if (&format == &bf16)
    return ptx::toDouble(ptx::BFloat{uint16_t(bits)});
  if (&format == &f32)
    return ptx::bitCast<float>(uint32_t(bits));
  return ptx::bitCast<double>(bits);
}

// Computes an operation with MPFR. A double represents the result exactly.
double compute(const Format &format, const std::string &op, mpfr_rnd_t rounding,
               const double (&in)[3]) {
  mpfr_set_emin(format.minExponent);
  mpfr_set_emax(format.maxExponent);
  mpfr_t a, b, c, result;
  for (mpfr_t *value : {&a, &b, &c, &result})
    mpfr_init2(*value, format.precision);
  mpfr_set_d(a, in[0], MPFR_RNDN);
  mpfr_set_d(b, in[1], MPFR_RNDN);
  mpfr_set_d(c, in[2], MPFR_RNDN);
  int ternary = op == "add"    ? mpfr_add(result, a, b, rounding)
                : op == "sub"  ? mpfr_sub(result, a, b, rounding)
                : op == "mul"  ? mpfr_mul(result, a, b, rounding)
                : op == "div"  ? mpfr_div(result, a, b, rounding)
                : op == "sqrt" ? mpfr_sqrt(result, a, rounding)
                : op == "rcp"  ? mpfr_ui_div(result, 1, a, rounding)
                               : mpfr_fma(result, a, b, c, rounding);
  ternary = mpfr_check_range(result, ternary, rounding);
  mpfr_subnormalize(result, ternary, rounding);
  mpfr_set_emin(mpfr_get_emin_min());
  mpfr_set_emax(mpfr_get_emax_max());
  double value = mpfr_get_d(result, MPFR_RNDN);
  for (mpfr_t *each : {&a, &b, &c, &result})
    mpfr_clear(*each);
  return value;
}

// Compares an operation with MPFR for 512 operand triples, one per thread.
void checkOperation(const Format &format, const std::string &op,
                    const std::string &rounding, mpfr_rnd_t mode) {
  const char prefix = format.bytes == 2 ? 'h' : format.bytes == 4 ? 'r' : 'd';
  const std::string bits = std::to_string(8 * format.bytes);
  std::string load, names;
  unsigned operands = op == "fma" ? 3 : op == "sqrt" || op == "rcp" ? 1 : 2;
  for (unsigned i = 0; i < 3; ++i)
    load += "ld.global.b" + bits + " %" + prefix + std::to_string(i) +
            ", [%d2+" + std::to_string(8 * i) + "];\n";
  for (unsigned i = 0; i < operands; ++i)
    names += std::string(", %") + prefix + std::to_string(i);
  Kernel kernel(makeModule(
      ".param .u64 in, .param .u64 out",
      "ld.param.b64 %d10, [in]; ld.param.b64 %d11, [out];\n"
      "mov.u32 %r20, %tid.x; mul.wide.u32 %d12, %r20, 32;\n"
      "add.s64 %d10, %d10, %d12; add.s64 %d11, %d11, %d12;\n"
      "mov.b64 %d2, %d10;\n" +
          load + op + rounding + "." + format.type + " %" + prefix + "5" +
          names + ";\nst.global.b" + bits + " [%d11], %" + prefix + "5;"));
  std::mt19937_64 random(1);
  unsigned count = 512;
  std::vector<uint64_t> in(4 * count), out(4 * count);
  for (unsigned i = 0; i < count; ++i) {
    for (unsigned j = 0; j < 3; ++j) {
      uint64_t value = random();
      // A quarter each: unrelated, close to each other (for cancellation),
      // subnormal, and with few significant bits.
      if (i % 4 == 1 && j)
        value =
            in[4 * i] ^ (value & 7) ^ (value << 63 >> (64 - 8 * format.bytes));
      if (i % 4 == 2)
        value &= (uint64_t(1) << (format.precision - 1)) - 1;
      if (i % 4 == 3)
        value &= ~uint64_t(0) << (format.precision / 2);
      in[4 * i + j] = format.bytes == 8
                          ? value
                          : value & ((uint64_t(1) << (8 * format.bytes)) - 1);
    }
  }
  kernel.shape.block = {count, 1, 1};
  kernel.run({kernel.memory.add(in, ptx::Access::ReadOnly, "in"),
              kernel.memory.add(out, ptx::Access::ReadWrite, "out")});
  for (unsigned i = 0; i < count; ++i) {
    double values[3];
    for (unsigned j = 0; j < 3; ++j)
      values[j] = decode(format, in[4 * i + j]);
    double expected = compute(format, op, mode, values);
    double found = decode(format, out[4 * i]);
    if (expected != expected) {
      EXPECT_NE(found, found);
      continue;
    }
    EXPECT_EQ(ptx::bitCast<uint64_t>(found), ptx::bitCast<uint64_t>(expected))
        << op << rounding << "." << format.type << " of 0x"
        << hex(in[4 * i], 16) << " 0x" << hex(in[4 * i + 1], 16) << " 0x"
        << hex(in[4 * i + 2], 16) << ": " << found << ", expected " << expected;
  }
}

const std::pair<const char *, mpfr_rnd_t> roundings[] = {{".rn", MPFR_RNDN},
                                                         {".rz", MPFR_RNDZ},
                                                         {".rm", MPFR_RNDD},
                                                         {".rp", MPFR_RNDU}};

} // namespace

TEST(PtxFloat, RoundingModesOfF32AndF64) {
  for (const Format *format : {&f32, &f64})
    for (const char *op : {"add", "sub", "mul", "fma", "div", "sqrt", "rcp"})
      for (auto [name, mode] : roundings)
        checkOperation(*format, op, name, mode);
}

TEST(PtxFloat, HalfPrecisionIsRoundedOnce) {
  for (const Format *format : {&f16, &bf16})
    for (const char *op : {"add", "sub", "mul", "fma"})
      checkOperation(*format, op, ".rn", MPFR_RNDN);
}

TEST(PtxFloat, PackedHalfPrecision) {
  // 1.5 + 1.5 in the upper half, 2 + 0.5 in the lower half.
  EXPECT_EQ(evaluate("mov.b32 %r0, 0x3e004000; mov.b32 %r1, 0x3e003800;"
                     "add.rn.f16x2 %r2, %r0, %r1;",
                     "%r2"),
            0x42004100u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 0x3fc04000; mov.b32 %r1, 0x3fc03f00;"
                     "mul.rn.bf16x2 %r2, %r0, %r1;",
                     "%r2"),
            0x40103f80u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 0x3fc04000; neg.bf16x2 %r2, %r0;", "%r2"),
            0xbfc0c000u);
}

TEST(PtxFloat, PackedF32) {
  // 1 and 2, times 3 and 4, plus 5 and 6.
  std::string abc = "mov.b64 %d0, 0x400000003f800000;"
                    "mov.b64 %d1, 0x4080000040400000;"
                    "mov.b64 %d2, 0x40c0000040a00000;";
  EXPECT_EQ(evaluate(abc + "fma.rn.f32x2 %d3, %d0, %d1, %d2;", "%d3"),
            0x4160000041000000u);
  EXPECT_EQ(evaluate(abc + "mul.rn.f32x2 %d3, %d0, %d1;", "%d3"),
            0x4100000040400000u);
  EXPECT_EQ(evaluate(abc + "add.rz.ftz.f32x2 %d3, %d0, %d1;", "%d3"),
            0x40c0000040800000u);
}

TEST(PtxFloat, CanonicalNaN) {
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0xffc12345; add.rn.f32 %r1, %r0, %r0;", "%r1"),
      0x7fffffffu);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0x7f800000; sub.rn.f32 %r1, %r0, %r0;", "%r1"),
      0x7fffffffu);
  EXPECT_EQ(evaluate("mov.b16 %h0, 0x7c00; sub.rn.f16 %h1, %h0, %h0;", "%h1"),
            0x7fffu);
}

TEST(PtxFloat, SubnormalsAndSaturation) {
  EXPECT_EQ(evaluate("mov.b32 %r0, 1; add.rn.f32 %r1, %r0, %r0;", "%r1"), 2u);
  EXPECT_EQ(evaluate("mov.b32 %r0, 1; add.rn.ftz.f32 %r1, %r0, %r0;", "%r1"),
            0u);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0x80000001; mul.rn.ftz.f32 %r1, %r0, %r0;", "%r1"),
      0u);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0f40000000; add.rn.sat.f32 %r1, %r0, %r0;", "%r1"),
      0x3f800000u);
  EXPECT_EQ(
      evaluate("mov.b32 %r0, 0f7FC00000; add.rn.sat.f32 %r1, %r0, %r0;", "%r1"),
      0u);
}

TEST(PtxFloat, MinMaxAndTests) {
  std::string zeros = "mov.b32 %r0, 0x80000000; mov.b32 %r1, 0;";
  EXPECT_EQ(evaluate(zeros + "min.f32 %r2, %r1, %r0;", "%r2"), 0x80000000u);
  EXPECT_EQ(evaluate(zeros + "max.f32 %r2, %r0, %r1;", "%r2"), 0u);
  std::string nan = "mov.b32 %r0, 0x7fc00000; mov.b32 %r1, 0f3F800000;";
  EXPECT_EQ(evaluate(nan + "min.f32 %r2, %r0, %r1;", "%r2"), 0x3f800000u);
  EXPECT_EQ(evaluate(nan + "min.NaN.f32 %r2, %r0, %r1;", "%r2"), 0x7fffffffu);
  EXPECT_EQ(evaluate(nan + "copysign.f32 %r2, 0f80000000, %r1;", "%r2"),
            0xbf800000u);
  EXPECT_EQ(evaluate(nan + "testp.notanumber.f32 %p0, %r0;", "%p0"), 1u);
  EXPECT_EQ(evaluate("testp.subnormal.f32 %p0, 0f00000001;", "%p0"), 1u);
}

TEST(PtxFloat, Comparisons) {
  std::string nan = "mov.b32 %r0, 0x7fc00000; mov.b32 %r1, 0f3F800000;";
  for (auto [test, expected] :
       {std::pair(".eq", 0u), std::pair(".ne", 0u), std::pair(".lt", 0u),
        std::pair(".equ", 1u), std::pair(".neu", 1u), std::pair(".geu", 1u),
        std::pair(".num", 0u), std::pair(".nan", 1u)})
    EXPECT_EQ(evaluate(nan + "setp" + test + ".f32 %p0, %r0, %r1;", "%p0"),
              expected)
        << test;
  EXPECT_EQ(evaluate("setp.lt.f32 %p0|%p1, 0f3F800000, 0f40000000;", "%p1"),
            0u);
  EXPECT_EQ(evaluate("setp.eq.s32 %p1, 1, 2;"
                     "setp.lt.or.s32 %p0, 2, 1, !%p1;",
                     "%p0"),
            1u);
  EXPECT_EQ(evaluate("set.gt.u32.f32 %r0, 0f40000000, 0f3F800000;", "%r0"),
            0xffffffffu);
  EXPECT_EQ(evaluate("set.gt.f32.s32 %r0, 2, 1;", "%r0"), 0x3f800000u);
  EXPECT_EQ(evaluate("mov.b32 %r1, -1; slct.b32.s32 %r0, 5, 6, %r1;", "%r0"),
            6u);
}

TEST(PtxFloat, RefusesContraction) {
  for (const char *text :
       {"add.f32 %r0, %r1, %r2;", "sub.ftz.f32 %r0, %r1, %r2;",
        "mul.f32 %r0, %r1, %r2;", "mul.f64 %d0, %d1, %d2;",
        "add.f32x2 %d0, %d1, %d2;", "add.bf16 %h0, %h1, %h2;",
        "mul.f16x2 %r0, %r1, %r2;"})
    EXPECT_NE(getInstructionError(text).find("may be contracted"),
              std::string::npos)
        << text;
  ptx::ParseOptions options;
  options.allowContraction = true;
  EXPECT_EQ(evaluate("mov.b32 %r0, 0f3F800000; add.f32 %r1, %r0, %r0;", "%r1",
                     options),
            0x40000000u);
}

TEST(PtxFloat, Approximations) {
  ptx::ParseOptions options;
  options.allowApproximate = true;
  auto expect = [&](const std::string &instruction, const std::string &operand,
                    uint32_t bits) {
    EXPECT_EQ(
        evaluate("mov.b32 %r0, " + operand + "; " + instruction + " %r1, %r0;",
                 "%r1", options),
        bits)
        << instruction << " " << operand;
  };
  expect("ex2.approx.f32", "0f40400000", 0x41000000);
  expect("ex2.approx.ftz.f32", "0fC1000000", 0x3b800000);
  // 2^-130, which is subnormal, and the logarithm of 2^-130.
  expect("ex2.approx.f32", "0fC3020000", 0x00080000);
  expect("ex2.approx.ftz.f32", "0fC3020000", 0);
  expect("lg2.approx.f32", "0f00080000", 0xc3020000);
  expect("lg2.approx.ftz.f32", "0f00080000", 0xff800000);
  expect("rcp.approx.ftz.f32", "0f40800000", 0x3e800000);
  expect("rcp.approx.ftz.f32", "0f00000000", 0x7f800000);
  expect("tanh.approx.f32", "0f7F800000", 0x3f800000);
  expect("rsqrt.approx.ftz.f32", "0f40800000", 0x3f000000);
  expect("ex2.approx.ftz.f32", "0fFF800000", 0);
  expect("ex2.approx.ftz.f32", "0f7FC00000", 0x7fffffff);
}

// An option perturbs ex2 by at most that many units in the last place, by a
// number that depends on the operand alone. Exact powers stay exact.
TEST(PtxFloat, PerturbedPowersOfTwo) {
  ptx::ParseOptions parsing;
  parsing.allowApproximate = true;
  Kernel kernel(
      makeModule(".param .u64 out",
                 "ld.param.b64 %d0, [out]; mov.u32 %r0, %tid.x;\n"
                 "mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1;\n"
                 "ld.global.b32 %r1, [%d1]; ex2.approx.ftz.f32 %r2, %r1;\n"
                 "st.global.b32 [%d1], %r2;\n"),
      parsing);
  kernel.shape.block = {1024, 1, 1};
  auto run = [&](uint32_t ulps) {
    std::vector<float> values(1024);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = -0.125f * float(i);
    uint64_t address = kernel.memory.add(values, ptx::Access::ReadWrite);
    kernel.options.ex2Ulps = ulps;
    kernel.run({address});
    kernel.memory.free(address);
    std::vector<int32_t> bits(values.size());
    std::memcpy(bits.data(), values.data(), 4 * values.size());
    return bits;
  };
  std::vector<int32_t> exact = run(0), once = run(2), again = run(2);
  EXPECT_EQ(once, again);
  std::set<int32_t> errors;
  for (size_t i = 0; i < exact.size(); ++i) {
    errors.insert(once[i] - exact[i]);
    if (i % 8 == 0)
      EXPECT_EQ(once[i], exact[i]) << i;
  }
  EXPECT_EQ(errors, (std::set<int32_t>{-2, -1, 0, 1, 2}));
}

TEST(PtxFloat, RefusesApproximations) {
  for (const char *text :
       {"ex2.approx.ftz.f32 %r0, %r1;", "sin.approx.f32 %r0, %r1;",
        "div.full.f32 %r0, %r1, %r2;", "rcp.approx.ftz.f32 %r0, %r1;"})
    EXPECT_NE(getInstructionError(text).find("hardware approximation"),
              std::string::npos)
        << text;
  EXPECT_NE(
      getInstructionError("fma.f32 %r0, %r1, %r2, %r3;").find("no rounding"),
      std::string::npos);
}
