//===- Specs.cpp - conversion of attributes for the oracle ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Specs.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
namespace reference = ::posenc::reference;
using reference::FrequencySpec;
using reference::ScalingKind;

static double real(FloatAttr value) { return value.getValueAsDouble(); }

static std::optional<double> optionalReal(FloatAttr value) {
  return value ? std::optional(real(value)) : std::nullopt;
}

static std::vector<double> list(DenseF64ArrayAttr values) {
  return values.asArrayRef().vec();
}

FailureOr<FrequencySpec>
mlir::posenc::getFrequencySpec(Operation *op, FrequenciesAttr frequencies) {
  FrequencySpec spec;
  spec.dim = frequencies.getDim();
  spec.base = real(frequencies.getBase());
  spec.roundsAngles = frequencies.roundsAngles();
  if (!frequencies.getScaling())
    return spec;
  bool known =
      llvm::TypeSwitch<Attribute, bool>(frequencies.getScaling())
          .Case([&](LinearScalingAttr scaling) {
            spec.kind = ScalingKind::Linear;
            spec.factor = real(scaling.getFactor());
            return true;
          })
          .Case([&](Llama3ScalingAttr scaling) {
            spec.kind = ScalingKind::Llama3;
            spec.factor = real(scaling.getFactor());
            spec.lowFreqFactor = real(scaling.getLowFreqFactor());
            spec.highFreqFactor = real(scaling.getHighFreqFactor());
            spec.originalMaxPosition = real(scaling.getOriginalMaxPosition());
            return true;
          })
          .Case([&](YarnScalingAttr scaling) {
            spec.kind = ScalingKind::Yarn;
            spec.factor = real(scaling.getFactor());
            spec.betaFast = real(scaling.getBetaFast());
            spec.betaSlow = real(scaling.getBetaSlow());
            spec.originalMaxPosition = real(scaling.getOriginalMaxPosition());
            spec.truncate = scaling.getTruncate();
            spec.attentionFactor = optionalReal(scaling.getAttentionFactor());
            spec.mscale = optionalReal(scaling.getMscale());
            spec.mscaleAllDim = optionalReal(scaling.getMscaleAllDim());
            spec.extFactor = optionalReal(scaling.getExtFactor()).value_or(1);
            spec.attnFactor = optionalReal(scaling.getAttnFactor()).value_or(1);
            return true;
          })
          .Case([&](ExplicitScalingAttr scaling) {
            spec.kind = ScalingKind::Explicit;
            spec.list = list(scaling.getValues());
            spec.attentionFactor = optionalReal(scaling.getAttentionFactor());
            return true;
          })
          .Case([&](NtkScalingAttr scaling) {
            spec.kind = ScalingKind::Ntk;
            spec.factor = real(scaling.getFactor());
            spec.mixedB = optionalReal(scaling.getMixedB());
            return true;
          })
          .Case([&](DynamicScalingAttr scaling) {
            spec.kind = ScalingKind::Dynamic;
            spec.factor = real(scaling.getFactor());
            spec.maxPosition = real(scaling.getMaxPosition());
            spec.length = real(scaling.getLength());
            return true;
          })
          .Case([&](LongropeScalingAttr scaling) {
            spec.kind = ScalingKind::Longrope;
            spec.list = list(scaling.getShortFactors());
            spec.longList = list(scaling.getLongFactors());
            spec.originalMaxPosition = real(scaling.getOriginalMaxPosition());
            spec.length = real(scaling.getLength());
            spec.factor = optionalReal(scaling.getFactor()).value_or(1);
            spec.attentionFactor = optionalReal(scaling.getAttentionFactor());
            return true;
          })
          .Case([&](ProportionalScalingAttr scaling) {
            spec.kind = ScalingKind::Proportional;
            spec.rotatedPairs = scaling.getRotatedPairs();
            spec.factor = real(scaling.getFactor());
            return true;
          })
          .Case([&](DivisorsScalingAttr scaling) {
            spec.kind = ScalingKind::Divisors;
            spec.list = list(scaling.getValues());
            return true;
          })
          .Case([&](GeometricScalingAttr scaling) {
            spec.kind = ScalingKind::Geometric;
            spec.shift = real(scaling.getShift());
            spec.scale = optionalReal(scaling.getScale()).value_or(1.0);
            return true;
          })
          .Default(false);
  if (!known)
    return op->emitError() << "the reference does not support "
                           << frequencies.getScaling();
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
                               ValueRange turns, Evaluator &values) {
  if (turns.empty())
    return getFrequencySpec(op, frequencies);
  auto source = turns.front().getDefiningOp<TurnsOp>();
  if (!source || turns != ValueRange(source->getResults()))
    return op->emitError(
        "the reference supports only turns that posenc.turns computes");
  std::optional<double> attention;
  if (!frequencies.hasUnitAttentionFactor())
    attention = frequencies.computeAttentionFactor().toDouble();
  if (source.getValues()) {
    FrequencySpec spec;
    spec.dim = frequencies.getDim();
    spec.base = real(frequencies.getBase());
    spec.kind = ScalingKind::Explicit;
    spec.list = getGivenFrequencies(source, values);
    spec.attentionFactor = attention;
    return spec;
  }
  FrequenciesAttr known =
      source.getFrequenciesAttr().withLength(getGivenLength(source, values));
  FailureOr<FrequencySpec> spec = getFrequencySpec(op, known);
  if (succeeded(spec) && frequencies != source.getFrequenciesAttr())
    spec->attentionFactor = attention;
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
