//===- Axes.cpp - assignment of pairs to position axes --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Reference/Axes.h"
#include "Fatal.h"

namespace posenc::reference {

std::string check(const FrequencySpec &spec, const AxesSpec &axes) {
  if (std::string reason = check(spec); !reason.empty())
    return reason;
  if (axes.kind == AxesKind::Single)
    return {};
  int64_t rest = spec.dim / 2;
  for (int64_t section : axes.sections) {
    // Subtracts instead of adding, since the sum could overflow.
    if (section < 0 || section > rest)
      return "the sections must be positive and add up to half the dimension";
    rest -= section;
  }
  if (axes.sections.empty() || rest != 0)
    return "the sections must add up to half the dimension";
  return {};
}

static std::vector<int64_t> assignAxes(const AxesSpec &axes, int64_t pairs) {
  std::vector<int64_t> result;
  switch (axes.kind) {
  case AxesKind::Single:
    result.assign(size_t(pairs), 0);
    break;
  case AxesKind::Sections:
  case AxesKind::Axial:
    for (size_t a = 0; a < axes.sections.size(); ++a)
      result.insert(result.end(), size_t(axes.sections[a]), int64_t(a));
    break;
  case AxesKind::InterleavedSections:
    for (int64_t i = 0; i < pairs; ++i) {
      int64_t axis = i % axes.numAxes();
      bool isInSection = i < axes.numAxes() * axes.sections[size_t(axis)];
      result.push_back(isInSection ? axis : 0);
    }
    break;
  }
  return result;
}

PairTable::PairTable(const FrequencySpec &spec, const AxesSpec &axes) {
  requireEmpty(check(spec, axes));
  axisCount = axes.numAxes();
  rounds = spec.roundsAngles;
  axisOf = assignAxes(axes, spec.dim / 2);

  factor = spec.attentionFactor;
  frequencies = spec.list;
  if (!frequencies.empty())
    return;
  std::vector<int64_t> sections{spec.dim / 2};
  if (axes.kind == AxesKind::Axial)
    sections = axes.sections;
  for (int64_t pairs : sections)
    for (Real &frequency : computeFrequencies(2 * pairs, spec.base))
      frequencies.push_back(std::move(frequency));
}

} // namespace posenc::reference
