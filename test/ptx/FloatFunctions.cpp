//===- FloatFunctions.cpp - division, roots, sign, min and max of floats --===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FloatDecode.h"

using namespace llvm;

namespace posenc::ptx {

bool checkApproximate(Decoder &decoder) {
  if (decoder.getOptions().allowApproximate)
    return true;
  return decoder.fail("the result of '" + decoder.getSyntax().opcode +
                      "' is a hardware approximation");
}

namespace {

template <Rounding rounding, typename T> T divide(T a, T b) {
  if (rounding == Rounding::Nearest)
    return a / b;
  HostRounding host(rounding);
  volatile T x = a, y = b;
  volatile T quotient = x / y;
  return quotient;
}
template <Rounding rounding, typename T> T root(T a) {
  if (rounding == Rounding::Nearest)
    return std::sqrt(a);
  HostRounding host(rounding);
  volatile T x = a;
  volatile T result = std::sqrt(x);
  return result;
}
double unifyF64(double value) {
  return value == value ? value : bitCast<double>(F64Format::nan);
}

template <Rounding rounding, bool isFlushed, bool> struct DivF32 {
  static float apply(float a, float b) {
    if (!isFlushed)
      return unifyNaN(divide<rounding>(a, b));
    return unifyNaN(flush(divide<rounding>(flush(a), flush(b))));
  }
};
template <Rounding rounding, bool isFlushed, bool> struct RcpF32 {
  static float apply(float a) {
    return DivF32<rounding, isFlushed, false>::apply(1.0f, a);
  }
};
template <Rounding rounding, bool isFlushed, bool> struct SqrtF32 {
  static float apply(float a) {
    return unifyNaN(root<rounding>(isFlushed ? flush(a) : a));
  }
};
template <Rounding rounding> struct DivF64 {
  static double apply(double a, double b) {
    return unifyF64(divide<rounding>(a, b));
  }
};
template <Rounding rounding> struct RcpF64 {
  static double apply(double a) { return unifyF64(divide<rounding>(1.0, a)); }
};
template <Rounding rounding> struct SqrtF64 {
  static double apply(double a) { return unifyF64(root<rounding>(a)); }
};

template <bool isFlushed> float negF32(float a) {
  return -(isFlushed ? flush(a) : a);
}
template <bool isFlushed> float absF32(float a) {
  return std::fabs(isFlushed ? flush(a) : a);
}
double negF64(double a) { return -a; }
double absF64(double a) { return std::fabs(a); }
float copysignF32(float a, float b) { return std::copysign(b, a); }
double copysignF64(double a, double b) { return std::copysign(b, a); }

template <typename T, bool isMax, bool isFlushed, bool hasNaN>
T minMax(T a, T b) {
  if constexpr (isFlushed) {
    a = flush(a);
    b = flush(b);
  }
  if (a != a || b != b) {
    if (hasNaN || (a != a && b != b))
      return sizeof(T) == 4 ? T(bitCast<float>(0x7fffffffu))
                            : T(bitCast<double>(F64Format::nan));
    return a != a ? b : a;
  }
  bool isLess = a < b || (a == b && std::signbit(a));
  return isLess != isMax ? a : b;
}

// The bits of these functions depend on the GPU; the interpreter uses the
// host's C library.
float ex2(float a) { return unifyNaN(std::exp2(a)); }
float lg2(float a) { return unifyNaN(std::log2(a)); }
float sine(float a) { return unifyNaN(std::sin(a)); }
float cosine(float a) { return unifyNaN(std::cos(a)); }
float tangent(float a) { return unifyNaN(std::tanh(a)); }
float rsqrt(float a) { return unifyNaN(1 / std::sqrt(a)); }
double rsqrtF64(double a) { return unifyF64(1 / std::sqrt(a)); }

template <template <Rounding, bool, bool> class F32,
          template <Rounding> class F64>
bool decodeExact(Decoder &d, unsigned sources) {
  Type type;
  if (!d.takeType(type))
    return false;
  bool isApproximate = d.has(".approx") || d.has(".full");
  if (isApproximate && !checkApproximate(d))
    return false;
  std::optional<Rounding> rounding = takeRounding(d);
  if (!isApproximate && !rounding)
    return d.fail("'" + d.getSyntax().opcode + "' has no rounding modifier");
  if (!d.expectOperands(sources + 1) || !d.uniformOperands(getBytes(type)))
    return false;
  Rounding mode = rounding.value_or(Rounding::Nearest);
  bool isFlushed = d.has(".ftz");
  if (type == Type::F32)
    return d.finish(chooseF32<F32>(mode, isFlushed, false));
  if (isFlushed && !isApproximate)
    return d.fail("'.ftz' requires .f32");
  return d.finish(type == Type::F64 ? chooseF64<F64>(mode) : nullptr);
}

template <float (*F)(float)> float flushed(float a) {
  return flush(F(flush(a)));
}

template <float (*F)(float), double (*F64)(double) = nullptr>
bool decodeApproximate(Decoder &d) {
  Type type;
  if (!checkApproximate(d) || !d.takeType(type))
    return false;
  d.has(".approx");
  bool isFlushed = d.has(".ftz");
  if (!d.expectOperands(2) || !d.uniformOperands(getBytes(type)))
    return false;
  if (type == Type::F32)
    return d.finish(isFlushed ? lanes<flushed<F>> : lanes<F>);
  if constexpr (F64 != nullptr)
    if (type == Type::F64)
      return d.finish(lanes<F64>);
  return d.finish(nullptr);
}

/// Returns a number whose distance from `value` is at most `ulps`, and depends
/// on `operand`.
float perturb(float value, float operand, uint32_t ulps) {
  auto bits = bitCast<uint32_t>(value);
  // 1 and 0 are exact on devices; others are positive.
  if (!std::isnormal(value) || std::trunc(operand) == operand)
    return value;
  uint32_t hash = bitCast<uint32_t>(operand) * 0x9e3779b1u >> 16;
  auto result = bitCast<float>(bits + hash % (2 * ulps + 1) - ulps);
  return std::isnormal(result) ? result : value;
}

template <bool isFlushed>
void runEx2(Warp &warp, const Instruction &instruction, LaneMask mask) {
  uint32_t ulps = warp.block.execution.options.ex2Ulps;
  forLanes(mask, [&](unsigned lane) {
    auto operand = warp.get<float>(instruction.operands[1], lane);
    float value = isFlushed ? flushed<ex2>(operand) : ex2(operand);
    warp.set(instruction.operands[0], lane,
             ulps ? perturb(value, operand, ulps) : value);
  });
}

bool decodeEx2(Decoder &d) {
  Type type;
  if (!checkApproximate(d) || !d.takeType(type))
    return false;
  d.has(".approx");
  bool isFlushed = d.has(".ftz");
  if (type != Type::F32)
    return d.finish(nullptr);
  return d.expectOperands(2) && d.uniformOperands(getBytes(type)) &&
         d.finish(isFlushed ? runEx2<true> : runEx2<false>);
}

template <bool isAbs> bool decodeSign(Decoder &d) {
  Type type;
  if (!d.takeType(type))
    return false;
  if (type != Type::F32 && type != Type::F64)
    return decodeHalfSign(d, type, isAbs);
  if (!d.expectOperands(2) || !d.uniformOperands(getBytes(type)))
    return false;
  if (type == Type::F64)
    return d.finish(isAbs ? lanes<absF64> : lanes<negF64>);
  if (d.has(".ftz"))
    return d.finish(isAbs ? lanes<absF32<true>> : lanes<negF32<true>>);
  return d.finish(isAbs ? lanes<absF32<false>> : lanes<negF32<false>>);
}

template <bool isMax> bool decodeMinMax(Decoder &d) {
  Type type;
  if (!d.takeType(type))
    return false;
  if (type != Type::F32 && type != Type::F64)
    return decodeHalfMinMax(d, type, isMax);
  if (!d.expectOperands(3) || !d.uniformOperands(getBytes(type)))
    return false;
  if (type == Type::F64)
    return d.finish(lanes<minMax<double, isMax, false, false>>);
  bool isFlushed = d.has(".ftz"), hasNaN = d.has(".NaN");
  if (hasNaN)
    return d.finish(isFlushed ? lanes<minMax<float, isMax, true, true>>
                              : lanes<minMax<float, isMax, false, true>>);
  return d.finish(isFlushed ? lanes<minMax<float, isMax, true, false>>
                            : lanes<minMax<float, isMax, false, false>>);
}

bool decodeCopysign(Decoder &d) {
  Type type;
  return d.takeType(type) && d.expectOperands(3) &&
         d.uniformOperands(getBytes(type)) &&
         d.finish(type == Type::F32   ? lanes<copysignF32>
                  : type == Type::F64 ? lanes<copysignF64>
                                      : nullptr);
}

template <typename T> bool isFinite(T a) { return std::isfinite(a); }
template <typename T> bool isInfinite(T a) { return std::isinf(a); }
template <typename T> bool isNumber(T a) { return a == a; }
template <typename T> bool isNaN(T a) { return a != a; }
template <typename T> bool isNormal(T a) { return std::isnormal(a); }
template <typename T> bool isSubnormal(T a) {
  return std::fpclassify(a) == FP_SUBNORMAL;
}
template <typename T, bool (*F)(T)>
void runTest(Warp &warp, const Instruction &instruction, LaneMask mask) {
  LaneMask result = 0;
  forLanes(mask, [&](unsigned lane) {
    result |= LaneMask(F(warp.get<T>(instruction.operands[1], lane))) << lane;
  });
  warp.setPred(instruction.operands[0], mask, result);
}
template <typename T> Handler chooseTest(StringRef test) {
  return test == ".finite"       ? runTest<T, isFinite<T>>
         : test == ".infinite"   ? runTest<T, isInfinite<T>>
         : test == ".number"     ? runTest<T, isNumber<T>>
         : test == ".notanumber" ? runTest<T, isNaN<T>>
         : test == ".normal"     ? runTest<T, isNormal<T>>
                                 : runTest<T, isSubnormal<T>>;
}
bool decodeTest(Decoder &d) {
  Type type;
  StringRef test = d.takeOneOf({".finite", ".infinite", ".number",
                                ".notanumber", ".normal", ".subnormal"});
  if (test.empty())
    return d.fail("expected a supported test on testp");
  return d.takeType(type) && d.expectOperands(2) &&
         d.predDest(d.getSyntax().operands[0]) && d.source(1, getBytes(type)) &&
         d.finish(type == Type::F32   ? chooseTest<float>(test)
                  : type == Type::F64 ? chooseTest<double>(test)
                                      : nullptr);
}

} // namespace

void addFloatFunctions(OpcodeTable &table) {
  table["div.f"] = [](Decoder &d) { return decodeExact<DivF32, DivF64>(d, 2); };
  table["rcp"] = [](Decoder &d) { return decodeExact<RcpF32, RcpF64>(d, 1); };
  table["sqrt"] = [](Decoder &d) {
    return decodeExact<SqrtF32, SqrtF64>(d, 1);
  };
  table["neg.f"] = decodeSign<false>;
  table["abs.f"] = decodeSign<true>;
  table["min.f"] = decodeMinMax<false>;
  table["max.f"] = decodeMinMax<true>;
  table["copysign"] = decodeCopysign;
  table["testp"] = decodeTest;
  table["ex2"] = decodeEx2;
  table["lg2"] = decodeApproximate<lg2>;
  table["sin"] = decodeApproximate<sine>;
  table["cos"] = decodeApproximate<cosine>;
  table["tanh"] = decodeApproximate<tangent>;
  table["rsqrt"] = decodeApproximate<rsqrt, rsqrtF64>;
}

} // namespace posenc::ptx
