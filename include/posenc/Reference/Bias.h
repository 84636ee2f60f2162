//===- Bias.h - biases on attention scores ----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_REFERENCE_BIAS_H
#define POSENC_REFERENCE_BIAS_H

#include "posenc/Reference/Tensor.h"

#include <cstdint>
#include <string>

namespace posenc::reference {

/// Returns the slope of one of \p heads heads (Press et al., ALiBi, 2022).
/// Other numbers of heads than powers of two are handled as in their code.
double alibiSlope(int64_t head, int64_t heads);
/// Returns -slope * |query - key|.
double alibiBias(int64_t head, int64_t heads, int64_t queryPosition,
                 int64_t keyPosition);

/// The parameters of T5's relative position buckets.
struct T5Buckets {
  int64_t buckets = 32;
  int64_t maxDistance = 128;
  /// If true, half of the buckets are for keys after the query. Otherwise these
  /// keys share bucket 0.
  bool bidirectional = true;
};

/// Returns an empty string if t5Bucket() may be called, otherwise the reason
/// why not.
std::string check(const T5Buckets &spec);
/// Returns the bucket of \p relative = key - query (Raffel et al., 2020). The
/// logarithm is floored as a real number, without rounding errors.
int64_t t5Bucket(int64_t relative, const T5Buckets &spec = {});

/// Returns clip(key - query, -limit, limit) + limit (Shaw et al., 2018).
int64_t shawIndex(int64_t query, int64_t key, int64_t limit);

/// Returns cap * tanh(score / cap), as in Gemma 2.
double softCap(double score, double cap);

/// Transformer-XL's relative shift of the last two dimensions, which are query
/// and relative position. Row i moves left by queries - 1 - i: a column of
/// zeros is prepended, the rows are concatenated, and the first `queries`
/// elements are dropped. So elements beyond the diagonal come from the next
/// row.
Array relShift(const Array &scores);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_BIAS_H
