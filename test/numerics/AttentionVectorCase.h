//===- AttentionVectorCase.h - cases of vectorized attention ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_NUMERICS_ATTENTIONVECTORCASE_H
#define POSENC_TEST_NUMERICS_ATTENTIONVECTORCASE_H

#include "Faults.h"
#include "Harness.h"

#include "posenc/Reference/CompareAttention.h"

#include <functional>

namespace posenc::test::vectors {

struct Sizes {
  int64_t batch = 2, queries = 37, keys = 101, heads = 4, keyHeads = 2;
  int64_t dim = 64, valueDim = 64;
  /// Number of pages of `keys` slots each; 0: not paged.
  int64_t pages = 0;
};

/// An operand of the function besides queries, keys and values.
struct Operand {
  std::string type; // as in MLIR
  runtime::Array array;
};

struct Case {
  const char *name;
  Sizes sizes;
  /// Text of the op before `ins`, between `ins` and `outs`, and after `outs`.
  std::string attributes = {}, groups = {}, regions = {};
  /// Sets what that text means in the oracle's description.
  std::function<void(reference::AttentionSpec &)> describe = {};
  /// Makes the operands `%x0`, `%x1` and so on, anew for each test.
  std::function<std::vector<Operand>(posenc_dtype)> operands = {};
  bool isHeadMajor = false;
  bool hasLogSum = false;
  /// Whether a number of queries from 1 to 8 is static.
  bool hasStaticQueries = true;

  // Each returns a changed copy.
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
  Case withDynamicQueries() const {
    Case result = *this;
    result.hasStaticQueries = false;
    return result;
  }
};

/// Returns MLIR of a function `f` with the attention op of a case.
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

/// Computes the oracle's results.
reference::AttentionResult compute(const Case &c, const Inputs &inputs);
reference::AttentionComparison compare(posenc_dtype dtype,
                                       const runtime::Array &result,
                                       const reference::AttentionResult &ref);

/// Compiles and calls the case and compares the results with the oracle's, also
/// with NaNs and infinities in some keys and values.
void expectMatchesOracle(const Case &c, posenc_dtype dtype, Route route);

/// Compiles the case for f32 with the fault, and expects that the results
/// differ from the oracle's, or agree for a control.
void expectFaultIsCaught(const Case &c, const Fault &fault);

std::string getCaseName(const testing::TestParamInfo<Case> &info);

//===----------------------------------------------------------------------===//
// Building blocks of cases
//===----------------------------------------------------------------------===//

Sizes sized(int64_t queries, int64_t keys);
Sizes headed(int64_t heads, int64_t keyHeads, int64_t dim, int64_t valueDim);
Sizes decodeSizes(int64_t queries, int64_t keys, int64_t heads,
                  int64_t keyHeads, int64_t dim, int64_t valueDim);
/// Sizes of a cache with 10 pages of 16 tokens.
Sizes paged(int64_t queries);

std::function<void(reference::AttentionSpec &)>
window(std::optional<int64_t> left, std::optional<int64_t> right,
       bool causal = false);
reference::Rotation makeRotation(int64_t dim, double base, bool interleaved,
                                 int64_t offset);

/// Causal attention with a rotation of 64 elements of queries and keys.
extern const char kRotated[];
void setRotated(reference::AttentionSpec &spec);

/// Key lengths 101 and 23 of two sequences.
std::vector<Operand> makeLengths(posenc_dtype);
void setLengths(reference::AttentionSpec &spec);

/// Pages of 16 tokens for two sequences of 101 and 23 keys.
extern const char kPages[];
std::vector<Operand> makePages(posenc_dtype dtype);
void setPages(reference::AttentionSpec &spec);

/// Sinks of four heads; one is minus infinity.
std::vector<Operand> makeSinks(posenc_dtype);
void setSinks(reference::AttentionSpec &spec);
/// Weights of RMS norms of queries and keys with 64 elements.
std::vector<Operand> makeNorms(posenc_dtype);
void setNorms(reference::AttentionSpec &spec);

/// A score region that caps scores at 5.
extern const char kSoftCap[];
void setSoftCap(reference::AttentionSpec &spec);

} // namespace posenc::test::vectors

#endif // POSENC_TEST_NUMERICS_ATTENTIONVECTORCASE_H
