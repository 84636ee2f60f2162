//===- FrequenciesAttr.cpp - frequencies and their scaling ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttrFields.h"
#include "RoundedFrequencies.h"
#include "ScalingSupport.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

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
