//===- ScalingLlama3.cpp - frequencies of Llama 3.1 -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Let lam = 2*pi/f_i be the wavelength. Frequencies with lam > L/low are
// divided by s, and those with lam < L/high are unchanged. In between, the
// result is the mean of both, weighted by (L/lam - low)/(high - low).

#include "Scaling.h"

namespace posenc::reference {

std::string checkLlama3(const FrequencySpec &spec) {
  std::string reason;
  if (reason = checkAbove("base", spec.base, 0); !reason.empty())
    return reason;
  if (reason = checkAbove("factor", spec.factor, 0); !reason.empty())
    return reason;
  if (reason = checkAbove("lowFreqFactor", spec.lowFreqFactor, 0);
      !reason.empty())
    return reason;
  if (reason = checkAbove("highFreqFactor", spec.highFreqFactor, 0);
      !reason.empty())
    return reason;
  if (spec.highFreqFactor < spec.lowFreqFactor)
    return "highFreqFactor is below lowFreqFactor";
  return checkAbove("originalMaxPosition", spec.originalMaxPosition, 0);
}

std::vector<Real> llama3Frequencies(const FrequencySpec &spec) {
  const Real one(1), factor(spec.factor), length(spec.originalMaxPosition);
  const Real low(spec.lowFreqFactor), high(spec.highFreqFactor);
  std::vector<Real> result = unscaledFrequencies(spec);
  for (Real &f : result) {
    // If high equals low, the middle band is empty in this order of comparisons
    // and nothing divides by zero: a wavelength is pi times an algebraic number
    // and cannot equal the rational L/low.
    Real wavelength = Real(2) * pi() / f;
    if (wavelength > length / low) {
      f = f / factor;
    } else if (!(wavelength < length / high)) {
      Real smooth = (length / wavelength - low) / (high - low);
      f = (one - smooth) * f / factor + smooth * f;
    }
  }
  return result;
}

} // namespace posenc::reference
