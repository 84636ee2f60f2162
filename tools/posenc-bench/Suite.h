//===- Suite.h - the cases of make bench ------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_SUITE_H
#define POSENC_TOOLS_BENCH_SUITE_H

#include "AttentionModule.h"

namespace mlir::posenc {

/// The size of the suite's cases.
enum class SuiteSize {
  Full, ///< memory-bound cases have four times the last-level cache or more
  Small ///< a few hundred tokens, for tests of the suite itself
};

/// Returns the number of tokens of a memory-bound case: a power of two, at
/// least 16384, that touches at least four times the last-level cache.
int64_t getMemoryBoundTokens(SuiteSize size, int64_t touchedBytesPerToken);

/// Returns the number of tokens of an attention: `tokens`, or a 32nd for
/// SuiteSize::Small.
int64_t getAttentionTokens(SuiteSize size, int64_t tokens);

/// Returns the number of keys of a memory-bound decode.
int64_t getMemoryBoundKeys(SuiteSize size, const AttentionForm &form);

/// Returns the thread counts of large cases: `wanted` or, if that is empty, 1
/// and, where the machine has more than one CPU, 2.
std::vector<int> getLargeCaseThreads(const std::vector<int> &wanted);

/// Returns all cases of the suite, in the order of the report. `threads` are
/// the thread counts of large cases; empty for the default.
std::vector<Case> createSuite(SuiteSize size, const std::vector<int> &threads);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_SUITE_H
