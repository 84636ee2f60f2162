//===- Multiply.cpp - integer multiplication ------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

using namespace llvm;

namespace posenc::ptx {

namespace {

/// The integer type of twice the width.
template <typename T> struct DoubleWidth;
template <> struct DoubleWidth<uint16_t> {
  using type = uint32_t;
};
template <> struct DoubleWidth<int16_t> {
  using type = int32_t;
};
template <> struct DoubleWidth<uint32_t> {
  using type = uint64_t;
};
template <> struct DoubleWidth<int32_t> {
  using type = int64_t;
};
template <> struct DoubleWidth<uint64_t> {
  using type = unsigned __int128;
};
template <> struct DoubleWidth<int64_t> {
  using type = __int128;
};
template <typename T> using Wide = typename DoubleWidth<T>::type;

template <typename T> T mulLo(T a, T b) { return T(uint64_t(a) * uint64_t(b)); }
template <typename T> T mulHi(T a, T b) {
  return T((Wide<T>(a) * Wide<T>(b)) >> (8 * sizeof(T)));
}
template <typename T> Wide<T> mulWide(T a, T b) {
  return Wide<T>(a) * Wide<T>(b);
}
template <typename T> T madLo(T a, T b, T c) {
  return T(uint64_t(a) * uint64_t(b) + uint64_t(c));
}
template <typename T> T madHi(T a, T b, T c) {
  return T(uint64_t(mulHi(a, b)) + uint64_t(c));
}
template <typename T> Wide<T> madWide(T a, T b, Wide<T> c) {
  return Wide<T>(uint64_t(mulWide(a, b)) + uint64_t(c));
}

// The lower 32 bits of the product of two 24-bit integers.
uint32_t mul24LoU(uint32_t a, uint32_t b) {
  return (a & 0xffffff) * (b & 0xffffff);
}
int32_t mul24LoS(int32_t a, int32_t b) {
  return int32_t(uint32_t(int32_t(uint32_t(a) << 8) >> 8) *
                 uint32_t(int32_t(uint32_t(b) << 8) >> 8));
}

#define BY_TYPE(FUNCTION)                                                      \
  (type == Type::U16   ? lanes<FUNCTION<uint16_t>>                             \
   : type == Type::S16 ? lanes<FUNCTION<int16_t>>                              \
   : type == Type::U32 ? lanes<FUNCTION<uint32_t>>                             \
   : type == Type::S32 ? lanes<FUNCTION<int32_t>>                              \
   : type == Type::U64 ? lanes<FUNCTION<uint64_t>>                             \
   : type == Type::S64 ? lanes<FUNCTION<int64_t>>                              \
                       : Handler(nullptr))
#define BY_NARROW_TYPE(FUNCTION)                                               \
  (type == Type::U16   ? lanes<FUNCTION<uint16_t>>                             \
   : type == Type::S16 ? lanes<FUNCTION<int16_t>>                              \
   : type == Type::U32 ? lanes<FUNCTION<uint32_t>>                             \
   : type == Type::S32 ? lanes<FUNCTION<int32_t>>                              \
                       : Handler(nullptr))

template <bool isMad> bool decodeProduct(Decoder &d) {
  Type type;
  StringRef part = d.takeOneOf({".lo", ".hi", ".wide"});
  if (part.empty())
    return d.fail("expected .lo, .hi or .wide on a multiplication");
  if (!d.takeType(type) || !d.expectOperands(isMad ? 4 : 3))
    return false;
  unsigned bytes = getBytes(type);
  unsigned wide = part == ".wide" ? 2 * bytes : bytes;
  if (!d.dest(0, wide) || !d.source(1, bytes) || !d.source(2, bytes) ||
      (isMad && !d.source(3, wide)))
    return false;
  if (part == ".lo")
    return d.finish(isMad ? BY_TYPE(madLo) : BY_TYPE(mulLo));
  if (part == ".hi")
    return d.finish(isMad ? BY_TYPE(madHi) : BY_TYPE(mulHi));
  return d.finish(isMad ? BY_NARROW_TYPE(madWide) : BY_NARROW_TYPE(mulWide));
}

// mad.cc and madc. The carry is that of the addition.
template <typename T, bool isHi, bool hasCarryIn, bool hasCarryOut>
void runMadCarry(Warp &warp, const Instruction &instruction, LaneMask mask) {
  auto sum = [&](unsigned lane, T in, bool &out) {
    T a = warp.get<T>(instruction.operands[1], lane);
    T b = warp.get<T>(instruction.operands[2], lane);
    T c = warp.get<T>(instruction.operands[3], lane);
    T product = isHi ? mulHi(a, b) : mulLo(a, b), first, second;
    out = __builtin_add_overflow(product, c, &first);
    out |= __builtin_add_overflow(first, in, &second);
    return second;
  };
  sumLanes<T, hasCarryIn, hasCarryOut>(warp, instruction, mask, sum);
}

template <typename T, bool isHi>
Handler chooseMad(bool hasCarryIn, bool hasCarryOut) {
  if (!hasCarryIn)
    return runMadCarry<T, isHi, false, true>;
  return hasCarryOut ? runMadCarry<T, isHi, true, true>
                     : runMadCarry<T, isHi, true, false>;
}

bool decodeMadCarry(Decoder &d, bool hasCarryIn) {
  Type type;
  bool hasCarryOut = d.has(".cc");
  StringRef part = d.takeOneOf({".lo", ".hi"});
  if (part.empty())
    return d.fail("expected .lo or .hi on a multiplication");
  if (!d.takeType(type) || !d.expectOperands(4) ||
      !d.uniformOperands(getBytes(type)))
    return false;
  bool isHi = part == ".hi";
  Handler handler = nullptr;
  if (type == Type::U32 || (type == Type::S32 && !isHi))
    handler = isHi ? chooseMad<uint32_t, true>(hasCarryIn, hasCarryOut)
                   : chooseMad<uint32_t, false>(hasCarryIn, hasCarryOut);
  else if (type == Type::U64 || (type == Type::S64 && !isHi))
    handler = isHi ? chooseMad<uint64_t, true>(hasCarryIn, hasCarryOut)
                   : chooseMad<uint64_t, false>(hasCarryIn, hasCarryOut);
  return d.finish(handler);
}

bool decodeMad(Decoder &d) {
  if (is_contained(d.getSyntax().modifiers, StringRef(".cc")))
    return decodeMadCarry(d, /*hasCarryIn=*/false);
  return decodeProduct<true>(d);
}

bool decodeMul24(Decoder &d) {
  Type type;
  if (!d.has(".lo"))
    return d.fail("only .lo is supported on mul24");
  return d.takeType(type) && d.expectOperands(3) && d.uniformOperands(4) &&
         d.finish(type == Type::U32   ? lanes<mul24LoU>
                  : type == Type::S32 ? lanes<mul24LoS>
                                      : nullptr);
}

} // namespace

void addMultiplyInstructions(OpcodeTable &table) {
  table["mul"] = decodeProduct<false>;
  table["mad"] = decodeMad;
  table["madc"] = [](Decoder &d) { return decodeMadCarry(d, true); };
  table["mul24"] = decodeMul24;
}

} // namespace posenc::ptx
