//===- Exponential.cpp - exp, expm1 and hyperbolic functions ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// x = n * ln 2 + r with an integer n and |r| <= ln(2)/2, then
// exp(x) = 2^n * exp(r).
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/MathBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mlir::posenc;

static constexpr double kLog2E = 0x1.71547652b82fep+0;
static constexpr double kLn2 = 0x1.62e42fefa39efp-1;
static constexpr double kLn2Rest = 0x1.abc9e3b39803fp-56;

MathBuilder::SplitExp
MathBuilder::splitExp(Value x, Base base,
                      std::optional<std::pair<double, double>> range) {
  double scale = base == Base::Two ? 1.0 : kLog2E;
  if (range) {
    assert(range->first <= range->second && "an empty range");
    // Both comparisons are false for a NaN, which stays.
    Value min = number(range->first / scale);
    Value max = number(range->second / scale);
    x = select(compare(arith::CmpFPredicate::OLT, x, min), min, x);
    x = select(compare(arith::CmpFPredicate::OGT, x, max), max, x);
  }
  double magic = wide ? 0x1.8p52 : 0x1.8p23;
  Value shifted = fma(x, number(scale), number(magic));
  Value n = sub(shifted, number(magic));
  double ln2 = wide ? kLn2 : static_cast<float>(kLn2);
  double ln2Rest = wide ? kLn2Rest : kLn2 - ln2;
  Value rest;
  if (base == Base::Two) {
    rest = sub(x, n);
    rest = fma(rest, number(ln2), mul(rest, number(ln2Rest)));
  } else {
    rest = fma(n, number(-ln2), x);
    rest = fma(n, number(-ln2Rest), rest);
  }
  int64_t magicBits = wide ? llvm::bit_cast<int64_t>(magic)
                           : llvm::bit_cast<int32_t>(static_cast<float>(magic));
  return {rest, subi(toBits(shifted), integer(magicBits)), n};
}

Value MathBuilder::expSeries(Value rest) {
  // (exp(r) - 1 - r) / r^2, with an error of r times 2^-61.7 for f64, 2^-37.5
  // for f32 by way of f64, and 2^-26 in f32 (Cephes).
  Value tail;
  if (!wide)
    tail = series(rest, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3,
                         4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
  else if (forF32)
    tail = series(rest, {0x1.a176cea448507p-16, 0x1.a16feda2075d3p-13,
                         0x1.6c16377c2b78ap-10, 0x1.1110b1c71a6d0p-7,
                         0x1.5555557da1abap-5, 0x1.5555557384e39p-3, 0.5});
  else
    tail = series(rest, {0x1.1f9582a061918p-29, 0x1.af5ebf7d0c6d2p-26,
                         0x1.27e4c58a13434p-22, 0x1.71ddf85375c40p-19,
                         0x1.a01a01b0c3b34p-16, 0x1.a01a01afe52a1p-13,
                         0x1.6c16c16c1441bp-10, 0x1.111111110f6afp-7,
                         0x1.555555555555ap-5, 0x1.5555555555559p-3, 0.5});
  return fma(mul(rest, rest), tail, rest);
}

/// value * 2^exponent, of which the first factor may not be too large or too
/// small.
Value MathBuilder::scaleInTwoSteps(Value value, Value exponent) {
  Value half = shrs(exponent, integer(1));
  Value others = subi(exponent, half);
  return mul(mul(value, powerOf2(half)), powerOf2(others));
}

Value MathBuilder::scaleByInstruction(Value value, Value exponent) {
  auto type = dyn_cast<VectorType>(value.getType());
  int64_t lanes = wide ? 8 : 16;
  if (!hasAVX512 || !type || type.getRank() != 1 || type.isScalable() ||
      type.getNumElements() % lanes != 0)
    return nullptr;
  auto name =
      builder.getStringAttr(wide ? "llvm.x86.avx512.mask.scalef.pd.512"
                                 : "llvm.x86.avx512.mask.scalef.ps.512");
  Value all = arith::ConstantIntOp::create(builder, loc, -1, lanes);
  // 4 selects the rounding mode of the thread.
  Value rounding = arith::ConstantIntOp::create(builder, loc, 4, 32);
  Value result = value;
  for (int64_t at = 0; at < type.getNumElements(); at += lanes) {
    auto slice = [&](Value of) -> Value {
      return builder.createOrFold<vector::ExtractStridedSliceOp>(loc, of, at,
                                                                 lanes, 1);
    };
    Value part = slice(value);
    auto scaled = LLVM::CallIntrinsicOp::create(
        builder, loc, part.getType(), name,
        ValueRange{part, slice(exponent), part, all, rounding});
    result = builder.createOrFold<vector::InsertStridedSliceOp>(
        loc, scaled.getResult(0), result, at, 1);
  }
  return result;
}

Value MathBuilder::exp(Value x, Base base, int exponent) {
  // Results are 0 below the smaller exponent and infinite above the larger one.
  double min = forF32 ? -300.0 : wide ? -1078.0 : -152.0;
  double max = forF32 ? 300.0 : wide ? 1026.0 : 129.0;
  SplitExp split = splitExp(x, base, std::pair(min, max));
  Value power = add(expSeries(split.rest), number(1.0));
  Value exponents = split.rounded;
  if (exponent != 0)
    exponents = add(exponents, number(exponent));
  if (Value scaled = scaleByInstruction(power, exponents))
    return scaled;
  Value n = split.exponent;
  if (exponent != 0)
    n = addi(n, integer(exponent));
  // For f32 results, no f64 is subnormal, so one step suffices.
  return forF32 ? mul(power, powerOf2(n)) : scaleInTwoSteps(power, n);
}

Value MathBuilder::exp2(TwoFloats x) {
  Value min = number(-1078.0), max = number(1026.0);
  Value hi = select(compare(arith::CmpFPredicate::OLT, x.hi, min), min, x.hi);
  hi = select(compare(arith::CmpFPredicate::OGT, hi, max), max, hi);
  auto [bits, n] = roundToInteger(hi);
  Value rest = add(sub(hi, n), x.lo);
  rest = fma(rest, number(kLn2), mul(rest, number(kLn2Rest)));
  Value power = add(expSeries(rest), number(1.0));
  if (Value scaled = scaleByInstruction(power, n))
    return scaled;
  Value exponent = subi(bits, i64(llvm::bit_cast<int64_t>(0x1.8p52)));
  return scaleInTwoSteps(power, exponent);
}

Value MathBuilder::expm1(Value x) {
  // 2^n (exp(r) - 1) + (2^n - 1) with 2^n = s * t. Where n is 0, that is the
  // series alone, which has the relative precision that small x need.
  SplitExp split =
      splitExp(x, Base::E, std::pair(-80.0, forF32 ? 260.0 : 1025.0));
  Value series = expSeries(split.rest);
  Value half = shrs(split.exponent, integer(1));
  Value s = powerOf2(half);
  Value others = subi(split.exponent, half);
  Value sum = fma(s, series, sub(s, powerOf2(subi(integer(0), others))));
  // The series does not keep the sign of a zero.
  return copySign(mul(sum, powerOf2(others)), x);
}

Value MathBuilder::sinh(Value x) {
  Value size = abs(x);
  Value limit = number(40.0);
  Value isLarge = compare(arith::CmpFPredicate::UGT, size, limit);
  Value less = expm1(select(isLarge, limit, size));
  Value small = mul(add(less, div(less, add(less, number(1.0)))), number(0.5));
  Value large = exp(size, Base::E, /*exponent=*/-1);
  return copySign(select(isLarge, large, small), x);
}

Value MathBuilder::cosh(Value x) {
  Value half = exp(abs(x), Base::E, /*exponent=*/-1);
  return add(half, div(number(0.25), half));
}

Value MathBuilder::tanh(Value x) {
  Value size = abs(x);
  if (!wide) {
    // t / (t + 2) with t = exp(2|x|) - 1. The result rounds to 1 from the limit
    // on.
    Value limit = number(9.02);
    Value isBeyond = compare(arith::CmpFPredicate::OGT, size, limit);
    Value a = select(isBeyond, limit, size);
    SplitExp split = splitExp(add(a, a), Base::E, std::nullopt);
    Value power = powerOf2(split.exponent);
    Value less = fma(power, expSeries(split.rest), sub(power, number(1.0)));
    return copySign(div(less, add(less, number(2.0))), x);
  }
  // Next to zero, a quotient of polynomials from Moshier's Cephes library.
  Value z = mul(x, x);
  Value p = series(z, {-9.64399179425052238628e-1, -9.92877231001918586564e1,
                       -1.61468768441708447952e3});
  Value q = series(z, {1.0, 1.12811678491632931402e2, 2.23548839060100448583e3,
                       4.84406305325125486048e3});
  Value nearZero = fma(mul(x, z), div(p, q), x);
  Value power = exp(add(size, size));
  Value far = sub(number(1.0), div(number(2.0), add(power, number(1.0))));
  Value isNear = compare(arith::CmpFPredicate::OLT, size, number(0.625));
  return copySign(select(isNear, nearZero, far), x);
}
