//===- AttentionCase.h - attentions to compile and compare ------*- C++ -*-===//
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

/// How batch entries are stored.
enum class Form { Padded, Packed, PackedQueries, Paged };
/// Where the angles of a rotation come from.
enum class Angles { None, Places, Positions, Axes };
enum class Mask { None, Added, AddedToAll, Boolean, BooleanByKey };

/// One attention, apart from its sizes.
struct AttentionCase {
  posenc_dtype dtype = POSENC_F32;
  bool queryHeadMajor = false, keyHeadMajor = false;
  int64_t heads = 4, keyHeads = 2, dim = 16, valueDim = 16;
  bool dynamicHeads = false;
  int64_t staticQueries = 0; // Where known; not where they are packed.
  Form form = Form::Padded;
  bool lengths = false; // Padded only; others have what they need.
  bool causal = false;
  std::optional<int64_t> left, right;
  std::optional<double> scale;
  bool softCap = false, alibi = false, t5 = false;
  bool where = false, document = false;
  bool sinks = false, logSums = false, norms = false;
  /// With norms: of all heads of a token together; 1 is added to the weights.
  bool normsOfAllHeads = false, normsPlusOne = false;
  Angles queryAngles = Angles::None, keyAngles = Angles::None;
  bool interleaved = false;
  Mask mask = Mask::None;
  Route route = Route::Direct;
};

/// The function `f` of a case.
std::string getModule(const AttentionCase &c);

struct AttentionSizes {
  int64_t batch, queries, keys;
};

/// What a case is called with, and what it means.
class AttentionData {
public:
  /// Not for f64: scores of such a standard deviation.
  AttentionData(const AttentionCase &c, AttentionSizes sizes, uint64_t seed);
  AttentionData(const AttentionData &) = delete;

  std::vector<posenc_value> getInputs() const;
  /// Puts NaNs and infinities into all keys and values that no query sees,
  /// which must not change the results; returns how many there are.
  size_t spoilUnseen(uint64_t seed);
  /// Puts them into some keys and values, and expects them in the results of
  /// the queries that see these.
  void spoilSome(uint64_t seed);
  const reference::AttentionResult &getExpected() const { return expected; }

  /// Why the results are wrong; empty if they are within the limits.
  std::string check(const std::vector<runtime::Array> &results) const;

private:
  runtime::Array &add(runtime::Array array);
  runtime::Array &addIndices(std::vector<int64_t> shape,
                             const std::vector<int64_t> &values);
  reference::Rotation addRotation(Angles angles, std::vector<int64_t> shape);
  void spoilRow(runtime::Array &rows, size_t row, std::mt19937_64 &generator);
  /// Which rows of keys, by batch entry or page, some query sees.
  std::vector<bool> findSeenRows() const;
  reference::AttentionResult compute(const reference::AttentionSpec &s) const;

  AttentionCase c;
  std::vector<runtime::Array> inputs;
  reference::AttentionSpec spec;
  reference::AttentionResult expected;
  bool isSpoilt = false;
};

} // namespace posenc::test

#endif // POSENC_TEST_NUMERICS_ATTENTIONCASE_H
