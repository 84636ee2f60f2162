//===- FloatHalf.cpp - arithmetic of f16 and bf16 -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FloatDecode.h"

using namespace llvm;

namespace posenc::ptx {

namespace {

template <typename T> struct FormatOf;
template <> struct FormatOf<Half> {
  using type = F16Format;
};
template <> struct FormatOf<BFloat> {
  using type = BF16Format;
};

// Modifiers, as bits.
enum : unsigned { Ftz = 1, Sat = 2, Relu = 4, NaN = 8 };

template <typename T> double flushHalf(T value, unsigned flags) {
  double result = toDouble(value);
  if ((flags & Ftz) && std::fabs(result) < 0x1p-14)
    return std::copysign(0.0, result);
  return result;
}

template <typename T> T narrow(double value, unsigned flags) {
  if (flags & Sat)
    value = saturate(value);
  T result{uint16_t(
      roundDouble<typename FormatOf<T>::type>(value, Rounding::Nearest))};
  if ((flags & Relu) && value < 0)
    result.bits = 0;
  if (flags & Ftz && std::fabs(toDouble(result)) < 0x1p-14)
    result.bits &= 0x8000;
  return result;
}

// Computes in double: products are exact, and sums are rounded to odd, so that
// the final rounding is correct.
template <unsigned flags> struct Add {
  template <typename T> static T apply(T a, T b) {
    return narrow<T>(addToOdd(flushHalf(a, flags), flushHalf(b, flags)), flags);
  }
};
template <unsigned flags> struct Sub {
  template <typename T> static T apply(T a, T b) {
    return narrow<T>(addToOdd(flushHalf(a, flags), -flushHalf(b, flags)),
                     flags);
  }
};
template <unsigned flags> struct Mul {
  template <typename T> static T apply(T a, T b) {
    return narrow<T>(flushHalf(a, flags) * flushHalf(b, flags), flags);
  }
};
template <unsigned flags> struct Fma {
  template <typename T> static T apply(T a, T b, T c) {
    return narrow<T>(addToOdd(flushHalf(a, flags) * flushHalf(b, flags),
                              flushHalf(c, flags)),
                     flags);
  }
};
template <unsigned flags> struct Neg {
  template <typename T> static T apply(T a) {
    if (flags & Ftz)
      a = narrow<T>(flushHalf(a, flags), 0);
    return T{uint16_t(a.bits ^ 0x8000)};
  }
};
template <unsigned flags> struct Abs {
  template <typename T> static T apply(T a) {
    if (flags & Ftz)
      a = narrow<T>(flushHalf(a, flags), 0);
    return T{uint16_t(a.bits & 0x7fff)};
  }
};
template <unsigned flags, bool isMax> struct MinMax {
  template <typename T> static T apply(T a, T b) {
    double x = flushHalf(a, flags), y = flushHalf(b, flags);
    if (x != x || y != y) {
      if ((flags & NaN) || (x != x && y != y))
        return T{0x7fff};
      return narrow<T>(x != x ? y : x, 0);
    }
    // -0 is less than 0.
    bool isLess = x < y || (x == y && std::signbit(x));
    return narrow<T>(isLess != isMax ? x : y, 0);
  }
};
template <unsigned flags> using Min = MinMax<flags, false>;
template <unsigned flags> using Max = MinMax<flags, true>;

template <typename T, typename Op> struct Both {
  template <typename... S> static uint32_t apply(S... operands) {
    T lo = Op::template apply<T>(T{uint16_t(operands)}...);
    T hi = Op::template apply<T>(T{uint16_t(operands >> 16)}...);
    return uint32_t(hi.bits) << 16 | lo.bits;
  }
};

template <typename Op, unsigned sources> Handler chooseType(Type type) {
  using U = uint32_t;
  if constexpr (sources == 1) {
    return type == Type::F16     ? lanes<&Op::template apply<Half>>
           : type == Type::BF16  ? lanes<&Op::template apply<BFloat>>
           : type == Type::F16x2 ? lanes<&Both<Half, Op>::template apply<U>>
                                 : lanes<&Both<BFloat, Op>::template apply<U>>;
  } else if constexpr (sources == 2) {
    return type == Type::F16    ? lanes<&Op::template apply<Half>>
           : type == Type::BF16 ? lanes<&Op::template apply<BFloat>>
           : type == Type::F16x2
               ? lanes<&Both<Half, Op>::template apply<U, U>>
               : lanes<&Both<BFloat, Op>::template apply<U, U>>;
  } else {
    return type == Type::F16    ? lanes<&Op::template apply<Half>>
           : type == Type::BF16 ? lanes<&Op::template apply<BFloat>>
           : type == Type::F16x2
               ? lanes<&Both<Half, Op>::template apply<U, U, U>>
               : lanes<&Both<BFloat, Op>::template apply<U, U, U>>;
  }
}

template <template <unsigned> class Op, unsigned sources>
bool decodeHalf(Decoder &d, Type type, unsigned known) {
  unsigned flags = 0;
  if ((known & Ftz) && (type == Type::F16 || type == Type::F16x2) &&
      d.has(".ftz"))
    flags |= Ftz;
  if ((known & Sat) && d.has(".sat"))
    flags |= Sat;
  if ((known & Relu) && d.has(".relu"))
    flags |= Relu;
  if ((known & NaN) && d.has(".NaN"))
    flags |= NaN;
  if (!d.expectOperands(sources + 1) || !d.uniformOperands(getBytes(type)))
    return false;
  Handler handler = nullptr;
  switch (flags) {
#define CASE(FLAGS)                                                            \
  case FLAGS:                                                                  \
    handler = chooseType<Op<FLAGS>, sources>(type);                            \
    break;
    CASE(0)
    CASE(Ftz)
    CASE(Sat)
    CASE(Ftz | Sat)
    CASE(Relu)
    CASE(Ftz | Relu)
    CASE(NaN)
    CASE(Ftz | NaN)
#undef CASE
  default:
    break;
  }
  return d.finish(handler);
}

// These types support only .rn.
bool takeHalfRounding(Decoder &d) { return checkContraction(d, d.has(".rn")); }

} // namespace

bool decodeHalfSum(Decoder &d, Type type, bool isSub) {
  if (!takeHalfRounding(d))
    return false;
  return isSub ? decodeHalf<Sub, 2>(d, type, Ftz | Sat)
               : decodeHalf<Add, 2>(d, type, Ftz | Sat);
}
bool decodeHalfProduct(Decoder &d, Type type) {
  return takeHalfRounding(d) && decodeHalf<Mul, 2>(d, type, Ftz | Sat);
}
bool decodeHalfFma(Decoder &d, Type type) {
  return takeHalfRounding(d) && decodeHalf<Fma, 3>(d, type, Ftz | Sat | Relu);
}
bool decodeHalfSign(Decoder &d, Type type, bool isAbs) {
  return isAbs ? decodeHalf<Abs, 1>(d, type, Ftz)
               : decodeHalf<Neg, 1>(d, type, Ftz);
}
bool decodeHalfMinMax(Decoder &d, Type type, bool isMax) {
  return isMax ? decodeHalf<Max, 2>(d, type, Ftz | NaN)
               : decodeHalf<Min, 2>(d, type, Ftz | NaN);
}

} // namespace posenc::ptx
