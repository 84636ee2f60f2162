//===- Bias.h - Biases on attention scores ----------------------*- C++ -*-===//
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

/// The slope of one of \p heads heads. Press et al., ALiBi, 2022; numbers of
/// heads that are no power of two as in their code.
double alibiSlope(int64_t head, int64_t heads);
/// -slope * |query - key|.
double alibiBias(int64_t head, int64_t heads, int64_t queryPosition,
                 int64_t keyPosition);

struct T5Buckets {
  int64_t buckets = 32;
  int64_t maxDistance = 128;
  /// Half of the buckets are for keys after the query; else these share
  /// bucket 0.
  bool bidirectional = true;
};

/// Empty if t5Bucket may be called, else the reason why not.
std::string check(const T5Buckets &spec);
/// The bucket of \p relative = key - query. The logarithm's floor is that of
/// the real number. Raffel et al., 2020.
int64_t t5Bucket(int64_t relative, const T5Buckets &spec = {});

/// clip(key - query, -limit, limit) + limit. Shaw et al., 2018.
int64_t shawIndex(int64_t query, int64_t key, int64_t limit);

/// cap * tanh(score / cap). Gemma 2.
double softCap(double score, double cap);

/// Transformer-XL's shift of the last two dimensions (query, distance): row i
/// moves left by queries - 1 - i. A zero column goes before the first, the
/// rows are laid end to end, and the first as many elements as there are
/// queries are dropped; so the elements beyond the diagonal are those of the
/// next row.
Array relShift(const Array &scores);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_BIAS_H
