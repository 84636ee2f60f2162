//===- ScalingNtk.cpp - scalings that change the base ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The base becomes b s^(d/(d-2)), so that the first frequency stays 1 and the
// last one is divided by s.

#include "Scaling.h"

namespace posenc::reference {

/// Returns f_i = b^(-2i/d) s^(-2i/(d-2)): the power of the changed base,
/// multiplied out. With a single pair there is nothing to scale.
static std::vector<Real> stretchBase(const FrequencySpec &spec,
                                     const Real &scale) {
  std::vector<Real> result = unscaledFrequencies(spec);
  for (int64_t i = 1; i < int64_t(result.size()); ++i)
    result[size_t(i)] =
        result[size_t(i)] * exp(Real(-2 * i) * log(scale) / Real(spec.dim - 2));
  return result;
}

std::string checkNtk(const FrequencySpec &spec) {
  if (spec.mixedB)
    if (std::string reason = checkAbove("mixedB", *spec.mixedB, 0);
        !reason.empty())
      return reason;
  return checkFactor(spec);
}

std::vector<Real> ntkFrequencies(const FrequencySpec &spec) {
  Real factor(spec.factor);
  if (!spec.mixedB)
    return stretchBase(spec, factor);
  // f_i = b^(-2i/d) exp(-a (i+1)^B) with a = ln(s) / (d/2)^B.
  std::vector<Real> result = unscaledFrequencies(spec);
  Real power(*spec.mixedB);
  Real a = log(factor) / exp(power * log(Real(spec.dim / 2)));
  for (int64_t i = 0; i < int64_t(result.size()); ++i)
    result[size_t(i)] =
        result[size_t(i)] / exp(a * exp(power * log(Real(i + 1))));
  return result;
}

std::string checkDynamic(const FrequencySpec &spec) {
  for (auto [name, value] : {std::pair("maxPosition", spec.maxPosition),
                             std::pair("length", spec.length)})
    if (std::string reason = checkAbove(name, value, 0); !reason.empty())
      return reason;
  return checkFactor(spec);
}

std::vector<Real> dynamicFrequencies(const FrequencySpec &spec) {
  Real length = max(Real(spec.length), Real(spec.maxPosition));
  Real factor(spec.factor);
  return stretchBase(spec, factor * length / Real(spec.maxPosition) -
                               (factor - Real(1)));
}

} // namespace posenc::reference
