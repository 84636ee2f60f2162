//===- Axes.h - Which axis turns which pair ---------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// With several position axes (time, height, width) every pair follows one of
// them.

#ifndef POSENC_REFERENCE_AXES_H
#define POSENC_REFERENCE_AXES_H

#include "posenc/Reference/Frequencies.h"

namespace posenc::reference {

enum class AxesKind {
  Single,
  /// Runs of pairs: the first s_0 on axis 0, the next s_1 on axis 1, and so on;
  /// f_i counts through. Qwen2-VL's mRoPE.
  Sections,
  /// With A axes, pair i with i mod A = a > 0 and i < A * s_a is on axis a, all
  /// others on axis 0; f_i counts through. Qwen3-VL, where A is 3.
  InterleavedSections,
  /// Runs of pairs whose frequencies start again at 0 with d = 2 * s_a in each.
  /// An explicit list does not start again. Vision and video transformers.
  Axial,
};

struct AxesSpec {
  AxesKind kind = AxesKind::Single;
  std::vector<int64_t> sections; ///< Pairs per axis, sum d/2; unused if Single.

  int64_t numAxes() const {
    return kind == AxesKind::Single ? 1 : int64_t(sections.size());
  }
};

/// Empty if both are meaningful together, else the reason why not.
std::string check(const FrequencySpec &spec, const AxesSpec &axes);

/// The axis and the frequency of every pair. The constructor wants
/// check(spec, axes) to be empty and ends the program otherwise.
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

private:
  int64_t axisCount;
  std::vector<int64_t> axisOf;
  std::vector<Real> frequencies;
  Real factor;
};

} // namespace posenc::reference

#endif // POSENC_REFERENCE_AXES_H
