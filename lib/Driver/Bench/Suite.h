//===- Suite.h - the cases of make bench ------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_SUITE_H
#define POSENC_LIB_DRIVER_BENCH_SUITE_H

#include "AttentionModule.h"

namespace mlir::posenc {

/// How large the cases of the suite are.
enum class SuiteSize {
  Full, ///< from memory: at least four times the last-level cache
  Small ///< a few hundred tokens, for tests of the suite itself
};

/// As many tokens as need so much memory that caches do not help.
int64_t getTokensFromMemory(SuiteSize size, int64_t touchedBytesPerToken);

/// The tokens of an attention, and the keys that one query attends to.
int64_t getAttentionTokens(SuiteSize size, int64_t tokens);
int64_t getKeysFromMemory(SuiteSize size, const AttentionForm &form);

/// The numbers of threads of cases that are large: these or, if there are none,
/// one and two.
std::vector<int> getThreadsFromMemory(const std::vector<int> &wanted);

/// All cases of the suite, in the order of the report.
std::vector<Case> createSuite(SuiteSize size, const std::vector<int> &threads);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_SUITE_H
