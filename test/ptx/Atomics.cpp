//===- Atomics.cpp - atomic instructions ----------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneAccess.h"
#include "MemoryAccess.h"
#include "Rounding.h"

using namespace llvm;

namespace posenc::ptx {

namespace {

template <typename T> T atomAdd(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    T sum = a + b;
    if (sum != sum && sizeof(T) == 4)
      return T(bitCast<float>(0x7fffffffu));
    return sum;
  } else {
    return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
  }
}
template <typename T> T atomMin(T a, T b) { return b < a ? b : a; }
template <typename T> T atomMax(T a, T b) { return a < b ? b : a; }
template <typename T> T atomAnd(T a, T b) { return a & b; }
template <typename T> T atomOr(T a, T b) { return a | b; }
template <typename T> T atomXor(T a, T b) { return a ^ b; }
template <typename T> T atomExch(T, T b) { return b; }
template <typename T> T atomInc(T a, T b) { return a >= b ? 0 : a + 1; }
template <typename T> T atomDec(T a, T b) {
  return a == 0 || a > b ? b : a - 1;
}
template <typename T> T atomCas(T a, T b, T c) { return a == b ? c : a; }

// Operands: [result,] address, b[, c]. The lanes run in order of their index.
template <typename T, typename F>
void runAtomic(Warp &warp, const Instruction &instruction, LaneMask mask,
               F function) {
  bool hasResult = instruction.hasResult;
  ArrayRef<Operand> operands = instruction.operands;
  const Operand *result = hasResult ? &operands.front() : nullptr;
  operands = operands.drop_front(hasResult);
  LaneAccess access(warp, instruction);
  if (!access.resolve(operands[0], mask, /*isStore=*/true))
    return;
  for (; mask; mask &= mask - 1) {
    unsigned lane = __builtin_ctz(mask);
    if (!access.load(lane))
      return;
    T old;
    std::memcpy(&old, access.at(lane), sizeof(T));
    T value = function(old, operands, lane);
    uint8_t bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    if (!access.store(lane, bytes))
      return;
    if (result)
      warp.set<T>(*result, lane, old);
  }
}

template <typename T, T (*F)(T, T)>
void runBinary(Warp &warp, const Instruction &instruction, LaneMask mask) {
  runAtomic<T>(warp, instruction, mask,
               [&](T old, ArrayRef<Operand> operands, unsigned lane) {
                 return F(old, warp.get<T>(operands[1], lane));
               });
}
template <typename T>
void runCas(Warp &warp, const Instruction &instruction, LaneMask mask) {
  runAtomic<T>(warp, instruction, mask,
               [&](T old, ArrayRef<Operand> operands, unsigned lane) {
                 return atomCas(old, warp.get<T>(operands[1], lane),
                                warp.get<T>(operands[2], lane));
               });
}

#define INTEGERS(FUNCTION)                                                     \
  (type == Type::U32   ? runBinary<uint32_t, FUNCTION<uint32_t>>               \
   : type == Type::S32 ? runBinary<int32_t, FUNCTION<int32_t>>                 \
   : type == Type::U64 ? runBinary<uint64_t, FUNCTION<uint64_t>>               \
   : type == Type::S64 ? runBinary<int64_t, FUNCTION<int64_t>>                 \
                       : Handler(nullptr))
#define BITS(FUNCTION)                                                         \
  (type == Type::B32   ? runBinary<uint32_t, FUNCTION<uint32_t>>               \
   : type == Type::B64 ? runBinary<uint64_t, FUNCTION<uint64_t>>               \
                       : Handler(nullptr))

Handler choose(StringRef name, Type type) {
  if (name == ".add" && type == Type::F32)
    return runBinary<float, atomAdd<float>>;
  if (name == ".add" && type == Type::F64)
    return runBinary<double, atomAdd<double>>;
  if (name == ".add")
    return INTEGERS(atomAdd);
  if (name == ".min")
    return INTEGERS(atomMin);
  if (name == ".max")
    return INTEGERS(atomMax);
  if (name == ".and")
    return BITS(atomAnd);
  if (name == ".or")
    return BITS(atomOr);
  if (name == ".xor")
    return BITS(atomXor);
  if (name == ".exch")
    return BITS(atomExch);
  if (name == ".inc" && type == Type::U32)
    return runBinary<uint32_t, atomInc<uint32_t>>;
  if (name == ".dec" && type == Type::U32)
    return runBinary<uint32_t, atomDec<uint32_t>>;
  if (name == ".cas")
    return type == Type::B32   ? runCas<uint32_t>
           : type == Type::B64 ? runCas<uint64_t>
                               : nullptr;
  return nullptr;
}

template <bool hasResult> bool decodeAtomic(Decoder &d) {
  AccessInfo &access = d.out.access;
  takeAccessModifiers(d);
  access.isStrong = true;
  access.space = d.takeSpace().value_or(Space::Generic);
  StringRef name = d.takeOneOf({".add", ".min", ".max", ".and", ".or", ".xor",
                                ".exch", ".inc", ".dec", ".cas"});
  Type type;
  if (!d.takeType(type))
    return false;
  access.bytes = getBytes(type);
  d.out.hasResult = hasResult;
  unsigned values = name == ".cas" ? 2 : 1;
  if (!d.expectOperands(hasResult + 1 + values) ||
      (hasResult && !d.dest(0, access.bytes)) || !d.address(hasResult))
    return false;
  for (unsigned i = 0; i < values; ++i)
    if (!d.source(hasResult + 1 + i, access.bytes))
      return false;
  return d.finish(choose(name, type));
}

} // namespace

void addAtomicInstructions(OpcodeTable &table) {
  table["atom"] = decodeAtomic<true>;
  table["red"] = decodeAtomic<false>;
  table["atom.f"] = decodeAtomic<true>;
  table["red.f"] = decodeAtomic<false>;
}

} // namespace posenc::ptx
