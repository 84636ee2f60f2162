//===- Scaling.h - One row per scaling kind ---------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// To add a kind: an enumerator, a row in Scaling.cpp, and its functions in a
// file of their own. Nothing else asks for the kind.

#ifndef POSENC_LIB_REFERENCE_SCALING_H
#define POSENC_LIB_REFERENCE_SCALING_H

#include "posenc/Reference/Frequencies.h"

namespace posenc::reference {

struct ScalingRule {
  ScalingKind kind;
  /// Its numbers belong to the pairs of the whole head, so that the parts of an
  /// axial encoding do not start again at the first one.
  bool indexedByPair;
  /// Empty or the reason; the fields that all kinds share are checked before.
  std::string (*check)(const FrequencySpec &spec);
  /// d/2 frequencies.
  std::vector<Real> (*frequencies)(const FrequencySpec &spec);
  /// The attention factor where none is given.
  Real (*attention)(const FrequencySpec &spec);
};

/// Null for a value outside the enumeration.
const ScalingRule *findScalingRule(ScalingKind kind);

/// b^(-2i/d), which most kinds start from.
std::vector<Real> unscaledFrequencies(const FrequencySpec &spec);

/// Empty if \p value is finite and above \p bound, else a reason with its name.
std::string checkAbove(const char *name, double value, double bound);

std::string checkLlama3(const FrequencySpec &spec);
std::vector<Real> llama3Frequencies(const FrequencySpec &spec);

std::string checkYarn(const FrequencySpec &spec);
std::vector<Real> yarnFrequencies(const FrequencySpec &spec);
Real yarnAttention(const FrequencySpec &spec);

} // namespace posenc::reference

#endif // POSENC_LIB_REFERENCE_SCALING_H
