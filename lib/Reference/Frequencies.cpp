//===- Frequencies.cpp - frequencies of channel pairs ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Reference/Frequencies.h"

#include <algorithm>
#include <cmath>

namespace posenc::reference {

std::string check(const FrequencySpec &spec) {
  if (spec.dim < 2 || spec.dim > INT32_MAX || spec.dim % 2 != 0)
    return "the rotary dimension must be even and within [2, 2^31), not " +
           std::to_string(spec.dim);
  if (!(std::isfinite(spec.base) && spec.base > 0))
    return "the base must be finite and above 0";
  auto isFinite = [](const Real &number) {
    return mpfr_number_p(number.get()) != 0;
  };
  if (!isFinite(spec.attentionFactor))
    return "the attention factor must be finite";
  if (spec.list.empty())
    return spec.roundsAngles ? "rounded angles need a list of frequencies" : "";
  if (int64_t(spec.list.size()) != spec.dim / 2)
    return "expected " + std::to_string(spec.dim / 2) +
           " frequencies in the list, got " + std::to_string(spec.list.size());
  if (!std::all_of(spec.list.begin(), spec.list.end(), isFinite))
    return "a listed frequency is not finite";
  return {};
}

std::vector<Real> computeFrequencies(int64_t dim, double base) {
  std::vector<Real> result;
  Real logBase = log(Real(base));
  for (int64_t i = 0; i < dim / 2; ++i)
    result.push_back(exp(Real(-2 * i) * logBase / Real(dim)));
  return result;
}

} // namespace posenc::reference
