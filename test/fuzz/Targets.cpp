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

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
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

AnonymousFile::AnonymousFile(llvm::StringRef bytes)
    : file(memfd_create("input", MFD_CLOEXEC)),
      whole(write(file, bytes.data(), bytes.size()) == ssize_t(bytes.size())) {}

AnonymousFile::~AnonymousFile() { close(file); }

std::string AnonymousFile::getPath() const {
  return "/proc/self/fd/" + std::to_string(file);
}

namespace {
/// Whether errors that are no diagnostics of MLIR were printed to stderr, which
/// is a file.
class PrintedErrors {
public:
  bool any() const { return lseek(STDERR_FILENO, 0, SEEK_CUR) != begin; }

private:
  off_t begin = lseek(STDERR_FILENO, 0, SEEK_CUR);
};
} // namespace

/// Reads and prints a module. Returns null after a failure; `wrong` is set if
/// there was no error message.
OwningOpRef<ModuleOp> Targets::load(llvm::StringRef input, std::string &wrong,
                                    llvm::StringRef name) {
  PrintedErrors printed;
  ErrorCounter errors(context);
  OwningOpRef<ModuleOp> module;
  if (name.empty()) {
    // Reads the text from an anonymous file, as the tools read files.
    AnonymousFile file(input);
    if (file.isWhole())
      module = loadModule(file.getPath(), {}, context);
  } else {
    module = loadModuleFromText(name, input, {}, context);
  }
  if (!module) {
    wrong = printed.any() ? "" : errors.check(true, "reading");
    return nullptr;
  }
  printModule(*module);
  return module;
}

Outcome Targets::readModule(llvm::StringRef input, llvm::StringRef name) {
  std::string wrong;
  OwningOpRef<ModuleOp> module = load(input, wrong, name);
  return {wrong, module ? Read : Refused};
}

Outcome Targets::copyAsBytecode(const std::string &text) {
  ErrorCounter errors(context);
  ParserConfig config(&context);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, config);
  if (!module)
    return {errors.check(true, "parsing"), Refused};
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  if (failed(writeBytecodeToFile(*module, os)))
    return {errors.check(true, "writing bytecode"), Refused};
  OwningOpRef<ModuleOp> copy = parseSourceString<ModuleOp>(bytes, config);
  if (!copy)
    return {"bytecode cannot be read again", Refused};
  auto print = [](ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream os(text);
    module.print(os, OpPrintingFlags().printGenericOpForm());
    return text;
  };
  return {print(*copy) == print(*module) ? "" : "bytecode changes the module",
          Read};
}

std::vector<std::string> Targets::getPipelines() {
  return {std::begin(pipelines), std::end(pipelines)};
}

/// Whether a text names passes of this project only. The options of passes, in
/// braces, may be any.
static bool namesOwnPasses(StringRef pipeline) {
  unsigned depth = 0;
  std::string name;
  auto isOwn = [&] {
    StringRef text = StringRef(name).trim();
    bool own = text.empty() || text.starts_with("posenc-") ||
               text.starts_with("convert-posenc-") || text == "cse" ||
               text == "canonicalize" || text == "func.func" ||
               text == "builtin.module" || text == "any";
    name.clear();
    return own;
  };
  for (char c : pipeline) {
    depth += c == '{';
    depth -= c == '}' && depth;
    if (depth || c == '}')
      continue;
    if (c != ',' && c != '(' && c != ')')
      name += c;
    else if (!isOwn())
      return false;
  }
  return isOwn();
}

Outcome Targets::runPipeline(StringRef pipeline, const std::string &text) {
  // Passes have options that name files to write.
  if (!namesOwnPasses(pipeline) || pipeline.contains('/'))
    return {"", Refused};
  ErrorCounter errors(context);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return {errors.check(true, "parsing"), Refused};
  PassManager manager(&context);
  std::string messages;
  llvm::raw_string_ostream os(messages);
  if (failed(parsePassPipeline(pipeline, manager, os)))
    return {messages.empty() ? errors.check(true, "parsing the pipeline") : "",
            Refused};
  bool bad = failed(manager.run(*module));
  if (!bad)
    printModule(*module);
  return {errors.check(bad, pipeline), bad ? Read : Vectors};
}

Outcome Targets::readConstants(StringRef text, const std::string &file) {
  PrintedErrors printed;
  ErrorCounter errors(context);
  InputOptions options;
  options.constants = file;
  OwningOpRef<ModuleOp> module =
      loadModuleFromText("module.mlir", text, options, context);
  if (!module)
    return {printed.any() ? "" : errors.check(true, "reading"), Refused};
  printModule(*module);
  return {"", Read};
}

Outcome Targets::runModule(llvm::StringRef input, uint64_t choice,
                           OptLevel codeLevel, llvm::StringRef name) {
  std::string wrong;
  OwningOpRef<ModuleOp> module = load(input, wrong, name);
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
