//===- YarnScaling.cpp - #posenc.yarn -------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttrFields.h"
#include "ScalingSupport.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

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
