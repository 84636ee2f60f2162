//===- Axes.h - assignment of pairs to position axes ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// With several position axes (time, height, width), every pair of channels is
// rotated by the position on one axis.

#ifndef POSENC_REFERENCE_AXES_H
#define POSENC_REFERENCE_AXES_H

#include "posenc/Reference/Frequencies.h"

namespace posenc::reference {

enum class AxesKind {
  Single,
  /// The first s_0 pairs are on axis 0, the next s_1 on axis 1, and so on; f_i
  /// depends on the index i over all axes. This is M-RoPE of Qwen2-VL.
  Sections,
  /// With A axes, pair i is on axis a = i mod A if a > 0 and i < A * s_a, else
  /// on axis 0; f_i depends on the index i over all axes. Qwen3-VL has A = 3.
  InterleavedSections,
  /// Sections whose frequencies restart on each axis with d = 2 * s_a, unless
  /// they are given. Used in vision and video transformers.
  Axial,
};

struct AxesSpec {
  AxesKind kind = AxesKind::Single;
  std::vector<int64_t> sections; ///< Pairs per axis, d/2 in total; not Single.

  int64_t numAxes() const {
    return kind == AxesKind::Single ? 1 : int64_t(sections.size());
  }
};

/// Returns an empty string if both are valid together, otherwise the reason why
/// not.
std::string check(const FrequencySpec &spec, const AxesSpec &axes);

/// The axis and the frequency of every pair. The constructor aborts unless
/// check(spec, axes) returns an empty string.
class PairTable {
public:
  PairTable(const FrequencySpec &spec, const AxesSpec &axes);

  int64_t size() const { return int64_t(frequencies.size()); }
  int64_t numAxes() const { return axisCount; }
  int64_t axis(int64_t pair) const { return axisOf[size_t(pair)]; }
  const Real &frequency(int64_t pair) const {
    return frequencies[size_t(pair)];
  }
  const Real &attention() const { return factor; }
  /// Whether the angle of a pair is the f32 product of its frequency and the
  /// position.
  bool roundsAngles() const { return rounds; }

private:
  int64_t axisCount;
  bool rounds;
  std::vector<int64_t> axisOf;
  std::vector<Real> frequencies;
  Real factor;
};

} // namespace posenc::reference

#endif // POSENC_REFERENCE_AXES_H
