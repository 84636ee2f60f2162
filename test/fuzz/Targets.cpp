//===- Targets.cpp - runs the compiler on fuzzed inputs -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Targets.h"

#include "posenc/ABI/CInterface.h"
#include "posenc/ABI/Passes.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/Driver/Input.h"
#include "posenc/Frontend/ModelConfig.h"
#include "posenc/Frontend/ModuleBuilder.h"
#include "posenc/Registration/Registration.h"
#include "posenc/Target/KernelModule.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include <sys/mman.h>
#include <unistd.h>

using namespace posenc::fuzz;
using namespace mlir;
using namespace mlir::posenc;
namespace frontend = ::posenc::frontend;

/// Passes and pipelines that run on any module, as in posenc-opt.
static constexpr llvm::StringLiteral pipelines[] = {
    "convert-posenc-attention-to-linalg",
    "convert-posenc-attention-to-vector",
    "convert-posenc-rope-to-linalg",
    "posenc-decompose-rotations",
    "posenc-decompose-rotations{vector-bytes=64},posenc-vectorize-tiles{vector-"
    "bytes=64}",
    "convert-posenc-sinusoidal-to-linalg",
    "convert-posenc-tables-to-vector",
    "func.func(posenc-copy-to-loops)",
    "func.func(posenc-forall-to-tasks)",
    "func.func(posenc-tile-positions)",
    "one-shot-bufferize",
    "posenc-create-kernels",
    "posenc-decompose-attention",
    "posenc-decompose-kv-append",
    "posenc-decompose-rope",
    "posenc-emit-c-interface",
    "posenc-legalize-bf16",
    "posenc-expand-bf16",
    "posenc-expand-math",
    "func.func(posenc-expand-tiles)",
    "posenc-fuse-ropes",
    "posenc-declare-shared-memory",
    "posenc-lower-tensor-maps",
    "posenc-math-to-intrinsics",
    "resolve-ranked-shaped-type-result-dims",
};

namespace {
/// Counts the errors of a context without printing them.
class ErrorCounter {
public:
  explicit ErrorCounter(MLIRContext &context)
      : handler(&context, [this](Diagnostic &diagnostic) {
          count += diagnostic.getSeverity() == DiagnosticSeverity::Error;
          // The tools print diagnostics, so that code runs here, too.
          (void)diagnostic.str();
          return success();
        }) {}

  /// If `failed`, returns a message unless an error was emitted since the last
  /// call.
  std::string check(bool failed, const Twine &step) {
    bool silent = failed && count == 0;
    count = 0;
    return silent ? (step + " fails without an error").str() : "";
  }

private:
  unsigned count = 0;
  ScopedDiagnosticHandler handler;
};
} // namespace

static void registerOnce() {
  static bool once = [] {
    registerAllPasses();
    registerPosencPasses();
    return true;
  }();
  (void)once;
}

Targets::Targets() : context(MLIRContext::Threading::DISABLED) {
  registerOnce();
  registerAllDialects(registry);
  context.appendDialectRegistry(registry);
}

/// Prints a module in custom and in generic form.
static void printModule(ModuleOp module) {
  module.print(llvm::nulls());
  module.print(llvm::nulls(), OpPrintingFlags().printGenericOpForm());
}

static void generateCode(llvm::Module &module, const TargetSpec &target,
                         OptLevel level) {
  llvm::SmallString<0> buffer;
  llvm::raw_svector_ostream os(buffer);
  llvm::legacy::PassManager manager;
  std::unique_ptr<llvm::TargetMachine> machine = target.createTargetMachine(
      level == OptLevel::O0 ? llvm::CodeGenOptLevel::None
                            : llvm::CodeGenOptLevel::Aggressive);
  machine->addPassesToEmitFile(manager, os, nullptr,
                               llvm::CodeGenFileType::ObjectFile);
  manager.run(module);
}

/// Compiles a module, which may be lowered in part, up to the stage `last`.
static Outcome compileModule(ModuleOp module, const TargetSpec &target,
                             ErrorCounter &errors, Reached last,
                             OptLevel level) {
  if (failed(lowerModule(module, Stage::Vector, target)))
    return {errors.check(true, "lowering to vectors"), Read};
  printModule(module);
  if (failed(lowerModule(module, Stage::Llvm, target)))
    return {errors.check(true, "lowering to LLVM"), Vectors};
  printModule(module);
  LibraryParts parts;
  parts.modules = {module};
  parts.targets = target;
  parts.prefix = "fuzz";
  parts.threads = Threads::None;
  parts.optLevel = level;
  (void)createHeader(parts.getKernels(), "fuzz", /*weights=*/"");
  if (last == LLVMDialect) {
    PassManager manager(module.getContext());
    manager.addPass(createPosencEmitCInterfacePass());
    bool bad = failed(manager.run(module));
    return {errors.check(bad, "posenc-emit-c-interface"), LLVMDialect};
  }
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> code = translateLibrary(parts, llvmContext);
  if (!code)
    return {errors.check(true, "translation"), LLVMDialect};
  if (last == LLVMIR)
    return {"", LLVMIR};
  generateCode(*code, target, level);
  return {"", Code};
}

/// Reads and prints a module. Returns null after a failure; `wrong` is set if
/// there was no error message.
OwningOpRef<ModuleOp> Targets::load(llvm::StringRef text, std::string &wrong) {
  // Reads the text from an anonymous file, as the tools read files.
  int file = memfd_create("input", MFD_CLOEXEC);
  bool whole = write(file, text.data(), text.size()) == ssize_t(text.size());
  std::string path = "/proc/self/fd/" + std::to_string(file);
  off_t logged = lseek(STDERR_FILENO, 0, SEEK_CUR);
  ErrorCounter errors(context);
  OwningOpRef<ModuleOp> module =
      whole ? loadModule(path, {}, context) : nullptr;
  close(file);
  if (!module) {
    // Errors that are no MLIR diagnostics are printed to stderr.
    bool printed = lseek(STDERR_FILENO, 0, SEEK_CUR) != logged;
    wrong = printed ? "" : errors.check(true, "reading");
    return nullptr;
  }
  printModule(*module);
  return module;
}

Outcome Targets::readModule(llvm::StringRef text) {
  std::string wrong;
  OwningOpRef<ModuleOp> module = load(text, wrong);
  return {wrong, module ? Read : Refused};
}

Outcome Targets::runModule(llvm::StringRef text, uint64_t choice,
                           OptLevel codeLevel) {
  std::string wrong;
  OwningOpRef<ModuleOp> module = load(text, wrong);
  if (!module)
    return {wrong, Refused};
  ErrorCounter errors(context);
  auto runPipeline = [&](StringRef pipeline) {
    OwningOpRef<ModuleOp> copy = module->clone();
    PassManager manager(&context);
    if (failed(parsePassPipeline(pipeline, manager)))
      return "no pipeline " + pipeline.str();
    bool bad = failed(manager.run(*copy));
    if (!bad)
      printModule(*copy);
    return errors.check(bad, pipeline);
  };
  constexpr size_t count = std::size(pipelines);
  StringRef first = pipelines[choice % count];
  StringRef second = pipelines[choice / count % count];
  for (StringRef pipeline : {StringRef("canonicalize"),
                             StringRef("posenc-to-linalg"), first, second})
    if (std::string wrong = runPipeline(pipeline); !wrong.empty())
      return {wrong, Read};
  // LLVM takes most of the time and is the least likely to fail, so only 4 of
  // 16 inputs are translated to LLVM IR, and only 1 of 16 is optimized and
  // compiled.
  uint64_t rest = choice / count / count % 16;
  Reached last = rest == 0 ? Code : rest < 4 ? LLVMIR : LLVMDialect;
  if (!target)
    target = llvm::cantFail(TargetSpec::parse("x86-64:x86-64-v3"));
  return compileModule(*module, *target, errors, last,
                       last == Code ? codeLevel : OptLevel::O0);
}

Outcome Targets::runConfig(llvm::StringRef text) {
  ErrorCounter errors(context);
  SmallVector<frontend::Diagnostic> diagnostics;
  std::optional<frontend::ModelConfig> config =
      frontend::readModelConfig(context, text, "config.json", diagnostics);
  frontend::printDiagnostics(llvm::nulls(), diagnostics);
  if (!config) {
    bool silent = llvm::none_of(diagnostics, [](const auto &diagnostic) {
      return diagnostic.severity == frontend::Severity::Error;
    });
    return {silent ? "reading fails without an error" : "", Refused};
  }
  OwningOpRef<ModuleOp> module = buildModule(context, *config);
  if (!module)
    return {errors.check(true, "building"), Refused};
  if (failed(verify(*module)))
    return {"the module built is invalid", Read};
  printModule(*module);
  return {"", Read};
}
