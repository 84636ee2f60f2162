//===- Targets.h - what an input is put through -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_FUZZ_TARGETS_H
#define POSENC_TEST_FUZZ_TARGETS_H

#include "posenc/Target/TargetSpec.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"

#include <string>

namespace posenc::fuzz {

/// Reads, lowers and translates inputs, as the tools do.
class Targets {
public:
  Targets();

  /// Each returns what is wrong, or an empty string: success, and failure with
  /// an error, are both as they should be.
  std::string runConfig(llvm::StringRef text);
  /// `choice` says which passes run besides the pipelines, and whether to
  /// generate code.
  std::string runModule(llvm::StringRef textOrBytecode, uint64_t choice);

private:
  mlir::DialectRegistry registry;
  mlir::MLIRContext context;
  mlir::posenc::TargetSpec target;
};

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_TARGETS_H
