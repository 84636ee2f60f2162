//===- AttentionTestUtils.h - helpers of attention tests --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_UNIT_REFERENCE_ATTENTIONTESTUTILS_H
#define POSENC_TEST_UNIT_REFERENCE_ATTENTIONTESTUTILS_H

#include "TestUtils.h"
#include "posenc/Reference/Attention.h"

namespace posenc::reference {

/// The operands of an attention: sequence x token x head x channel.
struct Operands {
  Array q, k, v;
};

struct Sizes {
  int64_t sequences = 2, queries = 5, keys = 9;
  int64_t heads = 4, keyHeads = 2, width = 8, valueWidth = 6;
};

inline Operands randomOperands(const Sizes &sizes, DType type = DType::F32) {
  const Sizes &s = sizes;
  return {
      randomArray({s.sequences, s.queries, s.heads, s.width}, type, 1),
      randomArray({s.sequences, s.keys, s.keyHeads, s.width}, type, 2),
      randomArray({s.sequences, s.keys, s.keyHeads, s.valueWidth}, type, 3)};
}

inline AttentionResult attend(const Operands &x, const AttentionSpec &spec) {
  EXPECT_EQ(checkAttention(x.q, x.k, x.v, spec), "");
  return attention(x.q, x.k, x.v, spec);
}

inline Rotation rotationOf(int64_t dim, std::vector<int64_t> positions = {}) {
  Rotation rotation;
  rotation.frequencies = plainSpec(dim);
  rotation.positions = std::move(positions);
  return rotation;
}

/// Returns the offset of row (a, b, c) of x.
inline size_t rowOf(const Array &x, int64_t a, int64_t b, int64_t c) {
  return size_t(((a * x.shape[1] + b) * x.shape[2] + c) * x.shape[3]);
}

/// Returns an array whose row (a, b, c) is the row of x at the offset
/// from(a, b, c).
template <typename From>
Array pickRows(const Array &x, std::vector<int64_t> shape, const From &from) {
  Array result;
  for (int64_t a = 0; a < shape[0]; ++a)
    for (int64_t b = 0; b < shape[1]; ++b)
      for (int64_t c = 0; c < shape[2]; ++c) {
        auto row = x.values.begin() + int64_t(from(a, b, c));
        result.values.insert(result.values.end(), row, row + x.shape[3]);
      }
  shape.push_back(x.shape[3]);
  result.shape = std::move(shape);
  return result;
}

/// Swaps tokens and heads.
inline Array transposed(const Array &x) {
  return pickRows(
      x, {x.shape[0], x.shape[2], x.shape[1]},
      [&](int64_t a, int64_t b, int64_t c) { return rowOf(x, a, c, b); });
}

/// Returns tokens [begin, end) of a sequence of a token-major tensor.
inline Array tokensOf(const Array &x, int64_t sequence, int64_t begin,
                      int64_t end) {
  return pickRows(x, {1, end - begin, x.shape[2]},
                  [&](int64_t, int64_t b, int64_t c) {
                    return rowOf(x, sequence, begin + b, c);
                  });
}

inline void expectNear(const std::vector<long double> &a,
                       const std::vector<long double> &b,
                       long double bound = 1e-13L) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i])
      EXPECT_LE(std::fabs(a[i] - b[i]), bound) << "element " << i;
}

inline void expectSame(const AttentionResult &a, const AttentionResult &b) {
  EXPECT_EQ(a.output.shape, b.output.shape);
  EXPECT_EQ(a.logSumExp.shape, b.logSumExp.shape);
  expectNear(a.output.values, b.output.values);
  expectNear(a.output.magnitude, b.output.magnitude);
  expectNear(a.logSumExp.values, b.logSumExp.values);
}

/// Whether the outputs differ by more than rounding errors.
inline bool differ(const AttentionResult &a, const AttentionResult &b) {
  for (size_t i = 0; i < a.output.values.size(); ++i)
    if (!(std::fabs(a.output.values[i] - b.output.values[i]) <= 1e-6L))
      return true;
  return false;
}

} // namespace posenc::reference

#endif // POSENC_TEST_UNIT_REFERENCE_ATTENTIONTESTUTILS_H
