//===- MathBuilder.h - math functions as arithmetic -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel library has no libm and a GPU kernel no libdevice, so every function
// of the math dialect is expanded into sums, products, fused multiply-adds,
// quotients, square roots, comparisons and integer operations. All of these are
// exactly rounded on x86-64, aarch64 and NVPTX, hence a function has the same
// bits on all of them, in scalar and in vector code.
//
// The expansions have no branches and no tables, so LLVM vectorizes the loops
// that contain them. They convert between floats and integers by adding a large
// number and reading the bits, because AVX2 has no conversion between vectors
// of f64 and of i64.
//
// Most functions of f32 are computed in f64 with shorter polynomials and
// rounded once. The coefficients are minimax polynomials found by Remez'
// algorithm unless a comment names another source.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_MATHBUILDER_H
#define POSENC_NUMERICS_MATHBUILDER_H

#include "posenc/Numerics/ElementwiseBuilder.h"

#include <optional>
#include <utility>

namespace mlir::posenc {

/// The unevaluated sum of two numbers, of which `lo` is below half a unit in
/// the last place of `hi`.
struct TwoFloats {
  Value hi, lo;
};

/// Arithmetic in f32 or f64, whichever `like` has, and the functions made of
/// it. Accuracies are in units in the last place of the result.
class MathBuilder : public ElementwiseBuilder {
public:
  /// With `forF32`, operands are f64 with values that f32 can represent, and
  /// results are just accurate enough to be rounded to f32. `hasAVX512` allows
  /// AVX-512 instructions; results have the same bits without them.
  MathBuilder(OpBuilder &builder, Location loc, Value like, bool hasAVX512,
              bool forF32 = false);

  Value number(double value) { return wide ? f64(value) : f32(value); }
  Value infinity();
  Value nan();
  Value integer(int64_t value) {
    return wide ? i64(value) : i32(static_cast<uint32_t>(value));
  }
  Value toBits(Value value);
  Value fromBits(Value bits);
  Value abs(Value a) { return math::AbsFOp::create(builder, loc, a); }
  Value sqrt(Value a) { return math::SqrtOp::create(builder, loc, a); }
  Value floor(Value a) { return math::FloorOp::create(builder, loc, a); }
  Value copySign(Value magnitude, Value sign) {
    return math::CopySignOp::create(builder, loc, magnitude, sign);
  }
  /// Flips the sign of `a` if the highest bit of the integer `sign` is set.
  Value xorSign(Value a, Value sign);
  /// Emits a polynomial in `x`; coefficients start with the highest power.
  Value series(Value x, ArrayRef<double> coefficients);
  /// Returns the bits of `value + magic`, whose low bits are `value` rounded to
  /// the nearest integer, and that integer as a float.
  std::pair<Value, Value> roundToInteger(Value value);
  /// Converts an integer of fewer than 52 bits exactly.
  Value toFloat(Value integer);
  /// Returns 2^n for an integer n in the exponent range of normal numbers.
  Value powerOf2(Value n);

  /// Returns a + b exactly, if |a| >= |b| or a is 0.
  TwoFloats fastTwoSum(Value a, Value b);
  /// Returns a + b exactly (Knuth).
  TwoFloats twoSum(Value a, Value b);
  /// Returns a * b exactly.
  TwoFloats twoProduct(Value a, Value b);
  /// Returns a * b with a relative error of 2^-100.
  TwoFloats product(TwoFloats a, TwoFloats b);

  // Trigonometric.cpp; f64 only. Arguments of any size are reduced exactly.
  Value sin(Value x);
  Value cos(Value x);
  Value tan(Value x);

  // Exponential.cpp; f64 only, except exp and tanh.
  enum class Base { E, Two };
  /// exp(x) * 2^exponent, or 2^x * 2^exponent.
  Value exp(Value x, Base base = Base::E, int exponent = 0);
  Value tanh(Value x);
  Value expm1(Value x);
  Value sinh(Value x);
  Value cosh(Value x);
  /// 2^(hi + lo).
  Value exp2(TwoFloats x);

  // Logarithm.cpp; f64 only.
  enum class LogBase { E, Two, Ten };
  Value log(Value x, LogBase base);
  Value log1p(Value x);
  Value asinh(Value x);
  Value acosh(Value x);
  Value atanh(Value x);

  // Inverse.cpp; f64 only.
  Value atan(Value x);
  Value atan2(Value y, Value x);
  Value asin(Value x);
  Value acos(Value x);

  // ErrorFunction.cpp; f64 only.
  Value erf(Value x);
  Value erfc(Value x);

  // Power.cpp; f64 only, except powConstant with 0 <= n <= 4.
  Value cbrt(Value x);
  Value pow(Value x, Value y);
  /// x^n for an integer n of any width.
  Value powInteger(Value x, Value n);
  /// x^n by multiplication, for small |n|.
  Value powConstant(Value x, int64_t n);

  const bool wide;
  const bool forF32;
  const bool hasAVX512;

private:
  // Exponential.cpp
  struct SplitExp {
    Value rest;     // x - n * ln 2
    Value exponent; // n, an integer
    Value rounded;  // n as a float
  };
  /// Splits x into n * ln 2 + rest (or n + rest for base 2). If `range` is
  /// given, x is first clamped to these exponents of two.
  SplitExp splitExp(Value x, Base base,
                    std::optional<std::pair<double, double>> range);
  /// exp(r) - 1 for |r| <= ln(2)/2.
  Value expSeries(Value rest);
  Value scaleInTwoSteps(Value value, Value exponent);
  /// Returns value * 2^exponent by an instruction, or null if the target has
  /// none for the type. The exponent is a float with an integer value.
  Value scaleByInstruction(Value value, Value exponent);

  // Logarithm.cpp
  struct SplitLog {
    Value exponent; // e, a float
    Value mantissa; // m, with x = 2^e * (1 + m), 1/sqrt(2) <= 1+m < sqrt(2)
  };
  SplitLog splitLog(Value x);
  /// Returns the logarithm of positive finite numbers. `more` is added to the
  /// natural logarithm, and may be null.
  Value finiteLog(Value x, LogBase base, Value more);
  Value logSpecialCases(Value x, Value atZero, Value result);

  // Power.cpp
  /// Returns log2(x) of positive finite numbers with a relative error of 2^-64.
  TwoFloats preciseLog2(Value x);
  Value powSpecialCases(Value x, Value y, Value power, Value isOdd,
                        Value isFraction);
  Value powMagnitude(Value x, Value y);
};

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_MATHBUILDER_H
