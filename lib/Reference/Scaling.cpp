//===- Scaling.cpp - table of scaling kinds -------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scaling.h"

#include <cmath>

namespace posenc::reference {

std::string checkAbove(const char *name, double value, double bound) {
  if (std::isfinite(value) && value > bound)
    return {};
  std::string limit = bound == 0 ? "0" : std::to_string(bound);
  return std::string(name) + " must be finite and above " + limit;
}

std::vector<Real> unscaledFrequencies(const FrequencySpec &spec) {
  std::vector<Real> result;
  Real logBase = log(Real(spec.base));
  for (int64_t i = 0; i < spec.dim / 2; ++i)
    result.push_back(exp(Real(-2 * i) * logBase / Real(spec.dim)));
  return result;
}

static std::string checkDefault(const FrequencySpec &spec) {
  return checkAbove("base", spec.base, 0);
}

std::string checkFactor(const FrequencySpec &spec) {
  std::string reason = checkDefault(spec);
  return reason.empty() ? checkAbove("factor", spec.factor, 0) : reason;
}

static std::vector<Real> linearFrequencies(const FrequencySpec &spec) {
  std::vector<Real> result = unscaledFrequencies(spec);
  for (Real &f : result)
    f = f / Real(spec.factor);
  return result;
}

static std::string checkExplicit(const FrequencySpec &spec) {
  if (int64_t(spec.list.size()) != spec.dim / 2)
    return "expected " + std::to_string(spec.dim / 2) +
           " frequencies in the list, got " + std::to_string(spec.list.size());
  for (double f : spec.list)
    if (!std::isfinite(f))
      return "a listed frequency is not finite";
  return {};
}

static std::vector<Real> explicitFrequencies(const FrequencySpec &spec) {
  std::vector<Real> result;
  for (double f : spec.list)
    result.emplace_back(f);
  return result;
}

static Real unitAttention(const FrequencySpec &) { return Real(1); }

const ScalingRule *findScalingRule(ScalingKind kind) {
  static const ScalingRule rules[] = {
      {ScalingKind::Default, false, checkDefault, unscaledFrequencies,
       unitAttention},
      {ScalingKind::Linear, false, checkFactor, linearFrequencies,
       unitAttention},
      {ScalingKind::Llama3, false, checkLlama3, llama3Frequencies,
       unitAttention},
      {ScalingKind::Yarn, false, checkYarn, yarnFrequencies, yarnAttention},
      {ScalingKind::Explicit, true, checkExplicit, explicitFrequencies,
       unitAttention},
      {ScalingKind::Ntk, false, checkNtk, ntkFrequencies, unitAttention},
      {ScalingKind::Dynamic, false, checkDynamic, dynamicFrequencies,
       unitAttention},
      {ScalingKind::Longrope, true, checkLongrope, longropeFrequencies,
       longropeAttention},
      {ScalingKind::Proportional, true, checkProportional,
       proportionalFrequencies, unitAttention},
      {ScalingKind::Divisors, true, checkDivisors, divisorsFrequencies,
       unitAttention},
      {ScalingKind::Geometric, false, checkGeometric, geometricFrequencies,
       unitAttention},
  };
  for (const ScalingRule &rule : rules)
    if (rule.kind == kind)
      return &rule;
  return nullptr;
}

} // namespace posenc::reference
