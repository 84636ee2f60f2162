//===- Integer.cpp - integer arithmetic -----------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

#include <limits>

using namespace llvm;

namespace posenc::ptx {

namespace {

template <typename T> using Unsigned = std::make_unsigned_t<T>;

template <typename T> T add(T a, T b) {
  return T(Unsigned<T>(a) + Unsigned<T>(b));
}
template <typename T> T sub(T a, T b) {
  return T(Unsigned<T>(a) - Unsigned<T>(b));
}
template <typename T> T addSat(T a, T b) {
  T sum;
  if (!__builtin_add_overflow(a, b, &sum))
    return sum;
  return a < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}
template <typename T> T minRelu(T a, T b) {
  return std::max(std::min(a, b), 0);
}
template <typename T> T maxRelu(T a, T b) {
  return std::max(std::max(a, b), 0);
}
template <typename T> T subSat(T a, T b) {
  T difference;
  if (!__builtin_sub_overflow(a, b, &difference))
    return difference;
  return a < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}
template <typename T> T min(T a, T b) { return a < b ? a : b; }
template <typename T> T max(T a, T b) { return a < b ? b : a; }
template <typename T> T neg(T a) { return T(-Unsigned<T>(a)); }
template <typename T> T abs(T a) { return a < 0 ? neg(a) : a; }

// PTX hasCarryOut division by zero undefined; GPUs return all ones.
template <typename T> T div(T a, T b) {
  if (b == 0)
    return T(-1);
  if (std::is_signed_v<T> && b == T(-1))
    return neg(a);
  return a / b;
}
template <typename T> T rem(T a, T b) {
  if (b == 0)
    return a;
  if (std::is_signed_v<T> && b == T(-1))
    return 0;
  return a % b;
}

uint32_t sadU32(uint32_t a, uint32_t b, uint32_t c) {
  return c + (a < b ? b - a : a - b);
}
int32_t sadS32(int32_t a, int32_t b, int32_t c) {
  return int32_t(sadU32(uint32_t(max(a, b)), uint32_t(min(a, b)), uint32_t(c)));
}

#define BY_TYPE(FUNCTION)                                                      \
  [](Type type) -> Handler {                                                   \
    switch (type) {                                                            \
    case Type::U16:                                                            \
      return lanes<FUNCTION<uint16_t>>;                                        \
    case Type::U32:                                                            \
      return lanes<FUNCTION<uint32_t>>;                                        \
    case Type::U64:                                                            \
      return lanes<FUNCTION<uint64_t>>;                                        \
    case Type::S16:                                                            \
      return lanes<FUNCTION<int16_t>>;                                         \
    case Type::S32:                                                            \
      return lanes<FUNCTION<int32_t>>;                                         \
    case Type::S64:                                                            \
      return lanes<FUNCTION<int64_t>>;                                         \
    default:                                                                   \
      return nullptr;                                                          \
    }                                                                          \
  }

template <typename Choose>
bool decodeUniform(Decoder &d, unsigned sources, Choose choose) {
  Type type;
  return d.takeType(type) && d.expectOperands(sources + 1) &&
         d.uniformOperands(getBytes(type)) && d.finish(choose(type));
}

// Adds or subtracts with carry-in, carry-out or both. The carry of a
// subtraction is its borrow.
template <typename T, bool isSub, bool hasCarryIn, bool hasCarryOut>
void runCarry(Warp &warp, const Instruction &instruction, LaneMask mask) {
  auto sum = [&](unsigned lane, T in, bool &out) {
    T a = warp.get<T>(instruction.operands[1], lane);
    T b = warp.get<T>(instruction.operands[2], lane);
    T first, second;
    if (isSub) {
      out = __builtin_sub_overflow(a, b, &first);
      out |= __builtin_sub_overflow(first, in, &second);
    } else {
      out = __builtin_add_overflow(a, b, &first);
      out |= __builtin_add_overflow(first, in, &second);
    }
    return second;
  };
  sumLanes<T, hasCarryIn, hasCarryOut>(warp, instruction, mask, sum);
}

template <bool isSub> bool decodeCarry(Decoder &d, bool hasCarryIn) {
  Type type;
  bool hasCarryOut = d.has(".cc");
  if (!d.takeType(type) || !d.expectOperands(3) ||
      !d.uniformOperands(getBytes(type)))
    return false;
  Handler handler = nullptr;
  if (getBytes(type) == 4)
    handler = hasCarryIn
                  ? (hasCarryOut ? runCarry<uint32_t, isSub, true, true>
                                 : runCarry<uint32_t, isSub, true, false>)
                  : runCarry<uint32_t, isSub, false, true>;
  else if (getBytes(type) == 8)
    handler = hasCarryIn
                  ? (hasCarryOut ? runCarry<uint64_t, isSub, true, true>
                                 : runCarry<uint64_t, isSub, true, false>)
                  : runCarry<uint64_t, isSub, false, true>;
  return d.finish(handler);
}

// Packed additions such as add.u16x2 are not supported.
bool decodeAdd(Decoder &d) {
  if (is_contained(d.getSyntax().modifiers, StringRef(".cc")))
    return decodeCarry<false>(d, /*hasCarryIn=*/false);
  if (!d.has(".sat"))
    return decodeUniform(d, 2, BY_TYPE(add));
  return decodeUniform(d, 2, [](Type type) -> Handler {
    return type == Type::S32 ? lanes<addSat<int32_t>> : nullptr;
  });
}
bool decodeSub(Decoder &d) {
  if (is_contained(d.getSyntax().modifiers, StringRef(".cc")))
    return decodeCarry<true>(d, /*hasCarryIn=*/false);
  if (!d.has(".sat"))
    return decodeUniform(d, 2, BY_TYPE(sub));
  return decodeUniform(d, 2, [](Type type) -> Handler {
    return type == Type::S32 ? lanes<subSat<int32_t>> : nullptr;
  });
}

template <bool isMax> bool decodeMinMax(Decoder &d) {
  if (!d.has(".relu")) {
    if (isMax)
      return decodeUniform(d, 2, BY_TYPE(max));
    return decodeUniform(d, 2, BY_TYPE(min));
  }
  return decodeUniform(d, 2, [](Type type) -> Handler {
    return type != Type::S32 ? nullptr
           : isMax           ? lanes<maxRelu<int32_t>>
                             : lanes<minRelu<int32_t>>;
  });
}

} // namespace

void addIntegerInstructions(OpcodeTable &table) {
  table["add"] = decodeAdd;
  table["sub"] = decodeSub;
  table["addc"] = [](Decoder &d) { return decodeCarry<false>(d, true); };
  table["subc"] = [](Decoder &d) { return decodeCarry<true>(d, true); };
  table["div"] = [](Decoder &d) { return decodeUniform(d, 2, BY_TYPE(div)); };
  table["rem"] = [](Decoder &d) { return decodeUniform(d, 2, BY_TYPE(rem)); };
  table["min"] = decodeMinMax<false>;
  table["max"] = decodeMinMax<true>;
  table["neg"] = [](Decoder &d) { return decodeUniform(d, 1, BY_TYPE(neg)); };
  table["abs"] = [](Decoder &d) { return decodeUniform(d, 1, BY_TYPE(abs)); };
  table["sad"] = [](Decoder &d) {
    return decodeUniform(d, 3, [](Type type) -> Handler {
      return type == Type::U32   ? lanes<sadU32>
             : type == Type::S32 ? lanes<sadS32>
                                 : nullptr;
    });
  };
}

} // namespace posenc::ptx
