//===- AttentionCase.h - attention cases and their data ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_NUMERICS_ATTENTIONCASE_H
#define POSENC_TEST_NUMERICS_ATTENTIONCASE_H

#include "Harness.h"

#include "posenc/Reference/CompareAttention.h"

#include <random>

namespace posenc::test {

/// How the sequences of a batch are stored. RaggedQueries has ragged queries
/// and padded keys.
enum class Form { Padded, Ragged, RaggedQueries, Paged };
/// The positions of a rotation: token indices, an operand, or an operand with
/// two axes.
enum class Angles { None, TokenIndices, Positions, Axes };
/// Additive masks per head or shared by all heads and sequences; boolean masks
/// of queries and keys, or of keys alone; and additive masks of the lowest
/// finite number, which hide some queries' keys, all keys of other queries, and
/// nothing from the rest.
enum class Mask { None, Added, AddedToAll, Boolean, BooleanByKey, AddedLowest };

/// An attention op, without its dynamic sizes.
struct AttentionCase {
  posenc_dtype dtype = POSENC_F32;
  bool queryHeadMajor = false, keyHeadMajor = false;
  int64_t heads = 4, keyHeads = 2, dim = 16, valueDim = 16;
  bool dynamicHeads = false;
  int64_t staticQueries = 0; // 0: dynamic. Not for ragged queries.
  Form form = Form::Padded;
  bool lengths = false; // For padded sequences; implied by other forms.
  bool causal = false;
  std::optional<int64_t> left, right;
  std::optional<double> scale;
  bool softCap = false, alibi = false, t5 = false;
  bool where = false, document = false;
  bool sinks = false, logSums = false, norms = false;
  /// Variants of `norms`: one norm over all heads of a token, and 1 added to
  /// the weights.
  bool normsOfAllHeads = false, normsPlusOne = false;
  Angles queryAngles = Angles::None, keyAngles = Angles::None;
  bool interleaved = false;
  Mask mask = Mask::None;
  Route route = Route::Direct;
};

/// Returns MLIR of a function `f` with the attention op of a case.
std::string getModule(const AttentionCase &c);

/// The dynamic sizes. With ragged sequences, `queries` and `keys` are averages.
struct AttentionSizes {
  int64_t batch, queries, keys;
};

/// The inputs of a case, and the oracle's results for them.
class AttentionData {
public:
  /// Draws the inputs from `seed` and computes the expected results.
  AttentionData(const AttentionCase &c, AttentionSizes sizes, uint64_t seed);
  AttentionData(const AttentionData &) = delete;

  std::vector<posenc_value> getInputs() const;
  /// Puts NaNs and infinities into all keys and values that no query sees,
  /// which must not change the results. Returns the number of such keys.
  size_t spoilUnseen(uint64_t seed);
  /// Puts NaNs and infinities into some keys and values, and expects NaNs in
  /// the results of the queries that see them.
  void spoilSome(uint64_t seed);
  const reference::AttentionResult &getExpected() const { return expected; }

  /// Returns why the results are wrong, or an empty string if they are within
  /// the limits.
  std::string check(const std::vector<runtime::Array> &results) const;

private:
  runtime::Array &add(runtime::Array array);
  runtime::Array &addIndices(std::vector<int64_t> shape,
                             const std::vector<int64_t> &values);
  reference::Rotation addRotation(Angles angles, std::vector<int64_t> shape);
  void spoilRow(runtime::Array &rows, size_t row, std::mt19937_64 &generator);
  /// Returns for each row of the keys, in memory order, whether a query sees
  /// it.
  std::vector<bool> findVisibleRows() const;
  reference::AttentionResult compute(const reference::AttentionSpec &s) const;

  AttentionCase c;
  std::vector<runtime::Array> inputs;
  reference::AttentionSpec spec;
  reference::AttentionResult expected;
  bool hasNonFinite = false;
};

} // namespace posenc::test

#endif // POSENC_TEST_NUMERICS_ATTENTIONCASE_H
