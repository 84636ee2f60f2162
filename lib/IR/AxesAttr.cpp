//===- AxesAttr.cpp - several position axes -------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionalVerify.h"
#include "posenc/IR/PairFrequencies.h"
#include "posenc/IR/Posenc.h"

#include <numeric>

using namespace mlir;
using namespace mlir::posenc;

LogicalResult AxesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               AxisLayout, ArrayRef<int64_t> sections) {
  if (sections.size() < 2 || sections.size() > 8)
    return emitError() << "expected between 2 and 8 sections, got "
                       << sections.size() << " (axes_c1)";
  for (int64_t section : sections)
    if (section <= 0 || section > 32768)
      return emitError() << "expected sections between 1 and 32768, got "
                         << section << " (axes_c2)";
  return success();
}

int64_t AxesAttr::getNumPairs() const {
  return std::accumulate(getSections().begin(), getSections().end(),
                         int64_t{0});
}

int64_t AxesAttr::getAxisOfPair(int64_t pair) const {
  if (getLayout() == AxisLayout::Interleaved) {
    int64_t axis = pair % getNumAxes();
    return pair < getNumAxes() * getSections()[axis] ? axis : 0;
  }
  for (auto [axis, section] : llvm::enumerate(getSections())) {
    if (pair < section)
      return axis;
    pair -= section;
  }
  return 0;
}

SmallVector<PairFrequency>
mlir::posenc::computePairFrequencies(FrequenciesAttr frequencies,
                                     AxesAttr axes) {
  SmallVector<PairFrequency> result;
  if (axes && axes.getLayout() == AxisLayout::Axial &&
      restartsOnAxes(frequencies)) {
    for (auto [axis, section] : llvm::enumerate(axes.getSections()))
      for (::posenc::BigFloat &f : frequencies.computeAxisFrequencies(section))
        result.push_back({static_cast<int64_t>(axis), std::move(f)});
    return result;
  }
  for (auto [pair, f] : llvm::enumerate(frequencies.computeFrequencies()))
    result.push_back({axes ? axes.getAxisOfPair(pair) : 0, f});
  return result;
}
