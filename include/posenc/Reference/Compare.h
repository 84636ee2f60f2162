//===- Compare.h - Errors in units in the last place ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// How an error is measured: U = |result - ref| / ulp(m), with m the reference's
// magnitude. A rotation cancels, so a lane is measured against its pair and not
// against itself. Never a correlation, never only an absolute tolerance.

#ifndef POSENC_REFERENCE_COMPARE_H
#define POSENC_REFERENCE_COMPARE_H

#include "posenc/Reference/Tensor.h"

#include <optional>
#include <string>

namespace posenc::reference {

struct CompareOptions {
  /// Taken off every absolute error: 2^-61 for an f32 table, 2^-60 for f64.
  long double absoluteSlack = 0;
  /// The result's shape where it is known; it must be the reference's.
  std::optional<std::vector<int64_t>> shape;
};

struct Comparison {
  long double maxUlp = 0; ///< Over all lanes that are not mismatched.
  long double maxAbs = 0; ///< Likewise, before the slack.
  /// Where maxUlp is reached, or the first mismatch; empty without elements.
  std::vector<int64_t> index;
  /// No number of ulps describes it: a NaN or an infinity on one side only, a
  /// changed lane that should pass through, another shape.
  bool mismatch = false;
  std::string reason; ///< Of the mismatch.

  bool within(long double limitUlp) const {
    return !mismatch && maxUlp <= limitUlp;
  }
};

/// Measures \p result, an array of \p type with the reference's shape.
///
/// NaN equals NaN. Where the reference rounds to infinity so must the result;
/// an infinity next to the largest number counts as the number that would
/// follow it. A bf16 result of zero stands for any subnormal one.
Comparison compare(DType type, const void *result, const Array &ref,
                   const CompareOptions &options = {});

enum class ResultKind { Table, Rotated };

/// The largest error in ulp that the exact contract allows.
long double defaultLimitUlp(ResultKind kind, DType type, bool withAttention);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_COMPARE_H
