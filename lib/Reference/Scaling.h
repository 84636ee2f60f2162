//===- Scaling.h - table of scaling kinds -----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// To add a kind, add an enumerator, a row in Scaling.cpp, and a file with its
// functions. No other code depends on the kind.

#ifndef POSENC_LIB_REFERENCE_SCALING_H
#define POSENC_LIB_REFERENCE_SCALING_H

#include "posenc/Reference/Frequencies.h"

namespace posenc::reference {

struct ScalingRule {
  ScalingKind kind;
  /// Whether the frequencies are given per pair of the whole head, so that they
  /// do not restart on each axis of an axial encoding.
  bool indexedByPair;
  /// Returns an empty string or the reason why the spec is invalid. The fields
  /// that all kinds share are checked before.
  std::string (*check)(const FrequencySpec &spec);
  /// Returns d/2 frequencies.
  std::vector<Real> (*frequencies)(const FrequencySpec &spec);
  /// Returns the default attention factor.
  Real (*attention)(const FrequencySpec &spec);
};

/// Returns null for a value outside of the enumeration.
const ScalingRule *findScalingRule(ScalingKind kind);

/// Returns b^(-2i/d), on which most kinds are based.
std::vector<Real> unscaledFrequencies(const FrequencySpec &spec);

/// Returns an empty string if \p value is finite and above \p bound, otherwise
/// a reason that mentions \p name.
std::string checkAbove(const char *name, double value, double bound);

/// Whether transformers has a recipe for the frequencies, in f32.
bool hasRoundedFrequencies(const FrequencySpec &spec);
std::vector<Real> roundedFrequencies(const FrequencySpec &spec);

std::string checkLlama3(const FrequencySpec &spec);
std::vector<Real> llama3Frequencies(const FrequencySpec &spec);

/// Checks the base and the factor.
std::string checkFactor(const FrequencySpec &spec);

std::string checkNtk(const FrequencySpec &spec);
std::vector<Real> ntkFrequencies(const FrequencySpec &spec);
std::string checkDynamic(const FrequencySpec &spec);
std::vector<Real> dynamicFrequencies(const FrequencySpec &spec);

std::string checkLongrope(const FrequencySpec &spec);
std::vector<Real> longropeFrequencies(const FrequencySpec &spec);
Real longropeAttention(const FrequencySpec &spec);
std::string checkProportional(const FrequencySpec &spec);
std::vector<Real> proportionalFrequencies(const FrequencySpec &spec);
std::string checkDivisors(const FrequencySpec &spec);
std::vector<Real> divisorsFrequencies(const FrequencySpec &spec);

std::string checkYarn(const FrequencySpec &spec);
std::vector<Real> yarnFrequencies(const FrequencySpec &spec);
Real yarnAttention(const FrequencySpec &spec);

std::string checkGeometric(const FrequencySpec &spec);
std::vector<Real> geometricFrequencies(const FrequencySpec &spec);

} // namespace posenc::reference

#endif // POSENC_LIB_REFERENCE_SCALING_H
