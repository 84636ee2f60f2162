//===- Suite.h - the cases of make bench ------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_BENCH_SUITE_H
#define POSENC_LIB_BENCH_SUITE_H

#include "Case.h"

namespace mlir::posenc {

/// How large the cases of the suite are.
enum class SuiteSize {
  Full, ///< from memory: at least four times the last-level cache
  Small ///< a few hundred tokens, for tests of the suite itself
};

/// All cases of the suite, in the order of the report. `threads`, where not
/// empty, replaces the numbers of threads of those from memory.
std::vector<Case> createSuite(SuiteSize size, const std::vector<int> &threads);

} // namespace mlir::posenc

#endif // POSENC_LIB_BENCH_SUITE_H
