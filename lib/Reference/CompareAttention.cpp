//===- CompareAttention.cpp - errors of attention results -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Reference/CompareAttention.h"

#include "Parallel.h"

#include <cmath>

namespace posenc::reference {

namespace {
struct ElementError {
  double absolute = 0;
  double ratio = 0;
  const char *mismatch = nullptr;
};

/// The accumulated errors of a range of elements.
struct AttentionRangeError {
  long double squares = 0, refSquares = 0;
  double maxRatio = 0, maxAbs = 0;
  int64_t worst = 0, firstMismatch = 0;
  const char *mismatch = nullptr;

  void add(int64_t element, const ElementError &error, long double ref) {
    if (error.mismatch) {
      if (!mismatch) {
        mismatch = error.mismatch;
        firstMismatch = element;
      }
      return;
    }
    squares += (long double)(error.absolute) * error.absolute;
    if (std::isfinite(ref))
      refSquares += ref * ref;
    maxAbs = std::fmax(maxAbs, error.absolute);
    if (error.ratio > maxRatio) {
      maxRatio = error.ratio;
      worst = element;
    }
  }
};
} // namespace

long double getAttentionLimit(DType type, long double magnitude,
                              double largest) {
  long double spacing = std::fmax(ulp(type, 1) * magnitude, ulp(type, 0.0L));
  long double sumSpacing = type == DType::F64 ? 0x1p-52L : 0x1p-23L;
  return 8 * spacing + 64 * sumSpacing * largest;
}

static ElementError mismatchedElement(const char *reason) {
  return {0, 0, reason};
}

static ElementError compareElement(DType type, long double result,
                                   long double ref, long double magnitude,
                                   double largest) {
  if (std::isnan(result) || std::isnan(ref)) {
    if (std::isnan(result) && std::isnan(ref))
      return {};
    return mismatchedElement(std::isnan(result) ? "a NaN in place of a number"
                                                : "a number in place of a NaN");
  }
  if (std::isinf(ref) || magnitude < 0) {
    if (result == ref)
      return {};
    return mismatchedElement(std::isinf(ref)
                                 ? "another value in place of an infinity"
                                 : "a row without a visible key is not 0");
  }
  if (type == DType::BF16 && result == 0 &&
      std::fabs(ref) < smallestNormal(type))
    return {};
  const bool overflows = std::isinf(result);
  if (overflows) {
    if (result == roundTo(type, ref))
      return {};
    // The infinity counts as the number that would follow the largest one.
    result = std::copysign(overflowBound(type), result);
  }
  ElementError error;
  error.absolute = double(std::fabs(result - ref));
  error.ratio =
      double(error.absolute / getAttentionLimit(type, magnitude, largest));
  if (overflows && !(error.ratio <= 1))
    return mismatchedElement("an infinity in place of a number");
  return error;
}

AttentionComparison
compareAttention(DType type, const void *result, const AttentionResult &ref,
                 const std::optional<std::vector<int64_t>> &shape) {
  AttentionComparison comparison;
  auto mismatch = [&](std::string reason) {
    comparison.mismatch = true;
    comparison.reason = std::move(reason);
  };
  const Array &output = ref.output;
  if (shape && *shape != output.shape) {
    mismatch("the shapes differ");
    return comparison;
  }
  const int64_t count = int64_t(output.values.size());
  if (count != numElements(output.shape) ||
      output.magnitude.size() != size_t(count) || output.shape.empty() ||
      int64_t(ref.largestValue.size()) * output.shape.back() != count) {
    mismatch("the reference's values do not fill its shape");
    return comparison;
  }
  // Each range has its own errors, and they are merged in order, so the result
  // does not depend on the threads.
  constexpr int64_t grain = 1 << 16;
  std::vector<AttentionRangeError> ranges(size_t((count + grain - 1) / grain));
  const int64_t width = output.shape.back();
  parallelFor(count, grain, [&](int64_t begin, int64_t end) {
    AttentionRangeError &range = ranges[size_t(begin / grain)];
    for (int64_t i = begin; i < end; ++i) {
      long double value = decode(type, loadBits(type, result, i));
      range.add(i,
                compareElement(type, value, output.values[size_t(i)],
                               output.magnitude[size_t(i)],
                               ref.largestValue[size_t(i / width)]),
                output.values[size_t(i)]);
    }
  });

  long double squares = 0, refSquares = 0;
  int64_t worst = count ? 0 : -1;
  for (const AttentionRangeError &range : ranges) {
    squares += range.squares;
    refSquares += range.refSquares;
    comparison.maxAbs = std::fmax(comparison.maxAbs, range.maxAbs);
    if (range.mismatch && !comparison.mismatch) {
      mismatch(range.mismatch);
      worst = range.firstMismatch;
    }
    if (range.maxRatio > comparison.maxRatio) {
      comparison.maxRatio = range.maxRatio;
      if (!comparison.mismatch)
        worst = range.worst;
    }
  }
  if (squares > 0)
    comparison.relative = double(std::sqrt(squares / refSquares));
  if (worst >= 0)
    comparison.index = unflatten(output.shape, worst);
  return comparison;
}

double defaultLimitRelative(DType type) {
  switch (type) {
  case DType::F32:
    return 2e-6;
  case DType::F16:
    return 1e-3;
  case DType::BF16:
    return 8e-3;
  case DType::F64:
    // The bounds of the other types would correspond to 4e-15, but the oracle
    // itself computes in f64.
    return 1e-14;
  case DType::I64:
  case DType::I32:
  case DType::I8:
  case DType::F8E4M3:
  case DType::F8E5M2:
    return 0;
  }
  return 0;
}

} // namespace posenc::reference
