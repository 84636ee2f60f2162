//===- CompareAttention.h - errors of attention results ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A result must satisfy two bounds. The relative Frobenius error detects small
// errors of all elements. The bound of each element,
//   |error| <= 8 * eps_T * mag + 64 * eps_f32 * max
// with mag = sum p|v| and max the largest |v| of the head, detects single wrong
// elements. It holds for scores with a standard deviation of up to 4. For f64
// tensors, which are summed in f64, eps_f64 replaces both eps.

#ifndef POSENC_REFERENCE_COMPAREATTENTION_H
#define POSENC_REFERENCE_COMPAREATTENTION_H

#include "posenc/Reference/Attention.h"

#include <optional>
#include <string>
#include <vector>

namespace posenc::reference {

struct AttentionComparison {
  double relative = 0; ///< Frobenius norm of the error / that of the reference.
  double maxRatio = 0; ///< The largest |error| in units of its bound.
  double maxAbs = 0;   ///< The largest |error|.
  /// The index of the first mismatch, or of the element with maxRatio. Empty if
  /// there are no elements.
  std::vector<int64_t> index;
  /// Whether there is a NaN or an infinity on one side only, a row without
  /// visible keys that is not 0, or another shape.
  bool mismatch = false;
  std::string reason; ///< The reason of the mismatch.

  bool within(double limitRelative) const {
    return !mismatch && relative <= limitRelative && maxRatio <= 1;
  }
};

/// Returns the largest allowed error of an element, where \p magnitude is the
/// sum p|v| and \p largest the largest |v| of its head.
long double getAttentionLimit(DType type, long double magnitude,
                              double largest);

/// Compares \p result, an array of \p type, with the reference. \p shape is its
/// shape, if known. NaN, infinities and flushed subnormals of bf16 are treated
/// as in compare(). eps_T * mag is at least the spacing of subnormals.
AttentionComparison compareAttention(
    DType type, const void *result, const AttentionResult &ref,
    const std::optional<std::vector<int64_t>> &shape = std::nullopt);

/// Returns the largest allowed relative Frobenius error; 0 for integers and f8.
double defaultLimitRelative(DType type);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_COMPAREATTENTION_H
