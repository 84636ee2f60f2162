//===- ScalingAttrs.cpp - scaling rules of frequencies --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttrFields.h"
#include "RoundedFrequencies.h"
#include "ScalingSupport.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

//===----------------------------------------------------------------------===//
// frequencies
//===----------------------------------------------------------------------===//

Attribute FrequenciesAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t dim = 0;
  FloatAttr base = parser.getBuilder().getF64FloatAttr(10000.0);
  Attribute scaling;
  Precision precision = Precision::Exact;
  auto readPrecision = [&]() -> ParseResult {
    FailureOr<Precision> read = mlir::FieldParser<Precision>::parse(parser);
    if (succeeded(read))
      precision = *read;
    return success(succeeded(read));
  };
  if (failed(mlir::posenc::FieldParser(parser)
                 .integer("dim", dim)
                 .real("base", base, /*required=*/false)
                 .attribute("scaling", scaling)
                 .custom("precision", /*required=*/false, readPrecision)
                 .parse()))
    return {};
  return parser.getChecked<FrequenciesAttr>(loc, parser.getContext(), dim, base,
                                            scaling, precision);
}

void FrequenciesAttr::print(AsmPrinter &printer) const {
  FieldPrinter fields(printer);
  fields.integer("dim", getDim())
      .real("base", getBase())
      .attribute("scaling", getScaling());
  if (getPrecision() != Precision::Exact)
    fields.keyword("precision", stringifyPrecision(getPrecision()));
}

LogicalResult FrequenciesAttr::verify(EmitError emitError, int64_t dim,
                                      FloatAttr base, Attribute scaling,
                                      Precision precision) {
  if (dim <= 0 || dim % 2 != 0 || dim > 65536)
    return emitError() << "expected an even rotary dimension between 2 and "
                          "65536, got "
                       << dim << " (frequencies_c1)";
  if (!base || !isPositive(base))
    return emitError() << "expected a finite, positive base (frequencies_c2)";
  if (failed(verifyDivisor(emitError, base, "base", "frequencies_c4")))
    return failure();
  if (!scaling)
    return success();
  auto rule = dyn_cast<FrequencyScalingInterface>(scaling);
  if (!rule)
    return emitError() << "expected a scaling rule, got " << scaling
                       << " (frequencies_c3)";
  if (failed(rule.verifyFor(emitError, dim, toDouble(base))))
    return failure();
  if (precision == Precision::HfF32 && !canRoundFrequencies(scaling))
    return emitError()
           << "expected a scaling of transformers, with a length if "
              "it depends on one, for the precision hf_f32, got "
           << scaling << " (frequencies_c5)";
  return success();
}

FrequencyScalingInterface FrequenciesAttr::getScalingRule() const {
  return dyn_cast_or_null<FrequencyScalingInterface>(getScaling());
}

SmallVector<BigFloat> FrequenciesAttr::computeFrequencies() const {
  return computeAxisFrequencies(getNumPairs());
}

SmallVector<BigFloat>
FrequenciesAttr::computeAxisFrequencies(int64_t pairs) const {
  if (roundsAngles())
    return computeRoundedFrequencies(getScaling(), 2 * pairs,
                                     toDouble(getBase()));
  BigFloat base(toDouble(getBase()));
  if (FrequencyScalingInterface rule = getScalingRule())
    return rule.computeFrequencies(2 * pairs, base);
  return unscaledFrequencies(2 * pairs, base);
}

BigFloat FrequenciesAttr::computeAttentionFactor() const {
  if (FrequencyScalingInterface rule = getScalingRule())
    return rule.computeAttentionFactor();
  return BigFloat(1.0);
}

bool FrequenciesAttr::hasUnitAttentionFactor() const {
  return computeAttentionFactor() == BigFloat(1.0);
}

FrequenciesAttr FrequenciesAttr::withUnitAttentionFactor() const {
  FrequencyScalingInterface rule = getScalingRule();
  if (!rule)
    return *this;
  return get(getContext(), getDim(), getBase(), rule.withUnitAttentionFactor(),
             getPrecision());
}

bool FrequenciesAttr::dependsOnLength() const {
  FrequencyScalingInterface rule = getScalingRule();
  return rule && rule.dependsOnLength();
}

FrequenciesAttr FrequenciesAttr::withLength(double length) const {
  FrequencyScalingInterface rule = getScalingRule();
  if (!rule)
    return *this;
  return get(getContext(), getDim(), getBase(), rule.withLength(length),
             getPrecision());
}

//===----------------------------------------------------------------------===//
// linear
//===----------------------------------------------------------------------===//

Attribute LinearScalingAttr::parse(AsmParser &parser, Type) {
  FloatAttr factor;
  if (failed(mlir::posenc::FieldParser(parser).real("factor", factor).parse()))
    return {};
  return get(parser.getContext(), factor);
}

void LinearScalingAttr::print(AsmPrinter &printer) const {
  FieldPrinter(printer).real("factor", getFactor());
}

LogicalResult LinearScalingAttr::verifyFor(EmitError emitError, int64_t,
                                           double) const {
  if (!isPositive(getFactor()))
    return emitError() << "expected a finite, positive factor (linear_c1)";
  return verifyDivisor(emitError, getFactor(), "factor", "linear_c2");
}

SmallVector<BigFloat>
LinearScalingAttr::computeFrequencies(int64_t dim, const BigFloat &base) const {
  SmallVector<BigFloat> result = unscaledFrequencies(dim, base);
  for (BigFloat &f : result)
    f = f / BigFloat(toDouble(getFactor()));
  return result;
}

//===----------------------------------------------------------------------===//
// llama3
//===----------------------------------------------------------------------===//

Attribute Llama3ScalingAttr::parse(AsmParser &parser, Type) {
  FloatAttr factor, low, high, original;
  if (failed(mlir::posenc::FieldParser(parser)
                 .real("factor", factor)
                 .real("low_freq_factor", low)
                 .real("high_freq_factor", high)
                 .real("original_max_position", original)
                 .parse()))
    return {};
  return get(parser.getContext(), factor, low, high, original);
}

void Llama3ScalingAttr::print(AsmPrinter &printer) const {
  FieldPrinter(printer)
      .real("factor", getFactor())
      .real("low_freq_factor", getLowFreqFactor())
      .real("high_freq_factor", getHighFreqFactor())
      .real("original_max_position", getOriginalMaxPosition());
}

LogicalResult Llama3ScalingAttr::verifyFor(EmitError emitError, int64_t,
                                           double) const {
  if (!isPositive(getFactor()))
    return emitError() << "expected a finite, positive factor (llama3_c1)";
  if (!isPositive(getLowFreqFactor()) || !isPositive(getHighFreqFactor()) ||
      toDouble(getLowFreqFactor()) > toDouble(getHighFreqFactor()))
    return emitError() << "expected 0 < low_freq_factor <= high_freq_factor, "
                          "both finite (llama3_c2)";
  if (!isPositive(getOriginalMaxPosition()))
    return emitError()
           << "expected a finite, positive original_max_position (llama3_c3)";
  return verifyDivisor(emitError, getFactor(), "factor", "llama3_c4");
}

SmallVector<BigFloat>
Llama3ScalingAttr::computeFrequencies(int64_t dim, const BigFloat &base) const {
  BigFloat factor(toDouble(getFactor())), low(toDouble(getLowFreqFactor())),
      high(toDouble(getHighFreqFactor())),
      original(toDouble(getOriginalMaxPosition()));
  SmallVector<BigFloat> result = unscaledFrequencies(dim, base);
  for (BigFloat &f : result) {
    // Number of rotations over the original context, `L / lam`.
    BigFloat rotations = original * f / (BigFloat(2.0) * BigFloat::pi());
    if (rotations < low) {
      f = f / factor;
    } else if (!(rotations > high)) {
      // If the factors are equal, the band is a single point.
      BigFloat smooth =
          low == high ? BigFloat(1.0) : (rotations - low) / (high - low);
      f = (BigFloat(1.0) - smooth) * f / factor + smooth * f;
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// yarn
//===----------------------------------------------------------------------===//

Attribute YarnScalingAttr::parse(AsmParser &parser, Type) {
  Builder &builder = parser.getBuilder();
  FloatAttr factor, original, attention, mscale, mscaleAllDim;
  FloatAttr extFactor, attnFactor;
  FloatAttr fast = builder.getF64FloatAttr(32.0);
  FloatAttr slow = builder.getF64FloatAttr(1.0);
  bool truncate = true;
  if (failed(mlir::posenc::FieldParser(parser)
                 .real("factor", factor)
                 .real("original_max_position", original)
                 .real("beta_fast", fast, /*required=*/false)
                 .real("beta_slow", slow, /*required=*/false)
                 .boolean("truncate", truncate)
                 .real("attention_factor", attention, /*required=*/false)
                 .real("mscale", mscale, /*required=*/false)
                 .real("mscale_all_dim", mscaleAllDim, /*required=*/false)
                 .real("ext_factor", extFactor, /*required=*/false)
                 .real("attn_factor", attnFactor, /*required=*/false)
                 .parse()))
    return {};
  return get(parser.getContext(), factor, original, fast, slow, truncate,
             attention, mscale, mscaleAllDim, extFactor, attnFactor);
}

void YarnScalingAttr::print(AsmPrinter &printer) const {
  FieldPrinter fields(printer);
  fields.real("factor", getFactor())
      .real("original_max_position", getOriginalMaxPosition());
  if (toDouble(getBetaFast()) != 32.0)
    fields.real("beta_fast", getBetaFast());
  if (toDouble(getBetaSlow()) != 1.0)
    fields.real("beta_slow", getBetaSlow());
  if (!getTruncate())
    fields.boolean("truncate", false);
  fields.real("attention_factor", getAttentionFactor())
      .real("mscale", getMscale())
      .real("mscale_all_dim", getMscaleAllDim())
      .real("ext_factor", getExtFactor())
      .real("attn_factor", getAttnFactor());
}

LogicalResult YarnScalingAttr::verifyFor(EmitError emitError, int64_t,
                                         double base) const {
  if (!isPositive(getFactor()))
    return emitError() << "expected a finite, positive factor (yarn_c1)";
  if (!isPositive(getBetaFast()) || !isPositive(getBetaSlow()) ||
      toDouble(getBetaFast()) < toDouble(getBetaSlow()))
    return emitError()
           << "expected 0 < beta_slow <= beta_fast, both finite (yarn_c2)";
  if (!isPositive(getOriginalMaxPosition()))
    return emitError()
           << "expected a finite, positive original_max_position (yarn_c3)";
  if (base <= 1.0)
    return emitError() << "expected a base greater than 1 (yarn_c4)";
  if (!isPositive(getAttentionFactor()) || !isPositive(getMscale()) ||
      !isPositive(getMscaleAllDim()))
    return emitError() << "expected attention_factor, mscale and "
                          "mscale_all_dim to be finite and positive (yarn_c5)";
  if (FloatAttr ext = getExtFactor())
    if (!ext.getType().isF64() || !(toDouble(ext) >= 0 && toDouble(ext) <= 1))
      return emitError() << "expected an ext_factor between 0 and 1 (yarn_c7)";
  if (!isPositive(getAttnFactor()))
    return emitError() << "expected a finite, positive attn_factor (yarn_c8)";
  return verifyDivisor(emitError, getFactor(), "factor", "yarn_c6");
}

SmallVector<BigFloat>
YarnScalingAttr::computeFrequencies(int64_t dim, const BigFloat &base) const {
  BigFloat original(toDouble(getOriginalMaxPosition()));
  // The index of the pair that makes `rotations` turns within the original
  // context.
  auto correction = [&](FloatAttr rotations) {
    return BigFloat(dim) *
           log(original / (BigFloat(2.0) * BigFloat::pi() *
                           BigFloat(toDouble(rotations)))) /
           (BigFloat(2.0) * log(base));
  };
  BigFloat low = correction(getBetaFast()), high = correction(getBetaSlow());
  if (getTruncate()) {
    low = floor(low);
    high = ceil(high);
  }
  if (low < BigFloat(0.0))
    low = BigFloat(0.0);
  if (high > BigFloat(dim - 1))
    high = BigFloat(dim - 1);
  if (low == high)
    high = high + BigFloat(1.0) / BigFloat(1000.0);

  BigFloat factor(toDouble(getFactor())), one(1.0);
  SmallVector<BigFloat> result = unscaledFrequencies(dim, base);
  for (auto [i, f] : llvm::enumerate(result)) {
    BigFloat ramp = (BigFloat(i) - low) / (high - low);
    if (ramp < BigFloat(0.0))
      ramp = BigFloat(0.0);
    if (ramp > one)
      ramp = one;
    // The weight of the unscaled frequency.
    BigFloat kept = one - ramp;
    if (getExtFactor())
      kept = kept * BigFloat(toDouble(getExtFactor()));
    f = f / factor * (one - kept) + f * kept;
  }
  return result;
}

BigFloat YarnScalingAttr::computeAttentionFactor() const {
  if (getAttentionFactor())
    return BigFloat(toDouble(getAttentionFactor()));
  BigFloat factor(toDouble(getFactor())), one(1.0);
  BigFloat multiple(getAttnFactor() ? toDouble(getAttnFactor()) : 1.0);
  if (getExtFactor() && toDouble(getExtFactor()) == 0)
    return multiple;
  auto magnitude = [&](double weight) {
    if (!(factor > one))
      return one;
    return BigFloat(weight) / BigFloat(10.0) * log(factor) + one;
  };
  if (getMscale() && getMscaleAllDim())
    return multiple * magnitude(toDouble(getMscale())) /
           magnitude(toDouble(getMscaleAllDim()));
  return multiple * magnitude(1.0);
}

FrequencyScalingInterface YarnScalingAttr::withUnitAttentionFactor() const {
  return get(getContext(), getFactor(), getOriginalMaxPosition(), getBetaFast(),
             getBetaSlow(), getTruncate(),
             FloatAttr::get(getFactor().getType(), 1.0), /*mscale=*/{},
             /*mscale_all_dim=*/{}, getExtFactor(), /*attn_factor=*/{});
}

//===----------------------------------------------------------------------===//
// explicit
//===----------------------------------------------------------------------===//

Attribute ExplicitScalingAttr::parse(AsmParser &parser, Type) {
  DenseF64ArrayAttr values;
  FloatAttr attention;
  if (failed(mlir::posenc::FieldParser(parser)
                 .reals("values", values)
                 .real("attention_factor", attention, /*required=*/false)
                 .parse()))
    return {};
  return get(parser.getContext(), values, attention);
}

void ExplicitScalingAttr::print(AsmPrinter &printer) const {
  FieldPrinter(printer)
      .reals("values", getValues())
      .real("attention_factor", getAttentionFactor());
}

LogicalResult ExplicitScalingAttr::verifyFor(EmitError emitError, int64_t dim,
                                             double) const {
  if (getValues().size() != dim / 2)
    return emitError() << "expected " << dim / 2 << " values, got "
                       << getValues().size() << " (explicit_c1)";
  if (!llvm::all_of(getValues().asArrayRef(),
                    [](double value) { return std::isfinite(value); }))
    return emitError() << "expected finite values (explicit_c2)";
  if (!isPositive(getAttentionFactor()))
    return emitError()
           << "expected a finite, positive attention_factor (explicit_c3)";
  return success();
}

SmallVector<BigFloat>
ExplicitScalingAttr::computeFrequencies(int64_t dim, const BigFloat &) const {
  return llvm::map_to_vector(getValues().asArrayRef(),
                             [](double value) { return BigFloat(value); });
}

BigFloat ExplicitScalingAttr::computeAttentionFactor() const {
  return BigFloat(getAttentionFactor() ? toDouble(getAttentionFactor()) : 1.0);
}

FrequencyScalingInterface ExplicitScalingAttr::withUnitAttentionFactor() const {
  return get(getContext(), getValues(), /*attention_factor=*/{});
}

bool ExplicitScalingAttr::isIndexedByPair() const { return true; }
