//===- Targets.h - what an input is put through -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_FUZZ_TARGETS_H
#define POSENC_TEST_FUZZ_TARGETS_H

#include "Sandbox.h"

#include "posenc/TargetInfo/TargetSpec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"

namespace posenc::fuzz {

/// How far an input got; for a config, Read is a module.
enum Reached : size_t { Refused, Read, Vectors, LLVMDialect, LLVMIR, Code };

/// Reads, lowers and translates inputs, as the tools do.
class Targets {
public:
  Targets();

  /// Wrong is a failure without an error; success, and failure with an error,
  /// are both as they should be.
  Outcome runConfig(llvm::StringRef text);
  /// No more than what a tool does before it lowers anything.
  Outcome readModule(llvm::StringRef textOrBytecode);
  /// `choice` says which passes run besides the pipelines, and whether to
  /// generate code.
  Outcome runModule(llvm::StringRef textOrBytecode, uint64_t choice);

private:
  mlir::OwningOpRef<mlir::ModuleOp> load(llvm::StringRef textOrBytecode,
                                         std::string &wrong);

  mlir::DialectRegistry registry;
  mlir::MLIRContext context;
  std::optional<mlir::posenc::TargetSpec> target;
};

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_TARGETS_H
