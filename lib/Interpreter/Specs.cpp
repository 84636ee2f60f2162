//===- Specs.cpp - conversion of attributes for the oracle ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Specs.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::posenc;
namespace reference = ::posenc::reference;
using reference::FrequencySpec;
using reference::ScalingKind;

static double real(FloatAttr value) { return value.getValueAsDouble(); }

static std::optional<double> optionalReal(FloatAttr value) {
  return value ? std::optional(real(value)) : std::nullopt;
}

FailureOr<FrequencySpec>
mlir::posenc::getFrequencySpec(Operation *op, FrequenciesAttr frequencies) {
  FrequencySpec spec;
  spec.dim = frequencies.getDim();
  spec.base = real(frequencies.getBase());
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
            return true;
          })
          .Case([&](ExplicitScalingAttr scaling) {
            spec.kind = ScalingKind::Explicit;
            ArrayRef<double> values = scaling.getValues().asArrayRef();
            spec.list.assign(values.begin(), values.end());
            spec.attentionFactor = optionalReal(scaling.getAttentionFactor());
            return true;
          })
          .Default(false);
  if (!known)
    return op->emitError() << "the reference does not support "
                           << frequencies.getScaling();
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
