//===- ScalingByPair.cpp - scalings with a number for each pair -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scaling.h"

#include <cmath>

namespace posenc::reference {

static std::string checkList(const FrequencySpec &spec, const char *name,
                             const std::vector<double> &list) {
  if (int64_t(list.size()) != spec.dim / 2)
    return "expected " + std::to_string(spec.dim / 2) + " numbers in " + name +
           ", got " + std::to_string(list.size());
  for (double value : list)
    if (std::string reason = checkAbove(name, value, 0); !reason.empty())
      return reason;
  return checkAbove("base", spec.base, 0);
}

static std::vector<Real> divide(const FrequencySpec &spec,
                                const std::vector<double> &list) {
  std::vector<Real> result = unscaledFrequencies(spec);
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = result[i] / Real(list[i]);
  return result;
}

std::string checkLongrope(const FrequencySpec &spec) {
  std::string reason = checkList(spec, "list", spec.list);
  if (reason.empty())
    reason = checkList(spec, "longList", spec.longList);
  if (reason.empty())
    reason = checkAbove("originalMaxPosition", spec.originalMaxPosition, 1);
  if (reason.empty())
    reason = checkAbove("length", spec.length, 0);
  return reason.empty() ? checkAbove("factor", spec.factor, 0) : reason;
}

std::vector<Real> longropeFrequencies(const FrequencySpec &spec) {
  return divide(spec, spec.length > spec.originalMaxPosition ? spec.longList
                                                             : spec.list);
}

/// Returns sqrt(1 + ln(s)/ln(L)), or 1 if s <= 1.
Real longropeAttention(const FrequencySpec &spec) {
  if (spec.factor <= 1)
    return Real(1);
  Real square =
      Real(1) + log(Real(spec.factor)) / log(Real(spec.originalMaxPosition));
  return exp(log(square) / Real(2));
}

std::string checkProportional(const FrequencySpec &spec) {
  if (spec.rotatedPairs < 1 || spec.rotatedPairs > spec.dim / 2)
    return "rotatedPairs must be between 1 and half of the dimension";
  return checkFactor(spec);
}

std::vector<Real> proportionalFrequencies(const FrequencySpec &spec) {
  std::vector<Real> result = unscaledFrequencies(spec);
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = int64_t(i) < spec.rotatedPairs ? result[i] / Real(spec.factor)
                                               : Real(0);
  return result;
}

std::string checkDivisors(const FrequencySpec &spec) {
  return checkList(spec, "list", spec.list);
}

std::vector<Real> divisorsFrequencies(const FrequencySpec &spec) {
  return divide(spec, spec.list);
}

} // namespace posenc::reference
