//===- Bits.cpp - logic, shift and bit field instructions -----------------===//
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

template <typename T> T andBits(T a, T b) { return a & b; }
template <typename T> T orBits(T a, T b) { return a | b; }
template <typename T> T xorBits(T a, T b) { return a ^ b; }
template <typename T> T notBits(T a) { return T(~a); }
template <typename T> T cnot(T a) { return a == 0; }

// Shift amounts above the width are clamped to the width.
template <typename T> T shl(T a, uint32_t n) {
  return n >= 8 * sizeof(T) ? T(0) : T(a << n);
}
template <typename T> T shr(T a, uint32_t n) {
  unsigned bits = 8 * sizeof(T);
  if (n >= bits)
    return std::is_signed_v<T> && a < 0 ? T(-1) : T(0);
  return T(a >> n);
}

uint32_t funnelLeft(uint32_t lo, uint32_t hi, uint32_t n) {
  return ((uint64_t(hi) << 32 | lo) << n) >> 32;
}
uint32_t funnelRight(uint32_t lo, uint32_t hi, uint32_t n) {
  return (uint64_t(hi) << 32 | lo) >> n;
}
uint32_t shfLeftWrap(uint32_t lo, uint32_t hi, uint32_t n) {
  return funnelLeft(lo, hi, n & 31);
}
uint32_t shfLeftClamp(uint32_t lo, uint32_t hi, uint32_t n) {
  return funnelLeft(lo, hi, std::min(n, 32u));
}
uint32_t shfRightWrap(uint32_t lo, uint32_t hi, uint32_t n) {
  return funnelRight(lo, hi, n & 31);
}
uint32_t shfRightClamp(uint32_t lo, uint32_t hi, uint32_t n) {
  return funnelRight(lo, hi, std::min(n, 32u));
}

template <typename T> uint32_t popc(T a) { return __builtin_popcountll(a); }
template <typename T> uint32_t clz(T a) {
  return a ? __builtin_clzll(a) - (64 - 8 * sizeof(T)) : 8 * sizeof(T);
}
template <typename T> T brev(T a) {
  T result = 0;
  for (unsigned i = 0; i < 8 * sizeof(T); ++i)
    result |= T((a >> i) & 1) << (8 * sizeof(T) - 1 - i);
  return result;
}
// Returns the index of the highest bit that differs from the sign, or all ones
// if there is none.
template <typename T> uint32_t bfind(T a) {
  std::make_unsigned_t<T> bits = a < 0 ? ~a : a;
  return bits ? 63 - __builtin_clzll(bits) : ~0u;
}
template <typename T> uint32_t bfindShift(T a) {
  uint32_t bit = bfind(a);
  return bit == ~0u ? bit : 8 * sizeof(T) - 1 - bit;
}

template <typename T> T bfe(T a, uint32_t first, uint32_t count) {
  using U = std::make_unsigned_t<T>;
  unsigned bits = 8 * sizeof(T);
  first &= 255;
  count &= 255;
  if (count == 0)
    return 0;
  unsigned last = std::min(first + count - 1, bits - 1);
  bool sign = std::is_signed_v<T> && ((U(a) >> last) & 1);
  U field = first < bits ? U(a) >> first : 0;
  unsigned have = first < bits ? std::min(count, bits - first) : 0;
  if (have < bits) {
    U mask = (U(1) << have) - 1;
    field = sign ? U(field | ~mask) : U(field & mask);
  }
  return T(field);
}
template <typename T> T bfi(T a, T b, uint32_t first, uint32_t count) {
  unsigned bits = 8 * sizeof(T);
  first &= 255;
  count &= 255;
  if (first >= bits || count == 0)
    return b;
  count = std::min(count, bits - first);
  T mask = (count >= bits ? ~T(0) : T((T(1) << count) - 1)) << first;
  return (b & ~mask) | ((a << first) & mask);
}

uint32_t getPrmtByte(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t byte = ((uint64_t(b) << 32 | a) >> (8 * (selector & 7))) & 255;
  if (selector & 8)
    return byte & 128 ? 255 : 0;
  return byte;
}
uint32_t prmt(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i)
    result |= getPrmtByte(a, b, c >> (4 * i)) << (8 * i);
  return result;
}
// The prmt modes in which the lower two bits of c select a row of `table`.
uint32_t selectPrmt(uint32_t a, uint32_t b, const uint8_t (&table)[4][4],
                    uint32_t c) {
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i)
    result |= getPrmtByte(a, b, table[c & 3][3 - i]) << (8 * i);
  return result;
}
uint32_t prmtF4e(uint32_t a, uint32_t b, uint32_t c) {
  return selectPrmt(
      a, b, {{3, 2, 1, 0}, {4, 3, 2, 1}, {5, 4, 3, 2}, {6, 5, 4, 3}}, c);
}
uint32_t prmtB4e(uint32_t a, uint32_t b, uint32_t c) {
  return selectPrmt(
      a, b, {{5, 6, 7, 0}, {6, 7, 0, 1}, {7, 0, 1, 2}, {0, 1, 2, 3}}, c);
}
uint32_t prmtRc8(uint32_t a, uint32_t b, uint32_t c) {
  return getPrmtByte(a, b, c & 3) * 0x01010101u;
}
uint32_t prmtRc16(uint32_t a, uint32_t b, uint32_t c) {
  return ((a >> (16 * (c & 1))) & 0xffff) * 0x00010001u;
}

uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (unsigned i = 0; i < 8; ++i)
    if ((table >> i) & 1)
      result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return result;
}

// Returns a mask of `count` bits from bit `first` on.
uint32_t bmskClamp(uint32_t first, uint32_t count) {
  uint64_t mask = count >= 32 ? 0xffffffffu : (uint64_t(1) << count) - 1;
  return first >= 32 ? 0 : uint32_t(mask << first);
}
uint32_t bmskWrap(uint32_t first, uint32_t count) {
  return bmskClamp(first & 31, count & 31);
}

#define BY_BITS(FUNCTION)                                                      \
  [](unsigned bytes) -> Handler {                                              \
    return bytes == 2   ? lanes<FUNCTION<uint16_t>>                            \
           : bytes == 4 ? lanes<FUNCTION<uint32_t>>                            \
           : bytes == 8 ? lanes<FUNCTION<uint64_t>>                            \
                        : nullptr;                                             \
  }

template <LaneMask (*F)(LaneMask, LaneMask)>
void runPred(Warp &warp, const Instruction &instruction, LaneMask mask) {
  LaneMask a = warp.getPred(instruction.operands[1]);
  LaneMask b = instruction.operands.size() > 2
                   ? warp.getPred(instruction.operands[2])
                   : 0;
  warp.setPred(instruction.operands[0], mask, F(a, b));
}

template <LaneMask (*F)(LaneMask, LaneMask), typename Choose>
bool decodeLogic(Decoder &d, unsigned sources, Choose choose) {
  Type type;
  if (!d.takeType(type) || !d.expectOperands(sources + 1))
    return false;
  if (type == Type::Pred) {
    if (!d.predDest(d.getSyntax().operands[0]))
      return false;
    for (unsigned i = 1; i <= sources; ++i)
      if (!d.predSource(d.getSyntax().operands[i]))
        return false;
    return d.finish(runPred<F>);
  }
  if (!isBits(type))
    return d.fail("expected a .b type or .pred on a logic instruction");
  return d.uniformOperands(getBytes(type)) && d.finish(choose(getBytes(type)));
}

LaneMask notMask(LaneMask a, LaneMask) { return ~a; }

template <bool isLeft> bool decodeShift(Decoder &d) {
  Type type;
  if (!d.takeType(type) || !d.expectOperands(3))
    return false;
  unsigned bytes = getBytes(type);
  if (!d.dest(0, bytes) || !d.source(1, bytes) || !d.source(2, 4))
    return false;
  if (isLeft && !isBits(type))
    return d.fail("expected a .b type on shl");
  if (isLeft)
    return d.finish(BY_BITS(shl)(bytes));
  if (!isSigned(type))
    return d.finish(BY_BITS(shr)(bytes));
  return d.finish(bytes == 2   ? lanes<shr<int16_t>>
                  : bytes == 4 ? lanes<shr<int32_t>>
                  : bytes == 8 ? lanes<shr<int64_t>>
                               : nullptr);
}

bool decodeFunnel(Decoder &d) {
  Type type;
  bool isLeft = d.has(".l"), isWrapped = d.has(".wrap");
  if ((!isLeft && !d.has(".r")) || (!isWrapped && !d.has(".clamp")))
    return d.fail("expected .l or .r, and .wrap or .clamp, on shf");
  return d.takeType(type) && d.expectOperands(4) && d.uniformOperands(4) &&
         d.finish(
             isLeft ? (isWrapped ? lanes<shfLeftWrap> : lanes<shfLeftClamp>)
                    : (isWrapped ? lanes<shfRightWrap> : lanes<shfRightClamp>));
}

template <typename Choose> bool decodeCount(Decoder &d, Choose choose) {
  Type type;
  return d.takeType(type) && d.expectOperands(2) && d.dest(0, 4) &&
         d.source(1, getBytes(type)) && d.finish(choose(type));
}

bool decodeBfind(Decoder &d) {
  bool isShift = d.has(".shiftamt");
  return decodeCount(d, [isShift](Type type) -> Handler {
    switch (type) {
    case Type::U32:
      return isShift ? lanes<bfindShift<uint32_t>> : lanes<bfind<uint32_t>>;
    case Type::S32:
      return isShift ? lanes<bfindShift<int32_t>> : lanes<bfind<int32_t>>;
    case Type::U64:
      return isShift ? lanes<bfindShift<uint64_t>> : lanes<bfind<uint64_t>>;
    case Type::S64:
      return isShift ? lanes<bfindShift<int64_t>> : lanes<bfind<int64_t>>;
    default:
      return nullptr;
    }
  });
}

bool decodeBfe(Decoder &d) {
  Type type;
  if (!d.takeType(type) || !d.expectOperands(4) || !d.dest(0, getBytes(type)) ||
      !d.source(1, getBytes(type)) || !d.source(2, 4) || !d.source(3, 4))
    return false;
  return d.finish(type == Type::U32   ? lanes<bfe<uint32_t>>
                  : type == Type::S32 ? lanes<bfe<int32_t>>
                  : type == Type::U64 ? lanes<bfe<uint64_t>>
                  : type == Type::S64 ? lanes<bfe<int64_t>>
                                      : nullptr);
}

bool decodeBfi(Decoder &d) {
  Type type;
  if (!d.takeType(type) || !d.expectOperands(5))
    return false;
  unsigned bytes = getBytes(type);
  return d.dest(0, bytes) && d.source(1, bytes) && d.source(2, bytes) &&
         d.source(3, 4) && d.source(4, 4) &&
         d.finish(type == Type::B32   ? lanes<bfi<uint32_t>>
                  : type == Type::B64 ? lanes<bfi<uint64_t>>
                                      : nullptr);
}

bool decodePrmt(Decoder &d) {
  Type type;
  StringRef mode = d.takeOneOf({".f4e", ".b4e", ".rc8", ".rc16"});
  return d.takeType(type) && d.expectOperands(4) && d.uniformOperands(4) &&
         d.finish(mode == ".f4e"    ? lanes<prmtF4e>
                  : mode == ".b4e"  ? lanes<prmtB4e>
                  : mode == ".rc8"  ? lanes<prmtRc8>
                  : mode == ".rc16" ? lanes<prmtRc16>
                                    : lanes<prmt>);
}

bool decodeBmsk(Decoder &d) {
  Type type;
  bool isWrapped = d.has(".wrap");
  if (!isWrapped && !d.has(".clamp"))
    return d.fail("expected .wrap or .clamp on bmsk");
  return d.takeType(type) && d.expectOperands(3) && d.uniformOperands(4) &&
         d.finish(isWrapped ? lanes<bmskWrap> : lanes<bmskClamp>);
}

} // namespace

void addBitInstructions(OpcodeTable &table) {
  table["and"] = [](Decoder &d) {
    return decodeLogic<andBits<LaneMask>>(d, 2, BY_BITS(andBits));
  };
  table["or"] = [](Decoder &d) {
    return decodeLogic<orBits<LaneMask>>(d, 2, BY_BITS(orBits));
  };
  table["xor"] = [](Decoder &d) {
    return decodeLogic<xorBits<LaneMask>>(d, 2, BY_BITS(xorBits));
  };
  table["not"] = [](Decoder &d) {
    return decodeLogic<notMask>(d, 1, BY_BITS(notBits));
  };
  table["cnot"] = [](Decoder &d) {
    return decodeLogic<notMask>(d, 1, BY_BITS(cnot));
  };
  table["shl"] = decodeShift<true>;
  table["shr"] = decodeShift<false>;
  table["shf"] = decodeFunnel;
  table["popc"] = [](Decoder &d) {
    return decodeCount(d,
                       [](Type type) { return BY_BITS(popc)(getBytes(type)); });
  };
  table["clz"] = [](Decoder &d) {
    return decodeCount(d,
                       [](Type type) { return BY_BITS(clz)(getBytes(type)); });
  };
  table["brev"] = [](Decoder &d) {
    Type type;
    return d.takeType(type) && d.expectOperands(2) &&
           d.uniformOperands(getBytes(type)) &&
           d.finish(BY_BITS(brev)(getBytes(type)));
  };
  table["bfind"] = decodeBfind;
  table["bfe"] = decodeBfe;
  table["bfi"] = decodeBfi;
  table["prmt"] = decodePrmt;
  table["lop3"] = [](Decoder &d) {
    Type type;
    return d.takeType(type) && d.expectOperands(5) && d.uniformOperands(4) &&
           d.finish(lanes<lop3>);
  };
  table["bmsk"] = decodeBmsk;
}

} // namespace posenc::ptx
