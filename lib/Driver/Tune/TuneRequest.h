//===- TuneRequest.h - what to tune for -------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_TUNE_TUNEREQUEST_H
#define POSENC_LIB_DRIVER_TUNE_TUNEREQUEST_H

#include "Case.h"
#include "posenc/Driver/Input.h"
#include "posenc/TargetInfo/TargetSpec.h"

namespace mlir::posenc {

/// A function to measure, with arguments of one or several sizes.
struct TunedFunction {
  /// What to compile. Arguments are chosen by `outputBytes` unless it has some.
  Case function;
  /// Whether it is measured with several sizes, in place and elsewhere.
  bool hasSizes = false;
};

struct TuneRequest {
  std::string path, output;
  /// The names of the functions to measure: those of the input, and with them
  /// kernels that any model may have; or the one that was asked for.
  std::vector<std::string> names;
  std::vector<TunedFunction> functions;
  InputOptions inputOptions;
  TargetSpec target;
  double budgetSeconds = 120;
};

/// Kernels that show what choices matter for: rows in order and apart, views,
/// few heads, caches of both layouts, and attention of many queries.
std::vector<TunedFunction> getCommonFunctions();

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_TUNE_TUNEREQUEST_H
