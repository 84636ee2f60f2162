//===- TuneRequest.h - the command line of posenc-tune ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_TUNE_TUNEREQUEST_H
#define POSENC_LIB_TUNE_TUNEREQUEST_H

#include "posenc/Target/TargetSpec.h"
#include "posenc/Tools/Input.h"

namespace mlir::posenc {

/// What the command line asks for.
struct TuneRequest {
  std::string path, output;
  /// The functions to measure.
  std::vector<std::string> functions;
  InputOptions inputOptions;
  TargetSpec target;
  double budgetSeconds = 60;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_TUNE_TUNEREQUEST_H
