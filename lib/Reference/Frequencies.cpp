//===- Frequencies.cpp - frequencies of channel pairs ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Reference/Frequencies.h"
#include "Fatal.h"
#include "Scaling.h"

#include <cmath>

namespace posenc::reference {

std::string check(const FrequencySpec &spec) {
  const ScalingRule *rule = findScalingRule(spec.kind);
  if (!rule)
    return "unknown scaling kind";
  if (spec.dim < 2 || spec.dim > INT32_MAX || spec.dim % 2 != 0)
    return "the rotary dimension must be even and within [2, 2^31), not " +
           std::to_string(spec.dim);
  if (spec.attentionFactor && !std::isfinite(*spec.attentionFactor))
    return "the attention factor must be finite";
  if (spec.roundsAngles && !hasRoundedFrequencies(spec))
    return "the frequencies have no recipe in f32";
  return rule->check(spec);
}

Frequencies::Frequencies(const FrequencySpec &spec) {
  requireEmpty(check(spec));
  const ScalingRule *rule = findScalingRule(spec.kind);
  values =
      spec.roundsAngles ? roundedFrequencies(spec) : rule->frequencies(spec);
  factor = spec.attentionFactor ? Real(*spec.attentionFactor)
                                : rule->attention(spec);
}

} // namespace posenc::reference
