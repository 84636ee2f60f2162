//===- Compare.cpp - comparison and select instructions -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FloatDecode.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace posenc::ptx {

namespace {

enum class Test : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Num, Nan };

template <typename T, Test test> bool compare(T a, T b) {
  switch (test) {
  case Test::Eq:
    return a == b;
  case Test::Ne:
    // False for NaN; the caller adds the unordered lanes of .neu.
    return a < b || a > b;
  case Test::Lt:
    return a < b;
  case Test::Le:
    return a <= b;
  case Test::Gt:
    return a > b;
  case Test::Ge:
    return a >= b;
  case Test::Num:
    return a == a && b == b;
  case Test::Nan:
    return a != a || b != b;
  }
  return false;
}

// Compares f16 and bf16 as doubles, which represent both exactly.
template <typename T, Test test> bool compareHalf(T a, T b) {
  return compare<double, test>(toDouble(a), toDouble(b));
}
template <Test test> bool compareFlushed(float a, float b) {
  return compare<float, test>(flush(a), flush(b));
}

using CompareFunction = LaneMask (*)(const Warp &, const Operand &,
                                     const Operand &, LaneMask);

template <Test test> CompareFunction chooseType(Type type, bool isFlushed) {
  switch (type) {
  case Type::B16:
  case Type::U16:
    return compareLanes<uint16_t, compare<uint16_t, test>>;
  case Type::B32:
  case Type::U32:
    return compareLanes<uint32_t, compare<uint32_t, test>>;
  case Type::B64:
  case Type::U64:
    return compareLanes<uint64_t, compare<uint64_t, test>>;
  case Type::S16:
    return compareLanes<int16_t, compare<int16_t, test>>;
  case Type::S32:
    return compareLanes<int32_t, compare<int32_t, test>>;
  case Type::S64:
    return compareLanes<int64_t, compare<int64_t, test>>;
  case Type::F32:
    return isFlushed ? compareLanes<float, compareFlushed<test>>
                     : compareLanes<float, compare<float, test>>;
  case Type::F64:
    return compareLanes<double, compare<double, test>>;
  case Type::F16:
    return compareLanes<Half, compareHalf<Half, test>>;
  case Type::BF16:
    return compareLanes<BFloat, compareHalf<BFloat, test>>;
  default:
    return nullptr;
  }
}

CompareFunction chooseTest(Test test, Type type, bool isFlushed) {
  switch (test) {
  case Test::Eq:
    return chooseType<Test::Eq>(type, isFlushed);
  case Test::Ne:
    return chooseType<Test::Ne>(type, isFlushed);
  case Test::Lt:
    return chooseType<Test::Lt>(type, isFlushed);
  case Test::Le:
    return chooseType<Test::Le>(type, isFlushed);
  case Test::Gt:
    return chooseType<Test::Gt>(type, isFlushed);
  case Test::Ge:
    return chooseType<Test::Ge>(type, isFlushed);
  case Test::Num:
    return chooseType<Test::Num>(type, isFlushed);
  case Test::Nan:
    return chooseType<Test::Nan>(type, isFlushed);
  }
  return nullptr;
}

enum class Combine : uint8_t { None, And, Or, Xor };

// The decoded modifiers, kept in Instruction::extra.
struct CompareInfo {
  CompareFunction compare;
  CompareFunction unordered; // tests for NaN; null for an ordered comparison
  Combine combine;
};

LaneMask runCompare(Warp &warp, const CompareInfo &info, const Operand &a,
                    const Operand &b, LaneMask mask) {
  LaneMask result = info.compare(warp, a, b, mask);
  if (info.unordered)
    result |= info.unordered(warp, a, b, mask);
  return result;
}

LaneMask combine(Combine how, LaneMask a, LaneMask b) {
  switch (how) {
  case Combine::None:
    return a;
  case Combine::And:
    return a & b;
  case Combine::Or:
    return a | b;
  case Combine::Xor:
    return a ^ b;
  }
  return a;
}

const CompareInfo &getInfo(const Instruction &instruction) {
  return *reinterpret_cast<const CompareInfo *>(instruction.extra);
}

// Operands: p, q, a, b[, c]. q gets the negated comparison, combined with c
// like p.
void runSetp(Warp &warp, const Instruction &instruction, LaneMask mask) {
  const CompareInfo &info = getInfo(instruction);
  const auto &operands = instruction.operands;
  LaneMask result = runCompare(warp, info, operands[2], operands[3], mask);
  LaneMask other = operands.size() > 4 ? warp.getPred(operands[4]) : 0;
  warp.setPred(operands[0], mask, combine(info.combine, result, other));
  warp.setPred(operands[1], mask, combine(info.combine, ~result, other));
}

// Operands: d, a, b[, c]. The result is all ones or 1.0 where it holds.
template <bool isFloat>
void runSet(Warp &warp, const Instruction &instruction, LaneMask mask) {
  const CompareInfo &info = getInfo(instruction);
  const auto &operands = instruction.operands;
  LaneMask result = runCompare(warp, info, operands[1], operands[2], mask);
  LaneMask other = operands.size() > 3 ? warp.getPred(operands[3]) : 0;
  result = combine(info.combine, result, other);
  forLanes(mask, [&](unsigned lane) {
    bool isSet = (result >> lane) & 1;
    warp.set<uint32_t>(operands[0], lane,
                       isSet ? (isFloat ? 0x3f800000u : ~0u) : 0u);
  });
}

bool takeInfo(Decoder &d, CompareInfo &info, Type &type, bool isSet) {
  StringRef name = d.takeOneOf({".eq", ".ne", ".lt", ".le", ".gt", ".ge", ".lo",
                                ".ls", ".hi", ".hs", ".equ", ".neu", ".ltu",
                                ".leu", ".gtu", ".geu", ".num", ".nan"});
  if (name.empty())
    return d.fail("expected a comparison operator on '" + d.getSyntax().opcode +
                  "'");
  StringRef how = d.takeOneOf({".and", ".or", ".xor"});
  info.combine = how.empty()     ? Combine::None
                 : how == ".and" ? Combine::And
                 : how == ".or"  ? Combine::Or
                                 : Combine::Xor;
  Type result;
  if (isSet) {
    if (!d.takeType(result))
      return false;
    if (result != Type::U32 && result != Type::S32 && result != Type::F32)
      return d.fail("expected .u32, .s32 or .f32 as the result type of set");
    d.out.offset = result == Type::F32;
  }
  if (!d.takeType(type))
    return false;
  bool isFlushed = type == Type::F32 && d.has(".ftz");
  bool isUnordered = name.size() == 4 && name.back() == 'u';
  Test test = StringSwitch<Test>(isUnordered ? name.drop_back() : name)
                  .Case(".eq", Test::Eq)
                  .Case(".ne", Test::Ne)
                  .Cases({".lt", ".lo"}, Test::Lt)
                  .Cases({".le", ".ls"}, Test::Le)
                  .Cases({".gt", ".hi"}, Test::Gt)
                  .Cases({".ge", ".hs"}, Test::Ge)
                  .Case(".num", Test::Num)
                  .Default(Test::Nan);
  if ((isUnordered || test >= Test::Num) && !isFloat(type))
    return d.fail("'" + name + "' requires a floating-point type");
  bool isUnsignedName = StringRef(".lo.ls.hi.hs").contains(name);
  if (isUnsignedName && !isUnsigned(type))
    return d.fail("'" + name + "' requires an unsigned type");
  if (isBits(type) && test != Test::Eq && test != Test::Ne)
    return d.fail("only .eq and .ne are supported on .b types");
  info.compare = chooseTest(test, type, isFlushed);
  info.unordered =
      isUnordered ? chooseTest(Test::Nan, type, isFlushed) : nullptr;
  if (!info.compare)
    return d.fail("unsupported type in a comparison");
  return true;
}

bool decodeSetp(Decoder &d) {
  CompareInfo info;
  Type type;
  if (!takeInfo(d, info, type, /*isSet=*/false) ||
      !d.expectOperands(info.combine == Combine::None ? 3 : 4))
    return false;
  const auto &operands = d.getSyntax().operands;
  OperandSyntax first = operands[0], second;
  second.name = "_";
  if (first.kind == OperandSyntax::Pair) {
    second = operands[0].elements[1];
    first = operands[0].elements[0];
  }
  unsigned bytes = getBytes(type);
  if (!d.predDest(first) || !d.predDest(second) || !d.source(1, bytes) ||
      !d.source(2, bytes) ||
      (info.combine != Combine::None && !d.predSource(operands[3])))
    return false;
  d.keepExtra(info);
  return d.finish(runSetp);
}

bool decodeSet(Decoder &d) {
  CompareInfo info;
  Type type;
  if (!takeInfo(d, info, type, /*isSet=*/true) ||
      !d.expectOperands(info.combine == Combine::None ? 3 : 4))
    return false;
  unsigned bytes = getBytes(type);
  if (!d.dest(0, 4) || !d.source(1, bytes) || !d.source(2, bytes) ||
      (info.combine != Combine::None &&
       !d.predSource(d.getSyntax().operands[3])))
    return false;
  d.keepExtra(info);
  return d.finish(d.out.offset ? runSet<true> : runSet<false>);
}

template <typename T>
void runSelp(Warp &warp, const Instruction &instruction, LaneMask mask) {
  const auto &operands = instruction.operands;
  LaneMask which = warp.getPred(operands[3]);
  forLanes(mask, [&](unsigned lane) {
    bool isFirst = (which >> lane) & 1;
    warp.set<T>(operands[0], lane,
                warp.get<T>(operands[isFirst ? 1 : 2], lane));
  });
}

bool decodeSelp(Decoder &d) {
  Type type;
  if (!d.takeType(type) || !d.expectOperands(4))
    return false;
  unsigned bytes = getBytes(type);
  if (!d.dest(0, bytes) || !d.source(1, bytes) || !d.source(2, bytes) ||
      !d.predSource(d.getSyntax().operands[3]))
    return false;
  return d.finish(bytes == 2   ? runSelp<uint16_t>
                  : bytes == 4 ? runSelp<uint32_t>
                  : bytes == 8 ? runSelp<uint64_t>
                               : nullptr);
}

template <typename T, typename C> T slct(T a, T b, C c) {
  return c >= C(0) ? a : b;
}

bool decodeSlct(Decoder &d) {
  Type type, by;
  if (!d.takeType(type) || !d.takeType(by) || !d.expectOperands(4))
    return false;
  d.has(".ftz");
  unsigned bytes = getBytes(type);
  if (!d.dest(0, bytes) || !d.source(1, bytes) || !d.source(2, bytes) ||
      !d.source(3, 4))
    return false;
  bool isInt = by == Type::S32;
  if (!isInt && by != Type::F32)
    return d.fail("expected .s32 or .f32 as the selector type of slct");
  return d.finish(bytes == 2   ? (isInt ? lanes<slct<uint16_t, int32_t>>
                                        : lanes<slct<uint16_t, float>>)
                  : bytes == 4 ? (isInt ? lanes<slct<uint32_t, int32_t>>
                                        : lanes<slct<uint32_t, float>>)
                  : bytes == 8 ? (isInt ? lanes<slct<uint64_t, int32_t>>
                                        : lanes<slct<uint64_t, float>>)
                               : nullptr);
}

} // namespace

void addCompareInstructions(OpcodeTable &table) {
  table["setp"] = decodeSetp;
  table["set"] = decodeSet;
  table["selp"] = decodeSelp;
  table["slct"] = decodeSlct;
}

} // namespace posenc::ptx
