//===- AttentionVectorCase.h - attention that becomes vectors ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_NUMERICS_ATTENTIONVECTORCASE_H
#define POSENC_TEST_NUMERICS_ATTENTIONVECTORCASE_H

#include "Harness.h"

#include "posenc/Reference/CompareAttention.h"

#include <functional>

namespace posenc::test::vectors {

struct Sizes {
  int64_t batch = 2, queries = 37, keys = 101, heads = 4, keyHeads = 2;
  int64_t dim = 64, valueDim = 64;
  /// Of the caches, with `keys` slots each; 0: not paged.
  int64_t pages = 0;
};

/// A further operand of the function.
struct Operand {
  std::string type; // in MLIR
  runtime::Array array;
};

struct Case {
  const char *name;
  Sizes sizes;
  /// Text before `ins`, between it and `outs`, and after it.
  std::string attributes = {}, groups = {}, regions = {};
  std::function<void(reference::AttentionSpec &)> describe = {};
  /// `%x0` and so on; made anew for each test.
  std::function<std::vector<Operand>(posenc_dtype)> operands = {};
  bool isHeadMajor = false;
  bool hasLogSum = false;
  /// Whether the function knows how many queries there are, if they are few.
  bool isNumberKnown = true;

  /// With what has been set so far.
  Case causal() const;
  Case headMajor() const {
    Case result = *this;
    result.isHeadMajor = true;
    return result;
  }
  Case withLogSum() const {
    Case result = *this;
    result.hasLogSum = true;
    return result;
  }
  Case ofUnknownNumber() const {
    Case result = *this;
    result.isNumberKnown = false;
    return result;
  }
};

/// The function `f` of a case, with further operands.
std::string makeModule(const Case &c, posenc_dtype dtype,
                       const std::vector<Operand> &operands);

struct Inputs {
  runtime::Array q, k, v;
  std::vector<Operand> operands;

  std::vector<posenc_value> values() const {
    std::vector<posenc_value> result{q.value(), k.value(), v.value()};
    for (const Operand &operand : operands)
      result.push_back(operand.array.value());
    return result;
  }
};
Inputs makeInputs(const Case &c, posenc_dtype dtype);

/// What the oracle says.
reference::AttentionResult compute(const Case &c, const Inputs &inputs);
reference::AttentionComparison compare(posenc_dtype dtype,
                                       const runtime::Array &result,
                                       const reference::AttentionResult &ref);

/// Compiles and calls the case, also with NaNs and infinities here and there.
void expectRight(const Case &c, posenc_dtype dtype, Route route);

std::string getCaseName(const testing::TestParamInfo<Case> &info);

//===----------------------------------------------------------------------===//
// What cases have in common
//===----------------------------------------------------------------------===//

Sizes sized(int64_t queries, int64_t keys);
Sizes headed(int64_t heads, int64_t keyHeads, int64_t dim, int64_t valueDim);
Sizes fewQueries(int64_t queries, int64_t keys, int64_t heads, int64_t keyHeads,
                 int64_t dim, int64_t valueDim);
/// Of pages of 16 tokens.
Sizes paged(int64_t queries);

std::function<void(reference::AttentionSpec &)>
window(std::optional<int64_t> left, std::optional<int64_t> right,
       bool causal = false);
reference::Rotation makeRotation(int64_t dim, double base, bool interleaved,
                                 int64_t offset);

/// Causal, both rotated alike, 64 lanes.
extern const char kRotated[];
void setRotated(reference::AttentionSpec &spec);

/// Lengths of two batch entries.
std::vector<Operand> makeLengths(posenc_dtype);
void setLengths(reference::AttentionSpec &spec);

/// Pages of 16 for two batch entries, of 101 and 23 keys.
extern const char kPages[];
std::vector<Operand> makePages(posenc_dtype dtype);
void setPages(reference::AttentionSpec &spec);

/// Of four heads; one is minus infinity.
std::vector<Operand> makeSinks(posenc_dtype);
void setSinks(reference::AttentionSpec &spec);
/// Of queries and keys, 64 lanes.
std::vector<Operand> makeNorms(posenc_dtype);
void setNorms(reference::AttentionSpec &spec);

/// Scores are at most 5.
extern const char kSoftCap[];
void setSoftCap(reference::AttentionSpec &spec);

} // namespace posenc::test::vectors

#endif // POSENC_TEST_NUMERICS_ATTENTIONVECTORCASE_H
