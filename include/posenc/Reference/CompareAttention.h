//===- CompareAttention.h - Errors of an attention's result -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Two measures, both of which must hold: the relative Frobenius error, which
// sees what is wrong everywhere by a little, and for every element
//   |error| <= 8 * eps_T * mag + 64 * eps_f32 * max
// with mag = sum p|v| and max the largest |v| of the head, which sees one wrong
// element. The bound is for scores of a standard deviation of up to 4. For f64
// tensors, whose sums are f64, both eps are its own.

#ifndef POSENC_REFERENCE_COMPAREATTENTION_H
#define POSENC_REFERENCE_COMPAREATTENTION_H

#include "posenc/Reference/Attention.h"

#include <optional>
#include <string>
#include <vector>

namespace posenc::reference {

struct AttentionComparison {
  double relative = 0; ///< Frobenius norm of the error over the reference's.
  double maxRatio = 0; ///< Largest |error| in units of its bound.
  double maxAbs = 0;   ///< Largest |error|.
  /// Where maxRatio is reached, or the first mismatch; empty without elements.
  std::vector<int64_t> index;
  /// A NaN or an infinity on one side only, a row that sees no key and is not
  /// 0, another shape.
  bool mismatch = false;
  std::string reason; ///< Of the mismatch.

  bool within(double limitRelative) const {
    return !mismatch && relative <= limitRelative && maxRatio <= 1;
  }
};

/// The largest error allowed of an element, with \p magnitude the sum p|v| and
/// \p largest the largest |v| of its head.
long double getAttentionLimit(DType type, long double magnitude,
                              double largest);

/// Measures \p result, an array of \p type with the reference's shape, or with
/// \p shape where that is known. NaN, infinity and bf16's flushed subnormals as
/// in compare(); eps_T * mag is at least the subnormal spacing.
AttentionComparison compareAttention(
    DType type, const void *result, const AttentionResult &ref,
    const std::optional<std::vector<int64_t>> &shape = std::nullopt);

/// The largest relative Frobenius error allowed: 0 for integers.
double defaultLimitRelative(DType type);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_COMPAREATTENTION_H
