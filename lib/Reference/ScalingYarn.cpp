//===- ScalingYarn.cpp - frequencies and attention factor of YaRN ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// corr(r) = d ln(L/(2 pi r)) / (2 ln b) is the (real) index of the pair that
// makes r turns within the original length L. From corr(betaFast) to
// corr(betaSlow), a linear ramp leads from f_i to f_i / s.

#include "Scaling.h"

#include <cmath>

namespace posenc::reference {

std::string checkYarn(const FrequencySpec &spec) {
  std::string reason;
  if (reason = checkAbove("base", spec.base, 1); !reason.empty())
    return reason;
  if (reason = checkAbove("factor", spec.factor, 0); !reason.empty())
    return reason;
  if (reason = checkAbove("betaFast", spec.betaFast, 0); !reason.empty())
    return reason;
  if (reason = checkAbove("betaSlow", spec.betaSlow, 0); !reason.empty())
    return reason;
  if (spec.betaFast < spec.betaSlow)
    return "betaFast is below betaSlow";
  for (const std::optional<double> &scale : {spec.mscale, spec.mscaleAllDim})
    if (scale && !std::isfinite(*scale))
      return "mscale and mscaleAllDim must be finite";
  if (!(spec.extFactor >= 0 && spec.extFactor <= 1))
    return "extFactor must be between 0 and 1";
  if (reason = checkAbove("attnFactor", spec.attnFactor, 0); !reason.empty())
    return reason;
  return checkAbove("originalMaxPosition", spec.originalMaxPosition, 0);
}

static Real correctionPair(const FrequencySpec &spec, double turns) {
  Real ratio = Real(spec.originalMaxPosition) / (Real(2) * pi() * Real(turns));
  return Real(spec.dim) * log(ratio) / (Real(2) * log(Real(spec.base)));
}

std::vector<Real> yarnFrequencies(const FrequencySpec &spec) {
  Real low = correctionPair(spec, spec.betaFast);
  Real high = correctionPair(spec, spec.betaSlow);
  if (spec.truncate) {
    low = floor(low);
    high = ceil(high);
  }
  low = max(low, Real(0));
  high = min(high, Real(spec.dim - 1));
  if (low == high)
    high = high + Real(1) / Real(1000);

  const Real one(1), factor(spec.factor);
  std::vector<Real> result = unscaledFrequencies(spec);
  for (size_t i = 0; i < result.size(); ++i) {
    Real ramp = (Real(int64_t(i)) - low) / (high - low);
    ramp = min(max(ramp, Real(0)), one);
    Real kept = Real(spec.extFactor) * (one - ramp);
    result[i] = result[i] / factor * (one - kept) + result[i] * kept;
  }
  return result;
}

/// Returns g(s, m) = 1 if s <= 1, else 0.1 m ln(s) + 1.
static Real magnitudeScale(double factor, double mscale) {
  if (factor <= 1)
    return Real(1);
  return Real(mscale) * log(Real(factor)) / Real(10) + Real(1);
}

Real yarnAttention(const FrequencySpec &spec) {
  // ggml scales cosines and sines only if a part of the frequencies is kept.
  Real multiple(spec.attnFactor);
  if (spec.extFactor == 0)
    return multiple;
  double mscale = spec.mscale.value_or(0);
  double mscaleAllDim = spec.mscaleAllDim.value_or(0);
  if (mscale != 0 && mscaleAllDim != 0)
    return multiple * magnitudeScale(spec.factor, mscale) /
           magnitudeScale(spec.factor, mscaleAllDim);
  return multiple * magnitudeScale(spec.factor, 1);
}

} // namespace posenc::reference
