//===- Compare.h - errors in units in the last place ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Errors are measured as U = |result - ref| / ulp(m), where m is the magnitude
// of the reference's element. A rotation can cancel, so the magnitude of a
// rotated element is that of its pair. Neither correlations nor purely absolute
// tolerances are used.

#ifndef POSENC_REFERENCE_COMPARE_H
#define POSENC_REFERENCE_COMPARE_H

#include "posenc/Reference/Tensor.h"

#include <optional>
#include <string>

namespace posenc::reference {

struct CompareOptions {
  /// Subtracted from every absolute error: 2^-61 for f32 tables, 2^-60 for f64.
  long double absoluteSlack = 0;
  /// The shape of the result, if known. It must equal the reference's.
  std::optional<std::vector<int64_t>> shape;
};

struct Comparison {
  long double maxUlp = 0; ///< The largest error without mismatches, in ulp.
  long double maxAbs = 0; ///< The largest absolute error, before the slack.
  /// The index of the first mismatch, or of the element with maxUlp. Empty if
  /// there are no elements.
  std::vector<int64_t> index;
  /// Whether there is an error that ulps cannot express: a NaN or an infinity
  /// on one side only, a change of an element that must be passed on unchanged,
  /// or another shape.
  bool mismatch = false;
  std::string reason; ///< The reason of the mismatch.

  bool within(long double limitUlp) const {
    return !mismatch && maxUlp <= limitUlp;
  }
};

/// Compares \p result, an array of \p type, with the reference.
///
/// NaN equals NaN. The result must be infinite where the rounded reference is.
/// An infinite result near the largest finite number counts as the number that
/// would follow it. A bf16 result of zero matches any subnormal reference.
Comparison compare(DType type, const void *result, const Array &ref,
                   const CompareOptions &options = {});

enum class ResultKind { Table, Rotated };

/// Returns the largest allowed error in ulp. \p withAttention tells whether a
/// table is multiplied by an attention factor.
long double defaultLimitUlp(ResultKind kind, DType type, bool withAttention);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_COMPARE_H
