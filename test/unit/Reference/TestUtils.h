//===- TestUtils.h - helpers of the reference tests -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_UNIT_REFERENCE_TESTUTILS_H
#define POSENC_TEST_UNIT_REFERENCE_TESTUTILS_H

#include "posenc/Reference/Compare.h"
#include "posenc/Reference/Ops.h"

#include <gtest/gtest.h>

#include <random>

namespace posenc::reference {

inline FrequencySpec plainSpec(int64_t dim, double base = 10000.0) {
  FrequencySpec spec;
  spec.dim = dim;
  spec.base = base;
  return spec;
}

/// Returns frequencies of a scaling: the second half is divided by 4, and there
/// is an attention factor.
inline FrequencySpec scaledSpec(int64_t dim = 16) {
  FrequencySpec spec = plainSpec(dim);
  spec.list = computeFrequencies(dim, spec.base);
  for (size_t i = spec.list.size() / 2; i < spec.list.size(); ++i)
    spec.list[i] = spec.list[i] / Real(4);
  spec.attentionFactor = Real(1.138);
  return spec;
}

/// Returns standard normal values, rounded to \p type.
inline Array randomArray(std::vector<int64_t> shape, DType type,
                         unsigned seed = 7) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  Array result;
  result.values.resize(size_t(numElements(shape)));
  for (long double &value : result.values)
    value = roundTo(type, normal(generator));
  result.shape = std::move(shape);
  return result;
}

inline RotateOptions rotateAlong(std::vector<int64_t> positionDims,
                                 bool interleaved = false) {
  RotateOptions options;
  options.positionDims = std::move(positionDims);
  options.interleaved = interleaved;
  return options;
}

/// Succeeds if |a - b| <= bound * |b|.
inline ::testing::AssertionResult isClose(long double a, long double b,
                                          long double bound) {
  if (std::fabs(a - b) <= bound * std::fabs(b))
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << double(a) << " is not close to " << double(b);
}

} // namespace posenc::reference

#endif // POSENC_TEST_UNIT_REFERENCE_TESTUTILS_H
