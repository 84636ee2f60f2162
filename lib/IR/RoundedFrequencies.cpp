//===- RoundedFrequencies.cpp - frequencies in f32 ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers that PyTorch keeps in tensors are f32; those that Python keeps are
// doubles, rounded to f32 where they meet a tensor. APFloat rounds every
// operation, whatever instructions the compiler contracts.
//
//===----------------------------------------------------------------------===//

#include "RoundedFrequencies.h"

#include "ScalingSupport.h"

#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
using llvm::APFloat;
using ::posenc::BigFloat;

static APFloat toF32(double value) {
  return APFloat(static_cast<float>(value));
}

static BigFloat toBigFloat(const APFloat &value) {
  return BigFloat(static_cast<double>(value.convertToFloat()));
}

/// Returns base^(2i/dim) for each pair.
static SmallVector<APFloat> computePeriods(const APFloat &base, int64_t dim,
                                           int64_t numPairs) {
  SmallVector<APFloat> periods;
  for (int64_t pair = 0; pair < numPairs; ++pair) {
    APFloat exponent = toF32(2.0 * pair) / toF32(dim);
    periods.push_back(
        APFloat(pow(toBigFloat(base), toBigFloat(exponent)).toFloat()));
  }
  return periods;
}

static SmallVector<APFloat> invert(ArrayRef<APFloat> values) {
  return llvm::map_to_vector(
      values, [](const APFloat &value) { return toF32(1) / value; });
}

static SmallVector<APFloat> computeDefault(int64_t dim, double base) {
  return invert(computePeriods(toF32(base), dim, dim / 2));
}

/// The length is a tensor, so the base is one.
static SmallVector<APFloat> computeDynamic(DynamicScalingAttr attr, int64_t dim,
                                           double base) {
  double factor = toDouble(attr.getFactor());
  double limit = toDouble(attr.getMaxPosition());
  double length = std::max(toDouble(attr.getLength()), limit);
  APFloat scale = toF32(factor) * toF32(length) / toF32(limit);
  scale = scale - toF32(factor - 1);
  APFloat exponent = toF32(double(dim) / double(dim - 2));
  APFloat power(pow(toBigFloat(scale), toBigFloat(exponent)).toFloat());
  return invert(computePeriods(toF32(base) * power, dim, dim / 2));
}

static SmallVector<APFloat> computeLlama3(Llama3ScalingAttr attr, int64_t dim,
                                          double base) {
  double original = toDouble(attr.getOriginalMaxPosition());
  double low = toDouble(attr.getLowFreqFactor());
  double high = toDouble(attr.getHighFreqFactor());
  APFloat factor = toF32(toDouble(attr.getFactor()));
  APFloat longest = toF32(original / low), shortest = toF32(original / high);
  SmallVector<APFloat> frequencies = computeDefault(dim, base);
  for (APFloat &f : frequencies) {
    // PyTorch divides a number by a tensor as the number times the reciprocal.
    APFloat wavelength = toF32(1) / f * toF32(2 * M_PI);
    if (wavelength > longest) {
      f = f / factor;
    } else if (!(wavelength < shortest)) {
      APFloat smooth = toF32(1) / wavelength * toF32(original) - toF32(low);
      smooth = smooth / toF32(high - low);
      f = (toF32(1) - smooth) * f / factor + smooth * f;
    }
  }
  return frequencies;
}

/// The index of the pair that makes `rotations` turns within the original
/// context, in double.
static double getCorrection(YarnScalingAttr attr, double rotations, int64_t dim,
                            double base) {
  double turns =
      toDouble(attr.getOriginalMaxPosition()) / (rotations * 2 * M_PI);
  return dim * log(BigFloat(turns)).toDouble() /
         (2 * log(BigFloat(base)).toDouble());
}

static SmallVector<APFloat> computeYarn(YarnScalingAttr attr, int64_t dim,
                                        double base) {
  double low = getCorrection(attr, toDouble(attr.getBetaFast()), dim, base);
  double high = getCorrection(attr, toDouble(attr.getBetaSlow()), dim, base);
  if (attr.getTruncate()) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, double(dim - 1));
  if (low == high)
    high += 0.001;
  APFloat factor = toF32(toDouble(attr.getFactor())), zero = toF32(0);
  APFloat one = toF32(1);
  SmallVector<APFloat> frequencies;
  for (auto [pair, period] :
       llvm::enumerate(computePeriods(toF32(base), dim, dim / 2))) {
    APFloat ramp = (toF32(pair) - toF32(low)) / toF32(high - low);
    ramp = ramp < zero ? zero : ramp > one ? one : ramp;
    APFloat kept = one - ramp;
    frequencies.push_back(one / (factor * period) * (one - kept) +
                          one / period * kept);
  }
  return frequencies;
}

static SmallVector<APFloat> computeLongrope(LongropeScalingAttr attr,
                                            int64_t dim, double base) {
  SmallVector<APFloat> periods = computePeriods(toF32(base), dim, dim / 2);
  for (auto [period, factor] :
       llvm::zip_equal(periods, attr.getSelectedFactors().asArrayRef()))
    period = toF32(factor) * period;
  return invert(periods);
}

static SmallVector<APFloat> computeProportional(ProportionalScalingAttr attr,
                                                int64_t dim, double base) {
  SmallVector<APFloat> frequencies =
      invert(computePeriods(toF32(base), dim, attr.getRotatedPairs()));
  frequencies.resize(dim / 2, toF32(0));
  for (APFloat &f : frequencies)
    f = f / toF32(toDouble(attr.getFactor()));
  return frequencies;
}

bool mlir::posenc::canRoundFrequencies(Attribute scaling) {
  if (!scaling)
    return true;
  if (cast<FrequencyScalingInterface>(scaling).dependsOnLength())
    return false;
  if (auto yarn = dyn_cast<YarnScalingAttr>(scaling))
    return !yarn.getExtFactor() && !yarn.getAttnFactor();
  return isa<LinearScalingAttr, DynamicScalingAttr, LongropeScalingAttr,
             Llama3ScalingAttr, ProportionalScalingAttr, ExplicitScalingAttr>(
      scaling);
}

static SmallVector<APFloat> compute(Attribute scaling, int64_t dim,
                                    double base) {
  using Result = SmallVector<APFloat>;
  if (!scaling)
    return computeDefault(dim, base);
  return llvm::TypeSwitch<Attribute, Result>(scaling)
      .Case([&](LinearScalingAttr attr) {
        Result frequencies = computeDefault(dim, base);
        for (APFloat &f : frequencies)
          f = f / toF32(toDouble(attr.getFactor()));
        return frequencies;
      })
      .Case([&](DynamicScalingAttr attr) {
        return computeDynamic(attr, dim, base);
      })
      .Case([&](Llama3ScalingAttr attr) {
        return computeLlama3(attr, dim, base);
      })
      .Case([&](YarnScalingAttr attr) { return computeYarn(attr, dim, base); })
      .Case([&](LongropeScalingAttr attr) {
        return computeLongrope(attr, dim, base);
      })
      .Case([&](ProportionalScalingAttr attr) {
        return computeProportional(attr, dim, base);
      })
      .Case([&](ExplicitScalingAttr attr) {
        return Result(llvm::map_range(attr.getValues().asArrayRef(), toF32));
      });
}

SmallVector<BigFloat> mlir::posenc::computeRoundedFrequencies(Attribute scaling,
                                                              int64_t dim,
                                                              double base) {
  return llvm::map_to_vector(compute(scaling, dim, base), toBigFloat);
}
