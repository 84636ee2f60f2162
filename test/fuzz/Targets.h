//===- Targets.h - runs the compiler on fuzzed inputs -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_FUZZ_TARGETS_H
#define POSENC_TEST_FUZZ_TARGETS_H

#include "Sandbox.h"

#include "posenc/Target/KernelModule.h"
#include "posenc/TargetInfo/TargetSpec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"

namespace posenc::fuzz {

/// The last stage that an input reached. For a config, Read means that a module
/// was built.
enum Reached : size_t { Refused, Read, Vectors, LLVMDialect, LLVMIR, Code };

/// Reads, lowers and translates inputs as the tools do.
class Targets {
public:
  Targets();

  // Both success and a failure with a diagnostic are right. A failure without a
  // diagnostic is wrong.

  /// Reads a config.json and builds its module.
  Outcome runConfig(llvm::StringRef text);
  /// Reads, imports, raises and prints a module.
  Outcome readModule(llvm::StringRef textOrBytecode);
  /// Compiles a module. `choice` selects the passes that run besides the
  /// pipelines, and the last stage of the compilation. Machine code is of
  /// `codeLevel`.
  Outcome
  runModule(llvm::StringRef textOrBytecode, uint64_t choice,
            mlir::posenc::OptLevel codeLevel = mlir::posenc::OptLevel::O3);

private:
  mlir::OwningOpRef<mlir::ModuleOp> load(llvm::StringRef textOrBytecode,
                                         std::string &wrong);

  mlir::DialectRegistry registry;
  mlir::MLIRContext context;
  std::optional<mlir::posenc::TargetSpec> target;
};

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_TARGETS_H
