//===- Request.h - the command line of posenc-bench -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_REQUEST_H
#define POSENC_LIB_DRIVER_BENCH_REQUEST_H

#include "Case.h"
#include "Suite.h"

#include <optional>

namespace mlir::posenc {

/// What the command line asks for.
struct BenchRequest {
  bool isSuite = false;
  SuiteSize suiteSize = SuiteSize::Full;
  /// Where it is not the suite.
  std::string path, function, target, tuning;
  InputOptions inputOptions;
  std::vector<std::string> inputs;
  /// In place unless this says otherwise.
  bool outOfPlace = false;
  LimitKind limit = LimitKind::Auto;
  /// Empty is the default.
  std::vector<int> threads;
  bool withPeers = false;
  std::string python = "python3";
  /// Folders of the libraries of the suite's cases: to keep those that are
  /// compiled in, and of those to compare with; empty if not.
  std::string keptLibraries, baseline;
  /// Print the hash of each case's results, and measure nothing.
  bool verifyOnly = false;

  /// What is left for Google Benchmark, and what this tool does for it.
  std::vector<std::string> benchmarkArguments;
  std::string filter;
  bool listTests = false;
  bool hasFormat = false;
  /// `json` or `console`, for a file that is written.
  std::string fileFormat = "json";
  bool hasFile = false;
};

/// Returns an exit code if the program is to end.
std::optional<int> parseBenchRequest(int argc, char **argv,
                                     BenchRequest &request);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_REQUEST_H
