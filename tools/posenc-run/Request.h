//===- Request.h - command line of posenc-run -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_RUN_REQUEST_H
#define POSENC_TOOLS_RUN_REQUEST_H

#include "Comparison.h"
#include "posenc-run/Kernels.h"
#include "posenc/Driver/Input.h"

namespace mlir::posenc {

/// A parsed command line of posenc-run.
struct RunRequest {
  /// The module, config.json or compiled library.
  std::string path;
  /// The name of the function; empty for the only one.
  std::string function;
  /// The path of a tuning file, or empty.
  std::string tuning;
  std::optional<OptLevel> optLevel;
  InputOptions inputOptions;
  std::vector<std::string> inputs;
  /// Paths of `.npy` files, in the order of the results.
  std::vector<std::string> outputs, expectedOutputs;
  Device device;
  bool reference = false;
  /// Whether to read all weights of a library, instead of running a function.
  bool verifyWeights = false;
  Limits limits;
  /// The tolerance of the expected outputs; if absent, `limits` apply.
  std::optional<Tolerance> tolerance;

  /// Whether expected outputs are compared in units in the last place, whose
  /// magnitudes the oracle knows.
  bool needsMeasure() const { return !expectedOutputs.empty() && !tolerance; }
};

/// Parses the command line. Returns an exit code if the program must end, as
/// after `--help` and after an error, which is printed.
std::optional<int> parseRunRequest(int argc, char **argv, RunRequest &request);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_RUN_REQUEST_H
