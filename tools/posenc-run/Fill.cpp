//===- Fill.cpp - values of generated inputs ------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc-run/Fill.h"

#include "DType.h"

#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir::posenc;
using llvm::StringRef;
using ::posenc::reference::DType;
using ::posenc::runtime::Array;
namespace reference = ::posenc::reference;

namespace {

/// SplitMix64 (Steele, Lea and Flood, 2014) and the Box-Muller transform. They
/// are implemented here because the distributions of the C++ library differ
/// between implementations.
class Generator {
public:
  explicit Generator(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  double nextNormal() {
    if (hasSpare) {
      hasSpare = false;
      return spare;
    }
    // In (0, 1], so that the logarithm is finite.
    double u = double((next() >> 11) + 1) * 0x1p-53;
    double angle = 2 * 3.14159265358979323846 * double(next() >> 11) * 0x1p-53;
    double radius = std::sqrt(-2 * std::log(u));
    spare = radius * std::sin(angle);
    hasSpare = true;
    return radius * std::cos(angle);
  }

private:
  uint64_t state;
  double spare = 0;
  bool hasSpare = false;
};

} // namespace

/// Rounds a number to a type and returns its bits. Normal numbers of f16 and
/// bf16, which most values are, take a fast path: encode() takes several times
/// as long as generating the number.
static uint64_t roundToBits(DType type, long double value) {
  bool isHalf = type == DType::F16, isBrain = type == DType::BF16;
  double narrow = static_cast<double>(value);
  auto size = std::fabs(narrow);
  if (!(isHalf || isBrain) || narrow != value ||
      !(size >= (isHalf ? 0x1p-14 : 0x1p-126)) ||
      !(size < (isHalf ? 0x1p15 : 0x1p127)))
    return reference::encode(type, value);
  uint64_t bits = llvm::bit_cast<uint64_t>(size);
  int fraction = isHalf ? 10 : 7, bias = isHalf ? 15 : 127;
  int shift = 52 - fraction;
  // Rounds to nearest, ties to even. A carry increments the exponent.
  bits += (uint64_t(1) << (shift - 1)) - 1 + ((bits >> shift) & 1);
  bits = (bits >> shift) - (uint64_t(1023 - bias) << fraction);
  return bits | (uint64_t(std::signbit(narrow)) << 15);
}

/// Stores next() in every element, rounded to the array's type.
template <typename Next>
static llvm::Error fill(const Array &array, Next next) {
  if (array.dtype() == POSENC_I1) {
    for (size_t i = 0; i < array.numElements(); ++i)
      array.dataAs<uint8_t>()[i] = next(static_cast<int64_t>(i)) != 0;
    return llvm::Error::success();
  }
  std::optional<DType> type = getOracleType(array.dtype());
  if (!type)
    return llvm::createStringError(
        llvm::Twine("cannot generate values of type ") +
        posenc_dtype_name(array.dtype()));
  int64_t count = array.numElements();
  if (array.dtype() == POSENC_U8) {
    for (int64_t i = 0; i < count; ++i)
      array.dataAs<uint8_t>()[i] =
          static_cast<uint8_t>(static_cast<int64_t>(next(i)));
    return llvm::Error::success();
  }
  if (*type == DType::F32) {
    for (int64_t i = 0; i < count; ++i)
      array.dataAs<float>()[i] = static_cast<float>(next(i));
    return llvm::Error::success();
  }
  for (int64_t i = 0; i < count; ++i)
    reference::storeBits(*type, array.data(), i, roundToBits(*type, next(i)));
  return llvm::Error::success();
}

static bool isInteger(const Array &array) {
  if (array.dtype() == POSENC_I1)
    return true;
  std::optional<DType> type = getOracleType(array.dtype());
  return type && !reference::isFloat(*type);
}

llvm::Error mlir::posenc::fillRandom(const Array &array, uint64_t seed) {
  Generator generator(seed);
  uint64_t count = array.dtype() == POSENC_I1 ? 2 : 4096;
  // Bytes hold quantized numbers, which use the whole range.
  if (array.dtype() == POSENC_I8 || array.dtype() == POSENC_U8)
    return fill(array, [&](int64_t) -> long double {
      return static_cast<long double>(generator.next() % 256) - 128;
    });
  if (isInteger(array))
    return fill(array, [&](int64_t) -> long double {
      return static_cast<long double>(generator.next() % count);
    });
  return fill(array, [&](int64_t) { return generator.nextNormal(); });
}

llvm::Error mlir::posenc::fillIota(const Array &array) {
  return fill(array, [](int64_t i) { return static_cast<long double>(i); });
}

llvm::Error mlir::posenc::fillValue(const Array &array, StringRef value) {
  if (isInteger(array)) {
    llvm::Expected<int64_t> number = parseInteger(array.dtype(), value);
    if (!number)
      return number.takeError();
    return fill(array, [&](int64_t) -> long double {
      return static_cast<long double>(*number);
    });
  }
  llvm::Expected<double> number = parseReal(value);
  if (!number)
    return number.takeError();
  return fill(array, [&](int64_t) { return *number; });
}

llvm::Expected<double> mlir::posenc::parseReal(StringRef text) {
  double number;
  if (text.getAsDouble(number))
    return llvm::createStringError("'" + text.take_front(24) +
                                   "' is not a number");
  return number;
}

llvm::Expected<int64_t> mlir::posenc::parseInteger(posenc_dtype dtype,
                                                   StringRef text) {
  int64_t number;
  if (text.getAsInteger(10, number) ||
      (dtype == POSENC_I32 && number != int32_t(number)) ||
      (dtype == POSENC_I8 && number != int8_t(number)) ||
      (dtype == POSENC_U8 && number != uint8_t(number)) ||
      (dtype == POSENC_I1 && number != (number & 1)))
    return llvm::createStringError("expected an integer of type " +
                                   llvm::Twine(posenc_dtype_name(dtype)) +
                                   ", got '" + text.take_front(24) + "'");
  return number;
}
