//===- ScalarFunctions.cpp - arith and math operations on scalars ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarFunctions.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>

using namespace mlir::posenc;
using llvm::StringRef;

template <typename Function>
static Function find(const llvm::StringMap<Function> &functions,
                     StringRef name) {
  auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

/// IEEE 754-2019 maximum: NaN if an operand is NaN, and -0 is less than 0.
static double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  if (a == b)
    return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

static double minimum(double a, double b) { return -maximum(-a, -b); }

RealFunction mlir::posenc::findRealFunction(StringRef name) {
  using In = const double *;
  static const llvm::StringMap<RealFunction> functions = {
      {"arith.addf", [](In x) { return x[0] + x[1]; }},
      {"arith.subf", [](In x) { return x[0] - x[1]; }},
      {"arith.mulf", [](In x) { return x[0] * x[1]; }},
      {"arith.divf", [](In x) { return x[0] / x[1]; }},
      {"arith.remf", [](In x) { return std::fmod(x[0], x[1]); }},
      {"arith.negf", [](In x) { return -x[0]; }},
      {"arith.maximumf", [](In x) { return maximum(x[0], x[1]); }},
      {"arith.minimumf", [](In x) { return minimum(x[0], x[1]); }},
      {"arith.maxnumf", [](In x) { return std::fmax(x[0], x[1]); }},
      {"arith.minnumf", [](In x) { return std::fmin(x[0], x[1]); }},
      {"arith.truncf", [](In x) { return x[0]; }},
      {"arith.extf", [](In x) { return x[0]; }},
      {"math.absf", [](In x) { return std::fabs(x[0]); }},
      {"math.acos", [](In x) { return std::acos(x[0]); }},
      {"math.acosh", [](In x) { return std::acosh(x[0]); }},
      {"math.asin", [](In x) { return std::asin(x[0]); }},
      {"math.asinh", [](In x) { return std::asinh(x[0]); }},
      {"math.atan", [](In x) { return std::atan(x[0]); }},
      {"math.atan2", [](In x) { return std::atan2(x[0], x[1]); }},
      {"math.atanh", [](In x) { return std::atanh(x[0]); }},
      {"math.cbrt", [](In x) { return std::cbrt(x[0]); }},
      {"math.ceil", [](In x) { return std::ceil(x[0]); }},
      {"math.clampf", [](In x) { return minimum(maximum(x[0], x[1]), x[2]); }},
      {"math.copysign", [](In x) { return std::copysign(x[0], x[1]); }},
      {"math.cos", [](In x) { return std::cos(x[0]); }},
      {"math.cosh", [](In x) { return std::cosh(x[0]); }},
      {"math.erf", [](In x) { return std::erf(x[0]); }},
      {"math.erfc", [](In x) { return std::erfc(x[0]); }},
      {"math.exp", [](In x) { return std::exp(x[0]); }},
      {"math.exp2", [](In x) { return std::exp2(x[0]); }},
      {"math.expm1", [](In x) { return std::expm1(x[0]); }},
      {"math.floor", [](In x) { return std::floor(x[0]); }},
      {"math.fma", [](In x) { return std::fma(x[0], x[1], x[2]); }},
      {"math.log", [](In x) { return std::log(x[0]); }},
      {"math.log10", [](In x) { return std::log10(x[0]); }},
      {"math.log1p", [](In x) { return std::log1p(x[0]); }},
      {"math.log2", [](In x) { return std::log2(x[0]); }},
      {"math.powf", [](In x) { return std::pow(x[0], x[1]); }},
      {"math.round", [](In x) { return std::round(x[0]); }},
      {"math.roundeven", [](In x) { return std::nearbyint(x[0]); }},
      {"math.rsqrt", [](In x) { return 1 / std::sqrt(x[0]); }},
      {"math.sin", [](In x) { return std::sin(x[0]); }},
      {"math.sinh", [](In x) { return std::sinh(x[0]); }},
      {"math.sqrt", [](In x) { return std::sqrt(x[0]); }},
      {"math.tan", [](In x) { return std::tan(x[0]); }},
      {"math.tanh", [](In x) { return std::tanh(x[0]); }},
      {"math.trunc", [](In x) { return std::trunc(x[0]); }},
  };
  return find(functions, name);
}

ClassFunction mlir::posenc::findClassFunction(StringRef name) {
  static const llvm::StringMap<ClassFunction> functions = {
      {"math.isfinite", [](double x) { return bool(std::isfinite(x)); }},
      {"math.isinf", [](double x) { return bool(std::isinf(x)); }},
      {"math.isnan", [](double x) { return bool(std::isnan(x)); }},
  };
  return find(functions, name);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

namespace {
using Result = std::optional<int64_t>;

enum class QuotientRounding { ToZero, Down, Up };

/// Whether a signed quotient is defined: no division by zero, and no overflow
/// of the smallest number divided by -1.
bool hasQuotient(int64_t a, int64_t b, unsigned width) {
  return b != 0 && !(b == -1 && a == llvm::minIntN(width));
}

template <QuotientRounding rounding>
Result divide(const int64_t *x, unsigned width) {
  if (!hasQuotient(x[0], x[1], width))
    return std::nullopt;
  int64_t quotient = x[0] / x[1];
  bool isInexact = x[0] % x[1] != 0, isNegative = (x[0] < 0) != (x[1] < 0);
  if (rounding == QuotientRounding::Down && isInexact && isNegative)
    --quotient;
  if (rounding == QuotientRounding::Up && isInexact && !isNegative)
    ++quotient;
  return quotient;
}

template <bool isShiftLeft, bool isSigned>
Result shift(const int64_t *x, unsigned width) {
  uint64_t count = zeroExtend(x[1], width);
  // The result is poison, so any number is allowed.
  if (count >= width)
    return 0;
  if (isShiftLeft)
    return int64_t(uint64_t(x[0]) << count);
  return isSigned ? x[0] >> count : int64_t(zeroExtend(x[0], width) >> count);
}

/// Applies an operation to the operands as unsigned numbers.
template <typename Compute>
Result computeUnsigned(const int64_t *x, unsigned width, Compute compute) {
  return int64_t(compute(zeroExtend(x[0], width), zeroExtend(x[1], width)));
}
} // namespace

IntegerFunction mlir::posenc::findIntegerFunction(StringRef name) {
  using In = const int64_t *;
  using U = uint64_t;
  static const llvm::StringMap<IntegerFunction> functions = {
      {"arith.addi",
       [](In x, unsigned) -> Result { return U(x[0]) + U(x[1]); }},
      {"arith.subi",
       [](In x, unsigned) -> Result { return U(x[0]) - U(x[1]); }},
      {"arith.muli",
       [](In x, unsigned) -> Result { return U(x[0]) * U(x[1]); }},
      {"arith.andi", [](In x, unsigned) -> Result { return x[0] & x[1]; }},
      {"arith.ori", [](In x, unsigned) -> Result { return x[0] | x[1]; }},
      {"arith.xori", [](In x, unsigned) -> Result { return x[0] ^ x[1]; }},
      {"arith.maxsi",
       [](In x, unsigned) -> Result { return std::max(x[0], x[1]); }},
      {"arith.minsi",
       [](In x, unsigned) -> Result { return std::min(x[0], x[1]); }},
      {"arith.maxui",
       [](In x, unsigned w) {
         return computeUnsigned(x, w, [](U a, U b) { return std::max(a, b); });
       }},
      {"arith.minui",
       [](In x, unsigned w) {
         return computeUnsigned(x, w, [](U a, U b) { return std::min(a, b); });
       }},
      {"arith.divsi", divide<QuotientRounding::ToZero>},
      {"arith.floordivsi", divide<QuotientRounding::Down>},
      {"arith.ceildivsi", divide<QuotientRounding::Up>},
      {"arith.divui",
       [](In x, unsigned w) -> Result {
         if (x[1] == 0)
           return std::nullopt;
         return computeUnsigned(x, w, [](U a, U b) { return a / b; });
       }},
      {"arith.ceildivui",
       [](In x, unsigned w) -> Result {
         if (x[1] == 0)
           return std::nullopt;
         return computeUnsigned(x, w,
                                [](U a, U b) { return a / b + (a % b != 0); });
       }},
      {"arith.remsi",
       [](In x, unsigned w) -> Result {
         if (!hasQuotient(x[0], x[1], w))
           return std::nullopt;
         return x[0] % x[1];
       }},
      {"arith.remui",
       [](In x, unsigned w) -> Result {
         if (x[1] == 0)
           return std::nullopt;
         return computeUnsigned(x, w, [](U a, U b) { return a % b; });
       }},
      {"arith.shli", shift<true, false>},
      {"arith.shrsi", shift<false, true>},
      {"arith.shrui", shift<false, false>},
      // Values are kept sign-extended; the caller truncates the result to its
      // width.
      {"arith.extsi", [](In x, unsigned) -> Result { return x[0]; }},
      {"arith.trunci", [](In x, unsigned) -> Result { return x[0]; }},
      {"arith.index_cast", [](In x, unsigned) -> Result { return x[0]; }},
      {"arith.extui",
       [](In x, unsigned w) -> Result { return zeroExtend(x[0], w); }},
      {"arith.index_castui",
       [](In x, unsigned w) -> Result { return zeroExtend(x[0], w); }},
      {"math.absi",
       [](In x, unsigned) -> Result { return x[0] < 0 ? -U(x[0]) : U(x[0]); }},
      {"math.ctlz",
       [](In x, unsigned w) -> Result {
         return llvm::countl_zero(zeroExtend(x[0], w)) - int(64 - w);
       }},
      {"math.cttz",
       [](In x, unsigned w) -> Result {
         return std::min<int64_t>(llvm::countr_zero(U(x[0])), w);
       }},
      {"math.ctpop",
       [](In x, unsigned w) -> Result {
         return llvm::popcount(zeroExtend(x[0], w));
       }},
  };
  return find(functions, name);
}
