//===- Compare.cpp - differences of results -------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compare.h"

#include "Arguments.h"
#include "Device.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace posenc;
using namespace posenc::hardware;
using runtime::Array;

bool hardware::hasSameBits(const Array &left, const Array &right) {
  size_t size = left.sizeInBytes();
  return size == right.sizeInBytes() &&
         (size == 0 || std::memcmp(left.data(), right.data(), size) == 0);
}

static double halfToDouble(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 0   ? std::ldexp(fraction, -24)
                 : exponent < 31 ? std::ldexp(1024 + fraction, exponent - 25)
                 : fraction      ? std::numeric_limits<double>::quiet_NaN()
                                 : std::numeric_limits<double>::infinity();
  return bits >> 15 ? -value : value;
}

/// Converts a number of 8 bits, of which `mantissa` are behind the point.
static double byteToDouble(uint8_t bits, int mantissa, bool hasInfinity) {
  int exponent = (bits & 0x7f) >> mantissa, bias = (1 << (6 - mantissa)) - 1;
  int fraction = bits & ((1 << mantissa) - 1), most = (0x7f >> mantissa);
  double value = exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                               : std::ldexp((1 << mantissa) + fraction,
                                            exponent - bias - mantissa);
  if (hasInfinity && exponent == most)
    value = fraction ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  else if (!hasInfinity && (bits & 0x7f) == 0x7f)
    value = std::numeric_limits<double>::quiet_NaN();
  return bits >> 7 ? -value : value;
}

bool hardware::isNumeric(posenc_dtype dtype) {
  return isFloating(dtype) || dtype == POSENC_F8E4M3FN ||
         dtype == POSENC_F8E5M2;
}

static double getElement(const Array &array, int64_t index) {
  switch (array.dtype()) {
  case POSENC_F64:
    return array.dataAs<double>()[index];
  case POSENC_F32:
    return array.dataAs<float>()[index];
  case POSENC_F16:
    return halfToDouble(array.dataAs<uint16_t>()[index]);
  case POSENC_BF16: {
    uint32_t bits = uint32_t(array.dataAs<uint16_t>()[index]) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  case POSENC_F8E4M3FN:
    return byteToDouble(array.dataAs<uint8_t>()[index], 3, false);
  case POSENC_F8E5M2:
    return byteToDouble(array.dataAs<uint8_t>()[index], 2, true);
  default:
    throw Failure("a result is no floating-point tensor");
  }
}

static double divide(double error, double norm) {
  return error == 0 ? 0 : std::sqrt(error / norm);
}

Distance hardware::getDistance(const Array &result, const Array &expected) {
  Distance distance;
  int64_t count = expected.numElements();
  int64_t row = expected.shape().empty() ? 1 : expected.shape().back();
  double error = 0, norm = 0, rowError = 0, rowNorm = 0;
  for (int64_t i = 0; i < count; ++i) {
    double value = getElement(result, i), right = getElement(expected, i);
    if (!std::isfinite(value) || !std::isfinite(right)) {
      bool isEqual = std::isnan(right) ? std::isnan(value) : value == right;
      if (!isEqual)
        rowError = std::numeric_limits<double>::infinity();
    } else {
      rowError += (value - right) * (value - right);
      rowNorm += right * right;
    }
    if ((i + 1) % row != 0)
      continue;
    if (divide(rowError, rowNorm) > distance.row) {
      distance.row = divide(rowError, rowNorm);
      distance.rowIndex = i / row;
    }
    error += rowError;
    norm += rowNorm;
    rowError = rowNorm = 0;
  }
  distance.all = divide(error, norm);
  return distance;
}

Distance hardware::getLimit(posenc_dtype dtype) {
  // The limit of GPUs from the reference, and the CPU's rounding.
  switch (dtype) {
  case POSENC_F64:
    return {1e-14, 1e-13};
  case POSENC_F32:
    return {1.2e-5, 5e-5};
  case POSENC_F16:
    return {1.25e-3, 5e-3};
  case POSENC_BF16:
    return {6e-3, 2.4e-2};
  case POSENC_F8E4M3FN:
  case POSENC_F8E5M2:
    // Some elements are the next number, after a norm whose sum has another
    // order.
    return {1e-2, 6e-2};
  default:
    throw Failure("a result is no floating-point tensor");
  }
}
