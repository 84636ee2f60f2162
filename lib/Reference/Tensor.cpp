//===- Tensor.cpp - tensors and element types of the oracle ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Reference/Tensor.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

namespace posenc::reference {

static_assert(std::numeric_limits<long double>::digits >= 64,
              "the oracle needs a long double wider than double");

namespace {
/// A binary floating-point format. All formats share the same routines, so
/// exhaustive tests of the 16-bit formats also cover the others.
struct Format {
  size_t bytes;
  int precision; ///< Significant bits, including the hidden bit; 0: integer.
  int minExponent;
  int maxExponent;
  /// If false, the largest exponent encodes numbers and a single NaN.
  bool hasInfinity = true;

  int fractionBits() const { return precision - 1; }
  uint64_t signBit() const { return uint64_t(1) << (8 * bytes - 1); }
  uint64_t infinity() const {
    return uint64_t(maxExponent - minExponent + 2) << fractionBits();
  }
  uint64_t hiddenBit() const { return uint64_t(1) << fractionBits(); }
  uint64_t nan() const {
    return hasInfinity ? infinity() | (hiddenBit() >> 1) : signBit() - 1;
  }
};
} // namespace

static Format formatOf(DType type) {
  switch (type) {
  case DType::F64:
    return {8, 53, -1022, 1023};
  case DType::F32:
    return {4, 24, -126, 127};
  case DType::F16:
    return {2, 11, -14, 15};
  case DType::BF16:
    return {2, 8, -126, 127};
  case DType::I64:
    return {8, 0, 0, 0};
  case DType::I32:
    return {4, 0, 0, 0};
  case DType::I8:
    return {1, 0, 0, 0};
  case DType::F8E4M3:
    return {1, 4, -6, 8, /*hasInfinity=*/false};
  case DType::F8E5M2:
    return {1, 3, -14, 15};
  }
  return {0, 0, 0, 0};
}

int64_t numElements(const std::vector<int64_t> &shape) {
  int64_t result = 1;
  for (int64_t dim : shape)
    result *= dim;
  return result;
}

std::vector<int64_t> unflatten(const std::vector<int64_t> &shape,
                               int64_t flat) {
  assert(flat >= 0 && flat < numElements(shape) && "there is no such element");
  std::vector<int64_t> index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    index[dim] = flat % shape[dim];
    flat /= shape[dim];
  }
  return index;
}

size_t byteWidth(DType type) { return formatOf(type).bytes; }

bool isFloat(DType type) { return formatOf(type).precision != 0; }

/// Returns the exponent of \p magnitude, clamped to that of normal numbers.
static int binade(const Format &format, long double magnitude) {
  if (magnitude == 0)
    return format.minExponent;
  if (!std::isfinite(magnitude))
    return format.maxExponent;
  int exponent = std::ilogb(magnitude);
  return std::min(std::max(exponent, format.minExponent), format.maxExponent);
}

static uint64_t encodeInteger(DType type, long double value) {
  if (std::isnan(value))
    return 0;
  long double low = -overflowBound(type);
  long double high = -(low + 1);
  long double held = std::fmin(std::fmax(std::nearbyint(value), low), high);
  uint64_t bits = uint64_t(int64_t(held));
  if (type == DType::I8)
    return uint8_t(bits);
  return type == DType::I64 ? bits : uint32_t(bits);
}

uint64_t encode(DType type, long double value) {
  Format format = formatOf(type);
  if (!isFloat(type))
    return encodeInteger(type, value);
  uint64_t sign = std::signbit(value) ? format.signBit() : 0;
  if (std::isnan(value))
    return sign | format.nan();
  long double size = std::fabs(value);
  uint64_t beyond = format.hasInfinity ? format.infinity() : format.nan();
  if (size >= overflowBound(type))
    return sign | beyond;
  int exponent = binade(format, size);
  // `units` is the significand in units of the spacing. A normal number has its
  // hidden bit set, which increments the exponent field from 0; a subnormal one
  // has not. A carry of the rounding also increments the field, up to infinity.
  // std::nearbyint would save and restore the exception flags.
  long double units =
      std::rint(std::ldexp(size, format.fractionBits() - exponent));
  uint64_t field = uint64_t(exponent - format.minExponent);
  uint64_t rounded = (field << format.fractionBits()) + uint64_t(units);
  return sign | std::min(rounded, beyond);
}

long double decode(DType type, uint64_t bits) {
  if (type == DType::I64)
    return (long double)(int64_t(bits));
  if (type == DType::I32)
    return (long double)(int32_t(uint32_t(bits)));
  if (type == DType::I8)
    return (long double)(int8_t(uint8_t(bits)));
  Format format = formatOf(type);
  uint64_t fraction = bits & (format.hiddenBit() - 1);
  uint64_t field = (bits & (format.signBit() - 1)) >> format.fractionBits();
  long double size;
  if (!format.hasInfinity && (bits & (format.signBit() - 1)) == format.nan()) {
    size = std::numeric_limits<long double>::quiet_NaN();
  } else if (format.hasInfinity &&
             (field << format.fractionBits()) == format.infinity()) {
    size = fraction ? std::numeric_limits<long double>::quiet_NaN()
                    : std::numeric_limits<long double>::infinity();
  } else {
    uint64_t units = field ? fraction | format.hiddenBit() : fraction;
    int exponent = format.minExponent + (field ? int(field) - 1 : 0);
    size = std::ldexp((long double)(units), exponent - format.fractionBits());
  }
  return bits & format.signBit() ? -size : size;
}

uint64_t loadBits(DType type, const void *data, int64_t index) {
  size_t width = byteWidth(type);
  const auto *from = static_cast<const uint8_t *>(data) + size_t(index) * width;
  // Loads an integer of the same width, which is correct in any byte order.
  if (width == 1)
    return *from;
  if (width == 2) {
    uint16_t bits;
    std::memcpy(&bits, from, width);
    return bits;
  }
  if (width == 4) {
    uint32_t bits;
    std::memcpy(&bits, from, width);
    return bits;
  }
  uint64_t bits;
  std::memcpy(&bits, from, sizeof(bits));
  return bits;
}

void storeBits(DType type, void *data, int64_t index, uint64_t bits) {
  size_t width = byteWidth(type);
  auto *to = static_cast<uint8_t *>(data) + size_t(index) * width;
  auto half = uint16_t(bits);
  auto single = uint32_t(bits);
  if (width == 1)
    *to = uint8_t(bits);
  else if (width == 2)
    std::memcpy(to, &half, width);
  else if (width == 4)
    std::memcpy(to, &single, width);
  else
    std::memcpy(to, &bits, sizeof(bits));
}

Array fromBytes(DType type, const void *data, std::vector<int64_t> shape) {
  Array result;
  result.values.resize(size_t(numElements(shape)));
  for (size_t i = 0; i < result.values.size(); ++i)
    result.values[i] = decode(type, loadBits(type, data, int64_t(i)));
  result.shape = std::move(shape);
  return result;
}

std::vector<uint8_t> toBytes(DType type, const Array &array) {
  std::vector<uint8_t> result(array.values.size() * byteWidth(type));
  for (size_t i = 0; i < array.values.size(); ++i)
    storeBits(type, result.data(), int64_t(i), encode(type, array.values[i]));
  return result;
}

long double roundTo(DType type, long double value) {
  return decode(type, encode(type, value));
}

long double ulp(DType type, long double magnitude) {
  if (!isFloat(type))
    return 1;
  Format format = formatOf(type);
  return std::ldexp(1.0L, binade(format, std::fabs(magnitude)) -
                              format.fractionBits());
}

long double overflowBound(DType type) {
  if (!isFloat(type))
    return std::ldexp(1.0L, 8 * int(byteWidth(type)) - 1);
  return std::ldexp(1.0L, formatOf(type).maxExponent + 1);
}

long double largestFinite(DType type) {
  if (!isFloat(type))
    return overflowBound(type) - 1;
  Format format = formatOf(type);
  uint64_t beyond = format.hasInfinity ? format.infinity() : format.nan();
  return decode(type, beyond - 1);
}

long double smallestNormal(DType type) {
  return isFloat(type) ? std::ldexp(1.0L, formatOf(type).minExponent) : 0;
}

} // namespace posenc::reference
