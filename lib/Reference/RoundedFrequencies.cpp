//===- RoundedFrequencies.cpp - frequencies of transformers in f32 --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every result is rounded to f32 by its assignment: a product that a compiler
// contracted with a sum would not be.
//
//===----------------------------------------------------------------------===//

#include "Scaling.h"

#include <algorithm>
#include <cmath>

namespace posenc::reference {

/// Returns b^e, correctly rounded.
static float power(float base, float exponent) {
  Real result;
  mpfr_pow(result.get(), Real(double(base)).get(), Real(double(exponent)).get(),
           MPFR_RNDN);
  return mpfr_get_flt(result.get(), MPFR_RNDN);
}

static float period(float base, int64_t pair, int64_t dim) {
  float exponent = float(2 * pair) / float(dim);
  return power(base, exponent);
}

/// PyTorch's quotient of a number and an element of a tensor.
static float divide(double number, float element) {
  float reciprocal = 1.0f / element;
  return reciprocal * float(number);
}

static float llama3(const FrequencySpec &spec, float inverse) {
  float wavelength = divide(2 * M_PI, inverse);
  float slow = float(spec.originalMaxPosition / spec.lowFreqFactor);
  float fast = float(spec.originalMaxPosition / spec.highFreqFactor);
  float scaled = inverse / float(spec.factor);
  if (wavelength > slow)
    return scaled;
  if (wavelength < fast)
    return inverse;
  float turns = divide(spec.originalMaxPosition, wavelength);
  float above = turns - float(spec.lowFreqFactor);
  float smooth = above / float(spec.highFreqFactor - spec.lowFreqFactor);
  float rest = 1.0f - smooth;
  float restPart = rest * inverse;
  restPart = restPart / float(spec.factor);
  float smoothPart = smooth * inverse;
  return restPart + smoothPart;
}

static float yarn(const FrequencySpec &spec, int64_t pair, float wavelength) {
  auto correction = [&](double turns) {
    double ratio = spec.originalMaxPosition / (turns * 2 * M_PI);
    double above = double(spec.dim) * double(log(Real(ratio)).toLongDouble());
    return above / (2 * double(log(Real(spec.base)).toLongDouble()));
  };
  double low = correction(spec.betaFast), high = correction(spec.betaSlow);
  if (spec.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, double(spec.dim - 1));
  if (low == high)
    high += 0.001;
  float offset = float(pair) - float(low);
  float ramp = std::clamp(offset / float(high - low), 0.0f, 1.0f);
  float ofExtrapolation = 1.0f - ramp, ofInterpolation = 1.0f - ofExtrapolation;
  float product = float(spec.factor) * wavelength;
  float interpolated = 1.0f / product, extrapolated = 1.0f / wavelength;
  float left = interpolated * ofInterpolation;
  float right = extrapolated * ofExtrapolation;
  return left + right;
}

/// The base of dynamic NTK, which transformers computes from a tensor.
static float dynamicBase(const FrequencySpec &spec) {
  float ratio =
      float(spec.factor) * float(std::max(spec.length, spec.maxPosition));
  ratio = ratio / float(spec.maxPosition);
  float scale = ratio - float(spec.factor - 1);
  float grown = power(scale, float(double(spec.dim) / double(spec.dim - 2)));
  return float(spec.base) * grown;
}

bool hasRoundedFrequencies(const FrequencySpec &spec) {
  switch (spec.kind) {
  case ScalingKind::Ntk:
  case ScalingKind::Divisors:
  case ScalingKind::Geometric:
    return false;
  case ScalingKind::Yarn:
    return spec.extFactor == 1 && spec.attnFactor == 1;
  default:
    return true;
  }
}

std::vector<Real> roundedFrequencies(const FrequencySpec &spec) {
  std::vector<Real> result;
  bool isDynamic = spec.kind == ScalingKind::Dynamic;
  float base = isDynamic ? dynamicBase(spec) : float(spec.base);
  bool isLong = spec.length > spec.originalMaxPosition;
  for (int64_t pair = 0; pair < spec.dim / 2; ++pair) {
    float wavelength = period(base, pair, spec.dim);
    float inverse = 1.0f / wavelength;
    switch (spec.kind) {
    case ScalingKind::Linear:
      inverse = inverse / float(spec.factor);
      break;
    case ScalingKind::Proportional:
      inverse = pair < spec.rotatedPairs ? inverse / float(spec.factor) : 0.0f;
      break;
    case ScalingKind::Llama3:
      inverse = llama3(spec, inverse);
      break;
    case ScalingKind::Yarn:
      inverse = yarn(spec, pair, wavelength);
      break;
    case ScalingKind::Longrope: {
      float factor = float((isLong ? spec.longList : spec.list)[size_t(pair)]);
      float product = factor * wavelength;
      inverse = 1.0f / product;
      break;
    }
    case ScalingKind::Explicit:
      inverse = float(spec.list[size_t(pair)]);
      break;
    default:
      break;
    }
    result.emplace_back(double(inverse));
  }
  return result;
}

} // namespace posenc::reference
