//===- Request.h - the command line of posenc-run ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_RUN_REQUEST_H
#define POSENC_LIB_DRIVER_RUN_REQUEST_H

#include "Comparison.h"
#include "posenc/Driver/Input.h"
#include "posenc/Driver/Run/Kernels.h"

namespace mlir::posenc {

/// What the command line asks for.
struct RunRequest {
  std::string path;
  std::string function;
  /// A file of posenc-tune, if not empty.
  std::string tuning;
  InputOptions inputOptions;
  std::vector<std::string> inputs;
  /// Paths of `.npy` files, in the order of the results.
  std::vector<std::string> outputs, expectedOutputs;
  Device device;
  bool reference = false;
  Limits limits;
};

/// Returns an exit code if the program is to end.
std::optional<int> parseRunRequest(int argc, char **argv, RunRequest &request);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_RUN_REQUEST_H
