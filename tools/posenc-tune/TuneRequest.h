//===- TuneRequest.h - command line of posenc-tune --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_TUNE_TUNEREQUEST_H
#define POSENC_TOOLS_TUNE_TUNEREQUEST_H

#include "Case.h"
#include "posenc/Driver/Input.h"
#include "posenc/TargetInfo/TargetSpec.h"

namespace mlir::posenc {

/// A function to measure.
struct TunedFunction {
  /// The function, with or without inputs.
  Case function;
  /// Whether to measure inputs of several sizes, each in place and out of
  /// place, instead of the inputs of `function`.
  bool sweepsSizes = false;
  /// Kernels whose parameters are measured first, as in FunctionInfo.
  std::vector<std::string> tunedKernels = {};
};

/// The parsed command line and the functions to measure.
struct TuneRequest {
  std::string path, output;
  /// The function of --function; empty for all.
  std::vector<std::string> names;
  /// The functions of the input that are selected, and the common ones if all
  /// are.
  std::vector<TunedFunction> functions;
  InputOptions inputOptions;
  /// The CPU to compile for. Its tuning is where the search starts.
  TargetSpec target;
  double budgetSeconds = 120;
};

/// Returns kernels that cover all tuning parameters: contiguous and strided
/// rows of rope, few heads, decode with both cache layouts, prefill, and a
/// matrix product.
std::vector<TunedFunction> getCommonFunctions();

} // namespace mlir::posenc

#endif // POSENC_TOOLS_TUNE_TUNEREQUEST_H
