//===- Float.cpp - add, sub, mul and fma of f32 and f64 -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FloatDecode.h"

using namespace llvm;

namespace posenc::ptx {

std::optional<Rounding> takeRounding(Decoder &decoder) {
  StringRef name = decoder.takeOneOf({".rn", ".rz", ".rm", ".rp"});
  if (name.empty())
    return std::nullopt;
  return name == ".rn"   ? Rounding::Nearest
         : name == ".rz" ? Rounding::Zero
         : name == ".rm" ? Rounding::Down
                         : Rounding::Up;
}

bool checkContraction(Decoder &decoder, bool hasRounding) {
  if (hasRounding || decoder.getOptions().allowContraction)
    return true;
  return decoder.fail("'" + decoder.getSyntax().opcode +
                      "' may be contracted: it has no rounding modifier");
}

namespace {

template <bool isFlushed, bool isSaturated> float finish(float value) {
  if (isFlushed)
    value = flush(value);
  return isSaturated ? saturate(value) : unifyNaN(value);
}
template <bool isFlushed> float take(float value) {
  return isFlushed ? flush(value) : value;
}
template <Rounding rounding> float narrow(double value) {
  return bitCast<float>(uint32_t(roundDouble<F32Format>(value, rounding)));
}

template <Rounding rounding, bool isFlushed, bool isSaturated> struct AddF32 {
  static float apply(float a, float b) {
    a = take<isFlushed>(a);
    b = take<isFlushed>(b);
    float sum;
    if (rounding == Rounding::Nearest)
      sum = a + b;
    else
      sum = narrow<rounding>(fixZeroSum(addToOdd(a, b), a, b, rounding));
    return finish<isFlushed, isSaturated>(sum);
  }
};
template <Rounding rounding, bool isFlushed, bool isSaturated> struct SubF32 {
  static float apply(float a, float b) {
    return AddF32<rounding, isFlushed, isSaturated>::apply(a, -b);
  }
};
template <Rounding rounding, bool isFlushed, bool isSaturated> struct MulF32 {
  static float apply(float a, float b) {
    a = take<isFlushed>(a);
    b = take<isFlushed>(b);
    float product = rounding == Rounding::Nearest
                        ? a * b
                        : narrow<rounding>(double(a) * double(b));
    return finish<isFlushed, isSaturated>(product);
  }
};
template <Rounding rounding, bool isFlushed, bool isSaturated> struct FmaF32 {
  static float apply(float a, float b, float c) {
    a = take<isFlushed>(a);
    b = take<isFlushed>(b);
    c = take<isFlushed>(c);
    float result;
    if (rounding == Rounding::Nearest) {
      result = std::fma(a, b, c);
    } else {
      double product = double(a) * double(b);
      result = narrow<rounding>(
          fixZeroSum(addToOdd(product, c), product, c, rounding));
    }
    return finish<isFlushed, isSaturated>(result);
  }
};

// A NaN result of f64 is the first NaN operand, made quiet, or -NaN if no
// operand is NaN.
double unifyNaN(double value, double a, double b, double c = 0) {
  if (value == value)
    return value;
  for (double operand : {a, b, c})
    if (operand != operand)
      return bitCast<double>(bitCast<uint64_t>(operand) | uint64_t(1) << 51);
  return bitCast<double>(F64Format::nan);
}

// `volatile` keeps the operation between the two changes of the rounding mode.
template <Rounding rounding> struct AddF64 {
  static double apply(double a, double b) {
    if (rounding == Rounding::Nearest)
      return unifyNaN(a + b, a, b);
    HostRounding host(rounding);
    volatile double x = a, y = b;
    volatile double sum = x + y;
    return unifyNaN(sum, a, b);
  }
};
template <Rounding rounding> struct SubF64 {
  static double apply(double a, double b) {
    return AddF64<rounding>::apply(a, -b);
  }
};
template <Rounding rounding> struct MulF64 {
  static double apply(double a, double b) {
    if (rounding == Rounding::Nearest)
      return unifyNaN(a * b, a, b);
    HostRounding host(rounding);
    volatile double x = a, y = b;
    volatile double product = x * y;
    return unifyNaN(product, a, b);
  }
};
template <Rounding rounding> struct FmaF64 {
  static double apply(double a, double b, double c) {
    if (rounding == Rounding::Nearest)
      return unifyNaN(std::fma(a, b, c), a, b, c);
    HostRounding host(rounding);
    volatile double x = a, y = b, z = c;
    volatile double result = std::fma(x, y, z);
    return unifyNaN(result, a, b, c);
  }
};

// Applies an f32 operation to both halves of an f32x2.
template <typename Op> struct Both {
  template <typename... S> static uint64_t apply(S... operands) {
    float lo = Op::apply(bitCast<float>(uint32_t(operands))...);
    float hi = Op::apply(bitCast<float>(uint32_t(operands >> 32))...);
    return uint64_t(bitCast<uint32_t>(hi)) << 32 | bitCast<uint32_t>(lo);
  }
};
template <template <Rounding, bool, bool> class F32, unsigned sources>
struct BothF32 {
  template <Rounding rounding, bool isFlushed, bool isSaturated> struct Op {
    static uint64_t apply(uint64_t a, uint64_t b) {
      return Both<F32<rounding, isFlushed, isSaturated>>::apply(a, b);
    }
  };
};
template <template <Rounding, bool, bool> class F32> struct BothF32<F32, 3> {
  template <Rounding rounding, bool isFlushed, bool isSaturated> struct Op {
    static uint64_t apply(uint64_t a, uint64_t b, uint64_t c) {
      return Both<F32<rounding, isFlushed, isSaturated>>::apply(a, b, c);
    }
  };
};

// Decodes an operation on f32, f32x2 or f64: rounding, .ftz and .sat.
template <template <Rounding, bool, bool> class F32,
          template <Rounding> class F64, unsigned sources>
bool decodeWide(Decoder &d, Type type) {
  std::optional<Rounding> rounding = takeRounding(d);
  if (!checkContraction(d, rounding.has_value()) ||
      !d.expectOperands(sources + 1) || !d.uniformOperands(getBytes(type)))
    return false;
  Rounding mode = rounding.value_or(Rounding::Nearest);
  if (type == Type::F64)
    return d.finish(chooseF64<F64>(mode));
  bool isFlushed = d.has(".ftz");
  if (type == Type::F32x2)
    return d.finish(
        chooseF32<BothF32<F32, sources>::template Op>(mode, isFlushed, false));
  return d.finish(chooseF32<F32>(mode, isFlushed, d.has(".sat")));
}

bool isWide(Type type) {
  return type == Type::F32 || type == Type::F32x2 || type == Type::F64;
}

template <bool isSub> bool decodeSum(Decoder &d) {
  Type type;
  if (!d.takeType(type))
    return false;
  if (!isWide(type))
    return decodeHalfSum(d, type, isSub);
  return isSub ? decodeWide<SubF32, SubF64, 2>(d, type)
               : decodeWide<AddF32, AddF64, 2>(d, type);
}

bool decodeProduct(Decoder &d) {
  Type type;
  if (!d.takeType(type))
    return false;
  if (!isWide(type))
    return decodeHalfProduct(d, type);
  return decodeWide<MulF32, MulF64, 2>(d, type);
}

bool decodeFma(Decoder &d) {
  Type type;
  if (!d.takeType(type))
    return false;
  bool hasRounding = false;
  for (StringRef name : {".rn", ".rz", ".rm", ".rp"})
    hasRounding |= is_contained(d.getSyntax().modifiers, name);
  if (!hasRounding)
    return d.fail("'" + d.getSyntax().opcode + "' has no rounding modifier");
  if (!isWide(type))
    return decodeHalfFma(d, type);
  return decodeWide<FmaF32, FmaF64, 3>(d, type);
}

} // namespace

void addFloatInstructions(OpcodeTable &table) {
  table["add.f"] = decodeSum<false>;
  table["sub.f"] = decodeSum<true>;
  table["mul.f"] = decodeProduct;
  table["fma"] = decodeFma;
  table["mad.f"] = decodeFma;
}

} // namespace posenc::ptx
