//===- Frequencies.h - frequencies of channel pairs -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_REFERENCE_FREQUENCIES_H
#define POSENC_REFERENCE_FREQUENCIES_H

#include "posenc/Reference/Real.h"

#include <cstdint>
#include <string>
#include <vector>

namespace posenc::reference {

/// The frequencies of the pairs of a head, in radians per position.
struct FrequencySpec {
  int64_t dim = 0;       ///< Rotary dimension d, even.
  double base = 10000.0; ///< b
  /// The frequencies of all d/2 pairs, such as those of a scaling. If empty,
  /// they are b^(-2i/d), and restart on each axis of an axial encoding. Su et
  /// al., RoFormer, 2021.
  std::vector<Real> list;
  /// Multiplies cosines and sines.
  Real attentionFactor = Real(1);
  /// Whether angles are the f32 product of position and frequency, as in
  /// transformers. Needs the list, whose numbers are f32.
  bool roundsAngles = false;
};

/// Returns an empty string if the spec is valid, otherwise the reason why not:
/// an odd dim, base <= 0, a list of the wrong length, or a number that is not
/// finite.
std::string check(const FrequencySpec &spec);

/// Returns b^(-2i/d) for each of d/2 pairs.
std::vector<Real> computeFrequencies(int64_t dim, double base);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_FREQUENCIES_H
