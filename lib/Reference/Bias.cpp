//===- Bias.cpp - biases on attention scores ------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Reference/Bias.h"

#include "Fatal.h"
#include "posenc/Reference/Real.h"

#include <algorithm>
#include <cmath>

namespace posenc::reference {

double alibiSlope(int64_t head, int64_t heads) {
  requireEmpty(head >= 0 && head < heads ? "" : "the head is out of range");
  int64_t n = 1;
  while (n <= heads / 2)
    n *= 2;
  if (head < n)
    return std::exp2(-8.0 * double(head + 1) / double(n));
  return std::exp2(-4.0 * double(2 * (head - n) + 1) / double(n));
}

double alibiBias(int64_t head, int64_t heads, int64_t queryPosition,
                 int64_t keyPosition) {
  return -alibiSlope(head, heads) *
         std::fabs(double(queryPosition) - double(keyPosition));
}

/// Returns the number of buckets of one direction.
static int64_t bucketsPerSide(const T5Buckets &spec) {
  return spec.bidirectional ? spec.buckets / 2 : spec.buckets;
}

std::string check(const T5Buckets &spec) {
  if (spec.bidirectional && spec.buckets % 2 != 0)
    return "expected an even number of buckets for two directions";
  int64_t exact = bucketsPerSide(spec) / 2;
  if (exact < 1)
    return "there are too few buckets";
  if (spec.maxDistance <= exact)
    return "maxDistance must exceed the number of buckets of a single distance";
  return {};
}

int64_t t5Bucket(int64_t relative, const T5Buckets &spec) {
  requireEmpty(check(spec));
  const int64_t n = bucketsPerSide(spec), exact = n / 2;
  int64_t first = spec.bidirectional && relative > 0 ? n : 0;
  if (!spec.bidirectional)
    relative = std::min<int64_t>(relative, 0);
  // The negated distance, since the distance of INT64_MIN does not fit.
  int64_t negative = relative > 0 ? -relative : relative;
  if (negative > -exact)
    return first - negative;
  if (negative <= -spec.maxDistance)
    return first + n - 1;
  Real fraction = log(Real(-negative) / Real(exact)) /
                  log(Real(spec.maxDistance) / Real(exact));
  // If the exact number is an integer, such as log 2 / log 16 * 8, its
  // approximation may be below it. No other number is that close to an integer.
  Real step = floor(fraction * Real(n - exact) + Real(0x1p-200));
  return first + std::min(n - 1, exact + int64_t(step.toLongDouble()));
}

int64_t shawIndex(int64_t query, int64_t key, int64_t limit) {
  return std::min(std::max(key - query, -limit), limit) + limit;
}

double softCap(double score, double cap) {
  return cap * std::tanh(score / cap);
}

Array relShift(const Array &scores) {
  const size_t rank = scores.shape.size();
  requireEmpty(rank >= 2 ? "" : "expected at least two dimensions");
  const int64_t queries = scores.shape[rank - 2];
  const int64_t columns = scores.shape[rank - 1];
  const int64_t size = queries * columns;
  Array result;
  result.shape = scores.shape;
  result.values.resize(scores.values.size());
  for (int64_t i = 0; i < int64_t(scores.values.size()); ++i) {
    int64_t matrix = i / size * size;
    int64_t padded = i % size + queries;
    int64_t row = padded / (columns + 1), column = padded % (columns + 1);
    if (column > 0)
      result.values[size_t(i)] =
          scores.values[size_t(matrix + row * columns + column - 1)];
  }
  return result;
}

} // namespace posenc::reference
