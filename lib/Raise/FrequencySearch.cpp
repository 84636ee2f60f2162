//===- FrequencySearch.cpp - the rule behind a list of frequencies --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parameters are estimated from single frequencies and rounded to short
// decimals. A rule is only taken if all of its frequencies agree.
//
//===----------------------------------------------------------------------===//

#include "FrequencySearch.h"

#include "posenc/Support/BigFloat.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::raise;
using ::posenc::BigFloat;

/// More digits would fit numbers that no model was made with.
static constexpr int kMaxDigits = 5;
/// The relative error of an estimated base: 2^-24 times the pairs of a head.
static constexpr double kMaxError = 2e-5;

namespace {
class RuleSearch {
public:
  RuleSearch(MLIRContext *context, ArrayRef<FoundFrequency> found)
      : context(context), found(found), dim(2 * found.size()) {}

  FrequenciesAttr run();
  /// Looks for a sequence that is scaled or that ends at the base.
  FrequenciesAttr findGeometric();

private:
  FloatAttr getReal(double value) {
    return FloatAttr::get(Float64Type::get(context), value);
  }
  double getNumber(size_t pair) { return found[pair].range.max; }
  FrequenciesAttr get(double base, Attribute scaling = {},
                      Precision precision = Precision::Exact) {
    return FrequenciesAttr::get(context, dim, getReal(base), scaling,
                                precision);
  }
  FrequenciesAttr check(double base, Attribute scaling = {});
  FrequenciesAttr checkScalings(double base);

  MLIRContext *context;
  ArrayRef<FoundFrequency> found;
  int64_t dim;
};
} // namespace

/// Returns decimals of at most `kMaxDigits` digits near the number, shortest
/// first.
static SmallVector<double> getDecimals(double number) {
  SmallVector<double> decimals;
  if (!(number > 0) || !std::isfinite(number))
    return decimals;
  int magnitude = std::floor(std::log10(number));
  for (int digits = 1; digits <= kMaxDigits; ++digits) {
    // Powers of ten are exact, so the decimal is rounded once.
    int exponent = magnitude - (digits - 1);
    double power = std::pow(10.0, std::abs(exponent));
    double decimal = exponent < 0 ? std::round(number * power) / power
                                  : std::round(number / power) * power;
    if (std::abs(decimal - number) <= kMaxError * number &&
        !llvm::is_contained(decimals, decimal))
      decimals.push_back(decimal);
  }
  return decimals;
}

/// Returns one unit in the last place of f32.
static double getUnit(double number) {
  double scale =
      std::max(std::abs(number), double(std::numeric_limits<float>::min()));
  return std::ldexp(1.0, std::ilogb(scale) - 23);
}

/// Whether the frequencies, as numbers of f32, are in the ranges, widened by
/// the tolerances times `widening`.
static bool agrees(FrequenciesAttr rounded, ArrayRef<FoundFrequency> found,
                   double widening) {
  for (auto [frequency, number] :
       llvm::zip_equal(rounded.computeFrequencies(), found)) {
    double value = frequency.toDouble(),
           margin = widening * number.tolerance * getUnit(value);
    if (!(value >= number.range.min - margin &&
          value <= number.range.max + margin))
      return false;
  }
  return true;
}

FrequenciesAttr RuleSearch::check(double base, Attribute scaling) {
  if (!(base > 1) || !std::isfinite(base))
    return {};
  if (!agrees(get(base, scaling, Precision::HfF32), found, 1))
    return {};
  return get(base, scaling);
}

/// Looks for scalings that leave high frequencies as they are and divide the
/// low ones.
FrequenciesAttr RuleSearch::checkScalings(double base) {
  size_t last = found.size() - 1;
  double unscaled = std::pow(base, -2.0 * last / dim);
  for (double factor : getDecimals(unscaled / getNumber(last))) {
    if (!(factor > 1))
      continue;
    for (double length = 1024; length <= 262144; length *= 2) {
      if (FrequenciesAttr rule = check(
              base, Llama3ScalingAttr::get(context, getReal(factor), getReal(1),
                                           getReal(4), getReal(length))))
        return rule;
      for (bool truncate : {true, false})
        if (FrequenciesAttr rule =
                check(base, YarnScalingAttr::get(context, getReal(factor),
                                                 getReal(length), getReal(32),
                                                 getReal(1), truncate, {}, {},
                                                 {}, {}, {})))
          return rule;
    }
  }
  return {};
}

FrequenciesAttr RuleSearch::run() {
  size_t last = found.size() - 1;
  if (found.size() < 2 || !(getNumber(0) > 0) || !(getNumber(1) > 0) ||
      !(getNumber(last) > 0))
    return {};
  // The first frequency is 1, unless all are divided.
  for (double factor : getDecimals(1 / getNumber(0))) {
    Attribute linear;
    if (factor != 1)
      linear = LinearScalingAttr::get(context, getReal(factor));
    double estimate = std::pow(getNumber(last) * factor, -0.5 * dim / last);
    for (double base : getDecimals(estimate))
      if (FrequenciesAttr rule = check(base, linear))
        return rule;
  }
  double estimate = std::pow(getNumber(1), -0.5 * dim);
  for (double base : getDecimals(estimate))
    if (FrequenciesAttr rule = checkScalings(base))
      return rule;
  return {};
}

FrequenciesAttr RuleSearch::findGeometric() {
  size_t last = found.size() - 1;
  double first = getNumber(0);
  if (found.size() < 2 || !(first > 0 && first < 0x1p63) ||
      !(getNumber(last) > 0))
    return {};
  // The exponents are rounded to f32, also those of pow.
  SmallVector<FoundFrequency> widened(found);
  for (FoundFrequency &number : widened)
    number.tolerance += std::abs(std::log(number.range.max / first));
  for (double scale : getDecimals(first))
    for (double shift : {0.0, 1.0}) {
      if (scale == 1 && shift == 0)
        continue;
      auto rule = GeometricScalingAttr::get(
          context, getReal(shift), scale == 1 ? FloatAttr() : getReal(scale));
      double estimate =
          std::pow(scale / getNumber(last), (found.size() - shift) / last);
      for (double base : getDecimals(estimate))
        if (base > 1 && agrees(get(base, rule), widened, 1))
          return get(base, rule);
    }
  return {};
}

FrequenciesAttr mlir::posenc::raise::findRule(MLIRContext *context,
                                              ArrayRef<FoundFrequency> found) {
  return RuleSearch(context, found).run();
}

FrequenciesAttr
mlir::posenc::raise::createFrequencies(MLIRContext *context,
                                       ArrayRef<FoundFrequency> found,
                                       double factor, Precision precision) {
  Builder builder(context);
  bool isExact = precision == Precision::Exact;
  FrequenciesAttr rule = findRule(context, found);
  // Positions of models are not scaled up, but angles of time steps are.
  if (isExact && (!rule || found.front().range.min > 1))
    if (FrequenciesAttr geometric = RuleSearch(context, found).findGeometric())
      rule = geometric;
  if (rule && !isExact) {
    rule = FrequenciesAttr::get(context, rule.getDim(), rule.getBase(),
                                rule.getScaling(), precision);
    // The graph's own numbers, if those of the rule are others.
    if (!agrees(rule, found, 0))
      rule = {};
  }
  // Its own factor follows from others, so it is always given.
  if (rule)
    if (auto yarn = dyn_cast_or_null<YarnScalingAttr>(rule.getScaling()))
      return FrequenciesAttr::get(
          context, rule.getDim(), rule.getBase(),
          YarnScalingAttr::get(
              context, yarn.getFactor(), yarn.getOriginalMaxPosition(),
              yarn.getBetaFast(), yarn.getBetaSlow(), yarn.getTruncate(),
              builder.getF64FloatAttr(factor), {}, {}, {}, {}),
          precision);
  if (rule && factor == 1)
    return rule;
  // Only lists have a factor of any size.
  SmallVector<double> values;
  if (rule)
    for (const BigFloat &frequency : rule.computeFrequencies())
      values.push_back(frequency.toDouble());
  else
    for (const FoundFrequency &number : found)
      values.push_back(number.range.max);
  FloatAttr attention;
  if (factor != 1)
    attention = builder.getF64FloatAttr(factor);
  return FrequenciesAttr::get(
      context, 2 * found.size(), builder.getF64FloatAttr(10000),
      ExplicitScalingAttr::get(context, builder.getDenseF64ArrayAttr(values),
                               attention),
      precision);
}
