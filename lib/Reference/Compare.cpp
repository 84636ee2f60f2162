//===- Compare.cpp - errors in units in the last place --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Reference/Compare.h"

#include "Parallel.h"

#include <cmath>

namespace posenc::reference {

namespace {
struct LaneError {
  long double ulps = 0;
  long double absolute = 0;
  const char *mismatch = nullptr;
};
} // namespace

static LaneError mismatchedLane(const char *reason) {
  LaneError error;
  error.mismatch = reason;
  return error;
}

static LaneError comparePassThrough(DType type, uint64_t bits,
                                    long double ref) {
  if (std::isnan(ref) && std::isnan(decode(type, bits)))
    return {};
  if (bits != encode(type, ref))
    return mismatchedLane("a lane that passes through was changed");
  return {};
}

/// Compares an infinite result with a finite reference. The infinity counts as
/// the number that would follow the largest one, so errors near the end of the
/// range count as elsewhere.
static LaneError compareOverflow(DType type, long double result,
                                 long double ref, long double magnitude) {
  // This exceeds any limit: larger errors are not rounding errors.
  constexpr long double reach = 16;
  LaneError error;
  if (std::signbit(result) == std::signbit(ref)) {
    long double bound = overflowBound(type);
    error.absolute = std::fmax(bound - std::fabs(ref), 0.0L);
    error.ulps = error.absolute / ulp(type, magnitude);
    if (std::isinf(roundTo(type, ref)))
      return {};
    if (error.ulps <= reach)
      return error;
  }
  return mismatchedLane("an infinity in place of a number");
}

static LaneError compareLane(DType type, uint64_t bits, long double ref,
                             long double magnitude, long double slack) {
  if (magnitude == kUnknownMagnitude)
    return {};
  if (magnitude < 0)
    return comparePassThrough(type, bits, ref);
  long double result = decode(type, bits);
  if (std::isnan(result) || std::isnan(ref)) {
    if (std::isnan(result) && std::isnan(ref))
      return {};
    return mismatchedLane(std::isnan(result) ? "a NaN in place of a number"
                                             : "a number in place of a NaN");
  }
  if (std::isinf(ref)) {
    if (result == ref)
      return {};
    return mismatchedLane("another value in place of an infinity");
  }
  if (std::isinf(result))
    return compareOverflow(type, result, ref, magnitude);

  // The hardware conversion to bf16 flushes subnormals. The f32 value that it
  // converts may have been rounded down to just below the normal numbers.
  bool flushed = type == DType::BF16 && result == 0 &&
                 std::fabs(ref) < smallestNormal(type) * (1 + 0x1p-20L);
  if (flushed)
    return {};
  LaneError error;
  error.absolute = std::fabs(result - ref);
  error.ulps = std::fmax(error.absolute - slack, 0.0L) / ulp(type, magnitude);
  return error;
}

namespace {
/// The largest errors of a range of lanes and the indices of these lanes.
struct RangeError {
  long double maxUlp = 0, maxAbs = 0;
  int64_t worst = 0, firstMismatch = 0;
  const char *mismatch = nullptr;

  void add(int64_t lane, const LaneError &error) {
    if (error.mismatch) {
      if (!mismatch) {
        mismatch = error.mismatch;
        firstMismatch = lane;
      }
      return;
    }
    maxAbs = std::fmax(maxAbs, error.absolute);
    if (error.ulps > maxUlp) {
      maxUlp = error.ulps;
      worst = lane;
    }
  }
};
} // namespace

Comparison compare(DType type, const void *result, const Array &ref,
                   const CompareOptions &options) {
  Comparison comparison;
  auto mismatch = [&](std::string reason) {
    comparison.mismatch = true;
    comparison.reason = std::move(reason);
  };
  if (options.shape && *options.shape != ref.shape) {
    mismatch("the shapes differ");
    return comparison;
  }
  const size_t count = ref.values.size();
  const bool ownMagnitude = !ref.magnitude.empty();
  if (int64_t(count) != numElements(ref.shape) ||
      (ownMagnitude && ref.magnitude.size() != count)) {
    mismatch("the reference's values do not fill its shape");
    return comparison;
  }
  // Each range has its own errors, and they are merged in order, so the result
  // does not depend on the threads.
  constexpr int64_t grain = 1 << 16;
  std::vector<RangeError> ranges((int64_t(count) + grain - 1) / grain);
  parallelFor(int64_t(count), grain, [&](int64_t begin, int64_t end) {
    RangeError &range = ranges[begin / grain];
    for (int64_t i = begin; i < end; ++i) {
      long double value = ref.values[i];
      long double magnitude =
          ownMagnitude ? ref.magnitude[i] : std::fabs(value);
      range.add(i, compareLane(type, loadBits(type, result, i), value,
                               magnitude, options.absoluteSlack));
    }
  });
  int64_t worst = count ? 0 : -1;
  for (const RangeError &range : ranges) {
    comparison.maxAbs = std::fmax(comparison.maxAbs, range.maxAbs);
    if (range.mismatch && !comparison.mismatch) {
      mismatch(range.mismatch);
      worst = range.firstMismatch;
    }
    if (range.maxUlp > comparison.maxUlp) {
      comparison.maxUlp = range.maxUlp;
      if (!comparison.mismatch)
        worst = range.worst;
    }
  }
  if (worst >= 0)
    comparison.index = unflatten(ref.shape, worst);
  return comparison;
}

long double defaultLimitUlp(ResultKind kind, DType type, bool withAttention) {
  switch (type) {
  case DType::F32:
    if (kind == ResultKind::Rotated)
      return 4;
    return withAttention ? 2 : 1;
  case DType::F64:
    return kind == ResultKind::Rotated ? 4 : 2;
  case DType::BF16:
    // Table elements are rounded from sums with an error of at most a tenth of
    // a unit.
    if (kind == ResultKind::Table)
      return 0.6L;
    [[fallthrough]];
  case DType::F16:
    // Results are rounded once from an f32 value with an error of at most 4
    // units of f32. A unit of f32 is 2^-13 units of f16 and 2^-16 units of
    // bf16, so 0.5005 would suffice. The published bound is 0.51, which still
    // detects a second rounding.
    return 0.51L;
  case DType::F8E4M3:
  case DType::F8E5M2:
    return 0.501L;
  case DType::I64:
  case DType::I32:
  case DType::I8:
    return 0;
  }
  return 0;
}

} // namespace posenc::reference
