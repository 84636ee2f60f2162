//===- Frequencies.h - frequencies of channel pairs -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The frequency f_i (radians per position) of every pair i in [0, d/2), and the
// attention factor that multiplies cosine and sine, for each published scaling
// for long contexts. They are evaluated as real numbers and do not reproduce
// the rounding steps of any implementation.

#ifndef POSENC_REFERENCE_FREQUENCIES_H
#define POSENC_REFERENCE_FREQUENCIES_H

#include "posenc/Reference/Real.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace posenc::reference {

enum class ScalingKind {
  Default,      ///< f_i = b^(-2i/d). Su et al., RoFormer, 2021.
  Linear,       ///< f_i / s. Chen et al., Position Interpolation, 2023.
  Llama3,       ///< f_i / s for long wavelengths only. Llama 3.1's model code.
  Yarn,         ///< A ramp from f_i to f_i / s. Peng et al., YaRN, 2023.
  Explicit,     ///< A list of f_i.
  Ntk,          ///< A base that grows with s. bloc97, NTK-aware, 2023; vLLM.
  Dynamic,      ///< A base that grows with the length. emozilla, 2023.
  Longrope,     ///< f_i / e_i, e by the length. Ding et al., LongRoPE, 2024.
  Proportional, ///< f_i / s for the first pairs, else 0. Gemma 4's model code.
  Divisors,     ///< f_i / c_i. ggml's freq_factors.
  /// scale * b^(-i/(d/2 - shift)), as in tensor2tensor and diffusers.
  Geometric,
};

/// The rotary parameters of a model. Each kind ignores the fields that it does
/// not use.
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
  /// The attention factor of any kind. If absent, yarn derives it and the other
  /// kinds have 1.
  std::optional<double> attentionFactor;
  /// Yarn only. Used only if both are given and not 0.
  std::optional<double> mscale;
  std::optional<double> mscaleAllDim;
  /// Yarn only: the weight of the unscaled frequencies, and a factor of the
  /// derived attention factor.
  double extFactor = 1.0;
  double attnFactor = 1.0;
  std::optional<double> mixedB; ///< Ntk: the exponent of vLLM's mixed form.
  double maxPosition = 0.0;     ///< Dynamic: M.
  double length = 0.0;          ///< Dynamic, longrope: the sequence length.
  int64_t rotatedPairs = 0;     ///< Proportional: the number of pairs.
  /// Explicit: d/2 frequencies, of any sign. Divisors: c_i. Longrope: e_i up to
  /// the length L.
  std::vector<double> list;
  std::vector<double> longList; ///< Longrope: e_i beyond the length L.
  double shift = 0.0;           ///< Geometric: below d/2, unless d/2 is 1.
  double scale = 1.0;           ///< Geometric: factor of all frequencies.
  /// Frequencies and angles are f32, in the order of operations of
  /// transformers. Not for all kinds.
  bool roundsAngles = false;
};

/// Returns an empty string if the spec is valid, otherwise the reason why not:
/// an odd dim, a number that is not finite, base <= 0 (yarn: <= 1), factor <=
/// 0, high < low, betaFast < betaSlow, a missing length, a list of the wrong
/// length, or a divisor <= 0.
std::string check(const FrequencySpec &spec);

/// The frequencies and the attention factor of a spec. The constructor aborts
/// unless check(spec) returns an empty string.
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
