//===- Arguments.cpp - shapes and contents of the tensors -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"

#include "Device.h"

#include <cmath>
#include <cstring>
#include <utility>

using namespace posenc;
using namespace posenc::hardware;
using runtime::Dim;

bool hardware::isFloating(posenc_dtype dtype) {
  return dtype == POSENC_F64 || dtype == POSENC_F32 || dtype == POSENC_F16 ||
         dtype == POSENC_BF16;
}

int64_t hardware::countElements(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

std::vector<int64_t> hardware::getShape(const posenc_function &function,
                                        const posenc_argument &argument,
                                        const std::vector<int64_t> &sizes) {
  if (sizes.size() != function.sizes.size())
    throw Failure(
        function.name + " has " + std::to_string(function.sizes.size()) +
        " dynamic sizes, but " + std::to_string(sizes.size()) + " are given");
  std::vector<int64_t> shape;
  for (const Dim &dim : argument.shape) {
    if (dim.kind == Dim::Kind::Scalar)
      throw Failure(function.name +
                    ": sizes given by scalars are not supported");
    shape.push_back(dim.kind == Dim::Kind::Static ? dim.value
                                                  : sizes.at(dim.value));
  }
  return shape;
}

// xorshift64*, by George Marsaglia and Sebastiano Vigna.
uint64_t Random::operator()() {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545f4914f6cdd1d;
}

static int64_t getPosition(Order order, int64_t index, Random &random) {
  static const int64_t extremes[] = {0x7fffffff, -0x7fffffff - 1, 0, -1,
                                     131071};
  if (order != Order::Extreme)
    return index;
  uint64_t bits = random();
  return bits % 4 == 0 ? extremes[(bits >> 8) % 5] : int32_t(bits >> 32);
}

void hardware::fill(void *data, posenc_dtype dtype, int64_t count, Order order,
                    uint64_t seed) {
  Random random(seed);
  for (int64_t i = 0; i < count; ++i) {
    auto put = [&](auto value) {
      std::memcpy(static_cast<char *>(data) + i * sizeof(value), &value,
                  sizeof(value));
    };
    // At most 24 significant bits, which f32 and f64 represent exactly.
    auto getFloat = [&] {
      return std::ldexp(float(int32_t(random() >> 32) >> 8), -21);
    };
    switch (dtype) {
    case POSENC_F64:
      put(double(getFloat()));
      break;
    case POSENC_F32:
      put(getFloat());
      break;
    case POSENC_F16:
      // Magnitudes from 2^-3 to 2^2.
      put(uint16_t((random() >> 32 & 0x8fff) + 0x3000));
      break;
    case POSENC_BF16: {
      float value = getFloat();
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      put(uint16_t(bits >> 16));
      break;
    }
    case POSENC_I32:
      put(int32_t(getPosition(order, i, random)));
      break;
    case POSENC_I64:
    case POSENC_INDEX:
      put(getPosition(order, i, random));
      break;
    default:
      throw Failure("unsupported element type of a tensor");
    }
  }
  if (order != Order::Shuffled || isFloating(dtype))
    return;
  auto shuffle = [&](auto *numbers) {
    for (int64_t i = count; i > 1; --i)
      std::swap(numbers[i - 1], numbers[random() % i]);
  };
  if (dtype == POSENC_I32)
    shuffle(static_cast<int32_t *>(data));
  else
    shuffle(static_cast<int64_t *>(data));
}

// The method of Box and Muller.
static float getNormal(Random &random) {
  double radius =
      std::sqrt(-2 * std::log((double(random() >> 12) + 1) * 0x1p-52));
  return float(radius * std::cos(double(random() >> 12) *
                                 (6.283185307179586 * 0x1p-52)));
}

/// Rounds to f16. Numbers below the smallest normal one become 0.
static uint16_t toHalf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  constexpr uint32_t rebias = (127 - 15) << 23, smallest = rebias + (1 << 23);
  if (magnitude < smallest)
    return uint16_t(sign);
  return uint16_t(sign |
                  (magnitude - rebias + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

void hardware::fillNormal(void *data, posenc_dtype dtype, int64_t count,
                          uint64_t seed) {
  Random random(seed);
  for (int64_t i = 0; i < count; ++i) {
    auto put = [&](auto value) {
      std::memcpy(static_cast<char *>(data) + i * sizeof(value), &value,
                  sizeof(value));
    };
    // A sign and a number from the first up to the last bit pattern.
    auto getByte = [&](int first, int last) {
      uint64_t bits = random();
      return uint8_t((bits >> 40 & 0x80) |
                     (first + (bits >> 32) % (last - first)));
    };
    switch (dtype) {
    case POSENC_F64:
      put(double(getNormal(random)));
      break;
    case POSENC_F32:
      put(getNormal(random));
      break;
    case POSENC_F16:
      put(toHalf(getNormal(random)));
      break;
    case POSENC_BF16: {
      float value = getNormal(random);
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      put(uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
      break;
    }
    case POSENC_F8E4M3FN:
      put(getByte(0x20, 0x48)); // from 0.125 up to 4
      break;
    case POSENC_F8E5M2:
      put(getByte(0x30, 0x44)); // from 0.125 up to 4
      break;
    case POSENC_I8:
      put(getByte(0, 0x80));
      break;
    case POSENC_I1:
      put(uint8_t(random() >> 63));
      break;
    case POSENC_I32:
      put(int32_t(random() >> 52));
      break;
    case POSENC_I64:
    case POSENC_INDEX:
      put(int64_t(random() >> 52));
      break;
    default:
      throw Failure("unsupported element type of a tensor");
    }
  }
}
