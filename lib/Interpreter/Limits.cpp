//===- Limits.cpp - error bounds of compiled results ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Limits.h"

#include "posenc/Reference/Compare.h"
#include "posenc/Reference/CompareAttention.h"

#include "llvm/ADT/STLExtras.h"

#include <climits>
#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
namespace reference = ::posenc::reference;
using reference::DType;

int mlir::posenc::getPrecision(DType type) {
  switch (type) {
  case DType::F64:
    return 53;
  case DType::F32:
    return 24;
  case DType::F16:
    return 11;
  case DType::BF16:
    return 8;
  case DType::F8E4M3:
    return 4;
  case DType::F8E5M2:
    return 3;
  case DType::I64:
  case DType::I32:
  case DType::I8:
    return 0;
  }
  return 0;
}

double mlir::posenc::getAngleSlack(ArrayRef<long double> positions) {
  double farthest = 0;
  for (long double position : positions)
    farthest = std::fmax(farthest, std::fabs(double(position)));
  return farthest > 0x1p31 ? farthest * 0x1p-94 : 0;
}

double mlir::posenc::getInheritedLimit(const ReferenceValue &operand,
                                       DType type) {
  // The factor 3 allows for an operand that rounds to the other side than the
  // oracle's, for a rotation that mixes two lanes, and for a result with a unit
  // half as large as the operand's.
  if (operand.limitUlp == 0)
    return 0;
  return 3 * (operand.limitUlp + 0.5) *
         std::ldexp(1.0, getPrecision(type) - getPrecision(operand.type));
}

double mlir::posenc::getRowLimit(const ReferenceValue &rows, bool isNormed,
                                 ArrayRef<long double> positions) {
  DType type = rows.type;
  double limit = double(reference::defaultLimitUlp(
                     reference::ResultKind::Rotated, type, false)) +
                 getInheritedLimit(rows, type);
  // The unit of a lane is at least 2^-precision of its magnitude.
  limit += std::ldexp(getAngleSlack(positions), getPrecision(type));
  // A sum of squares, a square root, a division and a product, in f32 or f64.
  if (isNormed)
    limit +=
        std::ldexp(8.0, getPrecision(type) - std::max(getPrecision(type), 24));
  return limit;
}

//===----------------------------------------------------------------------===//
// Errors of elements
//===----------------------------------------------------------------------===//

double mlir::posenc::getElementError(const ReferenceValue &value, size_t index,
                                     bool isRounded) {
  if (value.array.magnitude.empty())
    return 0;
  long double magnitude = value.array.magnitude[index];
  long double element = value.array.values[index];
  if (magnitude == reference::kUnknownMagnitude)
    return HUGE_VAL;
  if (magnitude < 0 || !std::isfinite(element))
    return 0;
  long double error =
      value.isAttention
          ? reference::getAttentionLimit(value.type, magnitude,
                                         value.largest[index])
          : value.limitUlp * reference::ulp(value.type, magnitude) +
                value.absoluteSlack;
  long double read = isRounded ? reference::roundTo(value.type, element)
                               : (long double)(double(element));
  // The rounding of the element; a value that overflows its type becomes an
  // infinity.
  error += std::fabs(element - read);
  return double(error);
}

/// Chooses a limit in (0.5, 1] for a histogram of the significands of errors.
/// Minimizes the sum of allowed error / error; an error above the limit is
/// allowed twice the limit.
static double chooseLimit(llvm::ArrayRef<int64_t> bins) {
  double best = 1, bestCost = HUGE_VAL;
  auto getEnd = [&](size_t bin) {
    return 0.5 + 0.5 * double(bin + 1) / double(bins.size());
  };
  for (size_t limit = 0; limit < bins.size(); ++limit) {
    double cost = 0;
    for (size_t bin = 0; bin < bins.size(); ++bin)
      cost += double(bins[bin]) * (bin <= limit ? 1 : 2) * getEnd(limit) /
              getEnd(bin);
    if (cost < bestCost) {
      bestCost = cost;
      best = getEnd(limit);
    }
  }
  return best;
}

/// Sets the limit of integers, whose unit in the last place is always 1.
static void setIntegerErrors(ReferenceValue &value,
                             llvm::ArrayRef<double> errors) {
  if (llvm::all_of(errors, [](double error) { return error == 0; }))
    return;
  for (double error : errors) {
    bool isKnown = std::isfinite(error);
    if (isKnown)
      value.limitUlp = std::max(value.limitUlp, error);
    value.array.magnitude.push_back(!isKnown     ? reference::kUnknownMagnitude
                                    : error == 0 ? -1.0L
                                                 : 0.0L);
  }
}

void mlir::posenc::setElementErrors(ReferenceValue &value,
                                    llvm::ArrayRef<double> errors) {
  DType type = value.type;
  value.limitUlp = value.absoluteSlack = 0;
  value.isStructured = true;
  value.array.magnitude.clear();
  if (!reference::isFloat(type))
    return setIntegerErrors(value, errors);
  auto getUnit = [&](long double magnitude) {
    return std::ilogb(reference::ulp(type, magnitude));
  };
  // Each error is f * 2^e with f in [0.5, 1). The limit is one f times a power
  // of 2, chosen so that the median element has a magnitude near its value.
  auto isBounded = [](double error) { return error > 0 && error < HUGE_VAL; };
  std::vector<int64_t> bins(64);
  std::vector<int> shifts;
  const int largest = getUnit(reference::overflowBound(type) / 2);
  const int smallest = getUnit(0);
  int exponent, minShift = INT_MIN;
  for (auto [i, error] : llvm::enumerate(errors)) {
    if (!isBounded(error))
      continue;
    double part = std::frexp(error, &exponent);
    bins[size_t((part - 0.5) * 2 * double(bins.size()))]++;
    shifts.push_back(exponent - getUnit(value.array.values[i]));
    minShift = std::max(minShift, exponent + 1 - largest);
  }
  double limit = chooseLimit(bins);
  int shift = 0;
  if (!shifts.empty()) {
    auto middle = shifts.begin() + int64_t(shifts.size() / 2);
    std::nth_element(shifts.begin(), middle, shifts.end());
    // The unit does not shrink below that of subnormals, so a large limit would
    // be loose for the smallest numbers. It is large only if other errors need
    // it.
    shift = std::min(*middle, type == DType::F16 ? 4 : 12);
    shift = std::max(shift, minShift);
    value.limitUlp = std::ldexp(limit, shift);
  }
  for (auto [i, error] : llvm::enumerate(errors)) {
    long double size = std::fabs(value.array.values[i]), magnitude = 0;
    if (isBounded(error)) {
      double part = std::frexp(error, &exponent);
      int unit = exponent - shift + (part > limit ? 1 : 0);
      // 2^(unit + p - 1) has the unit 2^unit.
      if (unit > smallest)
        magnitude = getUnit(size) == unit
                        ? size
                        : std::ldexp(1.0L, unit + getPrecision(type) - 1);
    } else if (error != 0) {
      magnitude = reference::kUnknownMagnitude;
    } else if (!(size < reference::smallestNormal(type))) {
      // Exact. Zeros (of either sign) and subnormals (possibly flushed) keep
      // the magnitude 0.
      magnitude = -1;
    }
    value.array.magnitude.push_back(magnitude);
  }
}
