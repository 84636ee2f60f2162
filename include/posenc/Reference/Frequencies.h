//===- Frequencies.h - Angles per position and pair -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The frequency f_i (radians per position) of every pair i in [0, d/2), and the
// attention factor that multiplies cosine and sine, for each published way of
// stretching a context. Evaluated as real numbers, not in the floating-point
// steps of any one implementation.

#ifndef POSENC_REFERENCE_FREQUENCIES_H
#define POSENC_REFERENCE_FREQUENCIES_H

#include "posenc/Reference/Real.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace posenc::reference {

enum class ScalingKind {
  Default,  ///< f_i = b^(-2i/d). Su et al., RoFormer, 2021.
  Linear,   ///< f_i / s. Chen et al., Position Interpolation, 2023.
  Llama3,   ///< Long waves / s, short ones kept. Llama 3.1's model code.
  Yarn,     ///< A ramp between the two. Peng et al., YaRN, 2023.
  Explicit, ///< The list of f_i itself.
};

/// What a model's configuration says. Fields that a kind does not read are
/// ignored.
struct FrequencySpec {
  int64_t dim = 0; ///< Rotary dimension d, even.
  double base = 10000.0;
  ScalingKind kind = ScalingKind::Default;
  double factor = 1.0; ///< s
  double lowFreqFactor = 1.0;
  double highFreqFactor = 4.0;
  double betaFast = 32.0;
  double betaSlow = 1.0;
  double originalMaxPosition = 0.0; ///< L
  bool truncate = true;             ///< Yarn: round the ramp's ends outwards.
  /// Given, it is the attention factor of every kind; else yarn derives one and
  /// the others have 1.
  std::optional<double> attentionFactor;
  /// Yarn only, and only together; 0 counts as not given.
  std::optional<double> mscale;
  std::optional<double> mscaleAllDim;
  std::vector<double> list; ///< Explicit: d/2 frequencies, of any sign.
};

/// Empty if the spec is meaningful, else the reason why not: odd dim, a number
/// that is not finite, base <= 0 (yarn: <= 1), factor <= 0, high < low,
/// betaFast < betaSlow, a missing length, a list of the wrong length.
std::string check(const FrequencySpec &spec);

/// The numbers of one spec. The constructor wants check(spec) to be empty and
/// ends the program otherwise.
class Frequencies {
public:
  explicit Frequencies(const FrequencySpec &spec);

  int64_t size() const { return int64_t(values.size()); }
  const Real &operator[](int64_t pair) const { return values[size_t(pair)]; }
  long double value(int64_t pair) const { return (*this)[pair].toLongDouble(); }

  const Real &attention() const { return factor; }
  long double attentionFactor() const { return factor.toLongDouble(); }

private:
  std::vector<Real> values;
  Real factor;
};

} // namespace posenc::reference

#endif // POSENC_REFERENCE_FREQUENCIES_H
