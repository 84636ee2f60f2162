//===- Request.h - command line of posenc-bench -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_REQUEST_H
#define POSENC_TOOLS_BENCH_REQUEST_H

#include "Case.h"
#include "Suite.h"

#include <optional>

namespace mlir::posenc {

/// The parsed command line.
struct BenchRequest {
  bool isSuite = false;
  SuiteSize suiteSize = SuiteSize::Full;
  /// Input file, function, --target and --tuning. The suite uses only --tuning.
  std::string path, function, target, tuning;
  InputOptions inputOptions;
  /// --input, in the order of the function's arguments.
  std::vector<std::string> inputs;
  bool outOfPlace = false;
  LimitKind limit = LimitKind::Auto;
  /// Thread counts; empty for the default.
  std::vector<int> threads;
  bool withPeers = false;
  std::string python = "python3";
  /// The folders of --keep-libraries and --baseline; empty if not given.
  std::string keptLibraries, baseline;
  /// Prints the hash of each case's results instead of measuring.
  bool verifyOnly = false;

  /// Options to pass on to Google Benchmark. The fields below are options of
  /// Google Benchmark that this tool handles.
  std::vector<std::string> benchmarkArguments;
  std::string filter;
  bool listTests = false;
  bool hasFormat = false;
  /// Format of the file of --benchmark_out: `json` or `console`.
  std::string fileFormat = "json";
  bool hasFile = false;
};

/// Parses the command line. Returns an exit code after --help, --version or an
/// error, when the program must exit.
std::optional<int> parseBenchRequest(int argc, char **argv,
                                     BenchRequest &request);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_REQUEST_H
