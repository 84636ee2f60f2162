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

  // The parser of MLIR reads the zero after the end of a text, so texts that it
  // gets as they are are strings. Both success and a failure with a diagnostic
  // are right. A failure without a diagnostic is wrong.

  /// Reads a config.json and builds its module.
  Outcome runConfig(llvm::StringRef text);
  /// Reads, imports, raises and prints a module. `name` stands for the path of
  /// the input, whose suffix says what it is.
  Outcome readModule(llvm::StringRef input, llvm::StringRef name = "");
  /// Compiles a module. `choice` selects the passes that run besides the
  /// pipelines, and the last stage of the compilation. Machine code is of
  /// `codeLevel`.
  Outcome
  runModule(llvm::StringRef input, uint64_t choice,
            mlir::posenc::OptLevel codeLevel = mlir::posenc::OptLevel::O3,
            llvm::StringRef name = "");
  /// Reads a module, writes it as bytecode and reads that, which must give the
  /// same module.
  Outcome copyAsBytecode(const std::string &text);
  /// Runs a pipeline of this project's passes on a module, and verifies the
  /// result. A pipeline with other passes is refused.
  Outcome runPipeline(llvm::StringRef pipeline, const std::string &module);
  /// The passes and pipelines that runModule() selects from.
  static std::vector<std::string> getPipelines();
  /// Reads a module with `file` for the flag --constants.
  Outcome readConstants(llvm::StringRef module, const std::string &file);

private:
  mlir::OwningOpRef<mlir::ModuleOp>
  load(llvm::StringRef input, std::string &wrong, llvm::StringRef name = "");

  mlir::DialectRegistry registry;
  mlir::MLIRContext context;
  std::optional<mlir::posenc::TargetSpec> target;
};

/// An anonymous file with these bytes, which functions that take a path read.
class AnonymousFile {
public:
  explicit AnonymousFile(llvm::StringRef bytes);
  ~AnonymousFile();
  AnonymousFile(const AnonymousFile &) = delete;
  AnonymousFile &operator=(const AnonymousFile &) = delete;

  /// Whether all bytes were written.
  bool isWhole() const { return whole; }
  std::string getPath() const;

private:
  int file;
  bool whole;
};

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_TARGETS_H
