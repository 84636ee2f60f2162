//===- Convert.cpp - type conversion instructions -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FloatDecode.h"

#include <limits>

using namespace llvm;

namespace posenc::ptx {

namespace {

// A decoded conversion, kept in Instruction::extra.
struct ConvertInfo {
  Type to, from;
  Rounding rounding = Rounding::Nearest;
  bool isInteger = false; // the source is rounded to an integral value
  bool isFlushed = false, isSaturated = false, isRelu = false;
  unsigned fromBytes, toBytes; // sizes of the registers
};

uint64_t readUnsigned(const Warp &warp, const Operand &operand, unsigned lane) {
  switch (operand.bytes) {
  case 2:
    return warp.get<uint16_t>(operand, lane);
  case 4:
    return warp.get<uint32_t>(operand, lane);
  default:
    return warp.get<uint64_t>(operand, lane);
  }
}

uint64_t truncate(uint64_t value, unsigned bytes) {
  return bytes >= 8 ? value : value & ((uint64_t(1) << (8 * bytes)) - 1);
}
int64_t extend(uint64_t value, unsigned bytes) {
  unsigned shift = 64 - 8 * bytes;
  return int64_t(value << shift) >> shift;
}

// The source value: `value` of a float, else sign and `magnitude`.
struct Number {
  bool isFloat = false;
  bool isNegative = false;
  uint64_t magnitude = 0;
  double value = 0;
};

Number read(const ConvertInfo &info, uint64_t bits) {
  Number number;
  unsigned bytes = getBytes(info.from);
  if (isFloat(info.from)) {
    number.isFloat = true;
    switch (info.from) {
    case Type::F16:
      number.value = toDouble(Half{uint16_t(bits)});
      break;
    case Type::BF16:
      number.value = toDouble(BFloat{uint16_t(bits)});
      break;
    case Type::F32: {
      float value = bitCast<float>(uint32_t(bits));
      number.value = info.isFlushed ? flush(value) : value;
      break;
    }
    default:
      number.value = bitCast<double>(bits);
      break;
    }
  } else if (isSigned(info.from)) {
    int64_t value = extend(bits, bytes);
    number.isNegative = value < 0;
    number.magnitude = value < 0 ? -uint64_t(value) : uint64_t(value);
  } else {
    number.magnitude = truncate(bits, bytes);
  }
  return number;
}

double roundToIntegral(double value, Rounding rounding) {
  switch (rounding) {
  case Rounding::Zero:
    return std::trunc(value);
  case Rounding::Down:
    return std::floor(value);
  case Rounding::Up:
    return std::ceil(value);
  default:
    return std::nearbyint(value);
  }
}

uint64_t writeInteger(const ConvertInfo &info, const Number &number) {
  unsigned width = 8 * getBytes(info.to);
  bool isToSigned = isSigned(info.to);
  uint64_t max =
      isToSigned ? ~uint64_t(0) >> (65 - width) : ~uint64_t(0) >> (64 - width);
  uint64_t minMagnitude = isToSigned ? max + 1 : 0;
  if (!number.isFloat) {
    if (!info.isSaturated)
      return number.isNegative ? -number.magnitude : number.magnitude;
    return number.isNegative ? -std::min(number.magnitude, minMagnitude)
                             : std::min(number.magnitude, max);
  }
  // Floats are clamped to the range of the result.
  double value = number.value;
  if (value != value) {
    bool isWide = info.from == Type::F64 || width == 64;
    return isWide ? uint64_t(1) << (width - 1) : 0;
  }
  value = roundToIntegral(value, info.rounding);
  if (value < 0)
    return -(-value >= double(minMagnitude) ? minMagnitude : uint64_t(-value));
  return value >= std::ldexp(1.0, width - isToSigned) ? max : uint64_t(value);
}

template <typename F>
uint64_t writeFormat(const ConvertInfo &info, const Number &number) {
  if (!number.isFloat) {
    if (info.isSaturated)
      return roundInteger<F>(
          false,
          number.isNegative ? 0 : std::min(number.magnitude, uint64_t(1)),
          info.rounding);
    return roundInteger<F>(number.isNegative, number.magnitude, info.rounding);
  }
  double value = number.value;
  if (info.isInteger)
    value = roundToIntegral(value, info.rounding);
  if (info.isSaturated)
    value = saturate(value);
  if (info.isRelu && value < 0)
    value = 0;
  return roundDouble<F>(value,
                        info.isInteger ? Rounding::Nearest : info.rounding);
}

uint64_t writeFloat(const ConvertInfo &info, const Number &number) {
  switch (info.to) {
  case Type::F16:
    return writeFormat<F16Format>(info, number);
  case Type::BF16:
    return writeFormat<BF16Format>(info, number);
  case Type::F32: {
    uint32_t bits = writeFormat<F32Format>(info, number);
    return info.isFlushed ? bitCast<uint32_t>(flush(bitCast<float>(bits)))
                          : bits;
  }
  default:
    return writeFormat<F64Format>(info, number);
  }
}

void writeBits(Warp &warp, const Operand &operand, unsigned lane,
               uint64_t value) {
  switch (operand.bytes) {
  case 2:
    return warp.set<uint16_t>(operand, lane, value);
  case 4:
    return warp.set<uint32_t>(operand, lane, value);
  default:
    return warp.set<uint64_t>(operand, lane, value);
  }
}

// Runs any conversion. chooseQuick() has faster handlers for frequent ones.
void runConvert(Warp &warp, const Instruction &instruction, LaneMask mask) {
  const auto &info = *static_cast<const ConvertInfo *>(instruction.extra);
  const Operand &to = instruction.operands[0], &from = instruction.operands[1];
  unsigned bytes = getBytes(info.to);
  forLanes(mask, [&](unsigned lane) {
    uint64_t bits = readUnsigned(warp, from, lane);
    Number number = read(info, bits);
    if (isFloat(info.to)) {
      writeBits(warp, to, lane, writeFloat(info, number));
      return;
    }
    // A wider destination register is sign- or zero-extended.
    uint64_t value = truncate(writeInteger(info, number), bytes);
    writeBits(warp, to, lane,
              isSigned(info.to) ? uint64_t(extend(value, bytes)) : value);
  });
}

template <typename To, typename From> To extendLane(From from) { return from; }

uint32_t halfToFloat(uint16_t bits) {
  return uint32_t(
      roundDouble<F32Format>(toDouble(Half{bits}), Rounding::Nearest));
}
uint32_t bfloatToFloat(uint16_t bits) {
  return (bits & 0x7fff) > 0x7f80 ? 0x7fffffff : uint32_t(bits) << 16;
}
uint16_t floatToBFloat(uint32_t bits) {
  if ((bits & 0x7fffffff) > 0x7f800000)
    return 0x7fff;
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}
uint16_t floatToHalf(uint32_t bits) {
  return roundDouble<F16Format>(bitCast<float>(bits), Rounding::Nearest);
}
// The first operand becomes the upper half.
uint32_t pairToBFloats(uint32_t a, uint32_t b) {
  return uint32_t(floatToBFloat(a)) << 16 | floatToBFloat(b);
}
uint32_t pairToHalves(uint32_t a, uint32_t b) {
  return uint32_t(floatToHalf(a)) << 16 | floatToHalf(b);
}

void runPair(Warp &warp, const Instruction &instruction, LaneMask mask) {
  const auto &info = *static_cast<const ConvertInfo *>(instruction.extra);
  ConvertInfo each = info;
  each.from = Type::F32;
  each.to = info.to == Type::F16x2 ? Type::F16 : Type::BF16;
  forLanes(mask, [&](unsigned lane) {
    uint32_t result = 0;
    for (unsigned i : {1, 2})
      result = result << 16 |
               writeFloat(each, read(each, warp.get<uint32_t>(
                                               instruction.operands[i], lane)));
    warp.set<uint32_t>(instruction.operands[0], lane, result);
  });
}

// Returns a specialized handler for a frequent conversion, or null.
Handler chooseQuick(const ConvertInfo &info) {
  if (info.isFlushed || info.isSaturated || info.isRelu || info.isInteger ||
      info.fromBytes != getBytes(info.from) ||
      info.toBytes != getBytes(info.to))
    return nullptr;
  auto is = [&](Type to, Type from) {
    return info.to == to && info.from == from;
  };
  if (is(Type::U64, Type::U32) || is(Type::S64, Type::U32))
    return lanes<extendLane<uint64_t, uint32_t>>;
  if (is(Type::S64, Type::S32) || is(Type::U64, Type::S32))
    return lanes<extendLane<int64_t, int32_t>>;
  if (is(Type::U32, Type::U64) || is(Type::S32, Type::S64))
    return lanes<extendLane<uint32_t, uint64_t>>;
  if (is(Type::U32, Type::U16))
    return lanes<extendLane<uint32_t, uint16_t>>;
  if (is(Type::F32, Type::F16))
    return lanes<halfToFloat>;
  if (is(Type::F32, Type::BF16))
    return lanes<bfloatToFloat>;
  if (info.rounding == Rounding::Nearest && is(Type::BF16, Type::F32))
    return lanes<floatToBFloat>;
  if (info.rounding == Rounding::Nearest && is(Type::F16, Type::F32))
    return lanes<floatToHalf>;
  return nullptr;
}

bool decodePair(Decoder &d, ConvertInfo &info, bool hasRounding) {
  if (info.from != Type::F32 || !hasRounding)
    return d.fail(
        "expected .f32 and a rounding modifier to convert to a packed type");
  if (!d.expectOperands(3) || !d.uniformOperands(4))
    return false;
  bool isPlain =
      info.rounding == Rounding::Nearest && !info.isRelu && !info.isSaturated;
  d.keepExtra(info);
  if (!isPlain)
    return d.finish(runPair);
  return d.finish(info.to == Type::F16x2 ? lanes<pairToHalves>
                                         : lanes<pairToBFloats>);
}

bool decodeConvert(Decoder &d) {
  ConvertInfo info;
  std::optional<Rounding> rounding = takeRounding(d);
  StringRef integral = d.takeOneOf({".rni", ".rzi", ".rmi", ".rpi"});
  if (!d.takeType(info.to) || !d.takeType(info.from))
    return false;
  info.isInteger = !integral.empty();
  info.rounding = integral == ".rzi"   ? Rounding::Zero
                  : integral == ".rmi" ? Rounding::Down
                  : integral == ".rpi" ? Rounding::Up
                                       : rounding.value_or(Rounding::Nearest);
  info.isFlushed = d.has(".ftz");
  info.isSaturated = d.has(".sat");
  info.isRelu = d.has(".relu");
  if (info.to == Type::F16x2 || info.to == Type::BF16x2)
    return decodePair(d, info, rounding.has_value());
  for (Type type : {info.to, info.from})
    if (type == Type::F16x2 || type == Type::BF16x2 || isBits(type) ||
        type == Type::Pred)
      return d.fail("unsupported type in cvt");
  bool isFromFloat = isFloat(info.from), isToFloat = isFloat(info.to);
  // A rounding modifier is required exactly where a conversion is inexact.
  bool isNarrowing =
      isToFloat &&
      (!isFromFloat || getBytes(info.to) < getBytes(info.from) ||
       (info.to != info.from && getBytes(info.to) == getBytes(info.from)));
  if (isNarrowing && !rounding && !info.isInteger)
    return d.fail("expected a rounding modifier on this conversion");
  if (isFromFloat && !isToFloat && !info.isInteger)
    return d.fail("expected .rni, .rzi, .rmi or .rpi on this conversion");
  if (info.isInteger && !isFromFloat)
    return d.fail(
        "unexpected rounding to an integer: the source is an integer");
  if (rounding && (!isToFloat || !isNarrowing))
    return d.fail("unexpected rounding modifier: the conversion is exact");
  if (!d.expectOperands(2) ||
      !d.wideDest(d.getSyntax().operands[0], std::max(getBytes(info.to), 1u)) ||
      !d.wideSource(d.getSyntax().operands[1], getBytes(info.from)))
    return false;
  info.toBytes = d.getOperand(0).bytes;
  info.fromBytes = d.getOperand(1).bytes;
  if (info.toBytes > 8 || info.fromBytes > 8)
    return d.fail("128-bit registers are not supported in cvt");
  d.keepExtra(info);
  Handler quick = chooseQuick(info);
  return d.finish(quick ? quick : runConvert);
}

} // namespace

void addConvertInstructions(OpcodeTable &table) {
  table["cvt"] = decodeConvert;
}

} // namespace posenc::ptx
