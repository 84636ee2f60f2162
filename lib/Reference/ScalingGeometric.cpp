//===- ScalingGeometric.cpp - sequences of timescales ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// tensor2tensor spaces the logarithms of n timescales evenly: f_i = min *
// exp(-i * ln(max/min) / max(n-1, 1)). fairseq and Whisper have min = 1. The
// time steps of diffusers divide by n - shift instead of n - 1 and multiply the
// angles by a scale.

#include "Scaling.h"

#include <cmath>

namespace posenc::reference {

std::string checkGeometric(const FrequencySpec &spec) {
  if (std::string reason = checkAbove("base", spec.base, 0); !reason.empty())
    return reason;
  if (!std::isfinite(spec.shift))
    return "shift must be finite";
  if (spec.dim > 2 && !(spec.shift < double(spec.dim / 2)))
    return "shift must be below the number of pairs";
  return checkAbove("scale", spec.scale, 0);
}

std::vector<Real> geometricFrequencies(const FrequencySpec &spec) {
  const Real scale(spec.scale);
  const int64_t pairs = spec.dim / 2;
  if (pairs == 1)
    return {scale};
  Real increment = log(Real(spec.base)) / (Real(pairs) - Real(spec.shift));
  std::vector<Real> result;
  for (int64_t i = 0; i < pairs; ++i)
    result.push_back(scale * exp(Real(-i) * increment));
  return result;
}

} // namespace posenc::reference
