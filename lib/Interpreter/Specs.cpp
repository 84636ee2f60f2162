//===- Specs.cpp - conversion of attributes for the oracle ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Specs.h"

#include "posenc/IR/PairFrequencies.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
namespace reference = ::posenc::reference;
using ::posenc::BigFloat;
using reference::FrequencySpec;

/// Converts a number without rounding, as the sum of its leading 53 bits, the
/// next ones, and so on.
static reference::Real toReal(BigFloat number) {
  reference::Real result;
  for (int bits = 0; bits < 256; bits += 53) {
    double leading = number.toDouble();
    result = result + reference::Real(leading);
    number = number - BigFloat(leading);
  }
  return result;
}

FrequencySpec mlir::posenc::getFrequencySpec(FrequenciesAttr frequencies,
                                             AxesAttr axes) {
  FrequencySpec spec;
  spec.dim = frequencies.getDim();
  spec.base = frequencies.getBase().getValueAsDouble();
  spec.roundsAngles = frequencies.roundsAngles();
  spec.attentionFactor = toReal(frequencies.computeAttentionFactor());
  if (frequencies.getScaling() || spec.roundsAngles)
    for (const PairFrequency &pair : computePairFrequencies(frequencies, axes))
      spec.list.push_back(toReal(pair.frequency));
  return spec;
}

std::vector<double> mlir::posenc::getGivenFrequencies(TurnsOp op,
                                                      Evaluator &values) {
  std::vector<double> result;
  for (long double value : values.get(op.getValues()).array.values)
    result.push_back(std::fabs(value) < 0x1p60L ? double(value) : 0.0);
  return result;
}

double mlir::posenc::getGivenLength(TurnsOp op, Evaluator &values) {
  int64_t length = values.getElements(op.getLength()).front();
  return double(std::max<int64_t>(length, 1));
}

FailureOr<FrequencySpec>
mlir::posenc::getFrequencySpec(Operation *op, FrequenciesAttr frequencies,
                               AxesAttr axes, ValueRange turns,
                               Evaluator &values) {
  if (turns.empty())
    return getFrequencySpec(frequencies, axes);
  auto source = turns.front().getDefiningOp<TurnsOp>();
  if (!source || turns != ValueRange(source->getResults()))
    return op->emitError(
        "the reference supports only turns that posenc.turns computes");
  FrequencySpec spec;
  if (source.getValues()) {
    spec.dim = frequencies.getDim();
    for (double frequency : getGivenFrequencies(source, values))
      spec.list.emplace_back(frequency);
  } else {
    spec = getFrequencySpec(
        source.getFrequenciesAttr().withLength(getGivenLength(source, values)),
        axes);
  }
  spec.attentionFactor = toReal(frequencies.computeAttentionFactor());
  return spec;
}

reference::AxesSpec mlir::posenc::getAxesSpec(AxesAttr axes) {
  reference::AxesSpec spec;
  if (!axes)
    return spec;
  switch (axes.getLayout()) {
  case AxisLayout::Contiguous:
    spec.kind = reference::AxesKind::Sections;
    break;
  case AxisLayout::Interleaved:
    spec.kind = reference::AxesKind::InterleavedSections;
    break;
  case AxisLayout::Axial:
    spec.kind = reference::AxesKind::Axial;
    break;
  }
  spec.sections.assign(axes.getSections().begin(), axes.getSections().end());
  return spec;
}
