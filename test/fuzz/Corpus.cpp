//===- Corpus.cpp - seeds of the fuzzer -----------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Corpus.h"

#include "posenc/Registration/Registration.h"
#include "posenc/Target/KernelModule.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cstdlib>

using namespace posenc::fuzz;
using llvm::StringRef;

/// Reads the files of a folder with this suffix, in the order of their names.
static std::vector<std::string> readFolder(StringRef folder, StringRef suffix) {
  std::vector<std::string> paths, contents;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator file(folder, error), end;
       !error && file != end; file.increment(error))
    if (StringRef(file->path()).ends_with(suffix))
      paths.push_back(file->path());
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths)
    if (auto buffer = llvm::MemoryBuffer::getFile(path))
      contents.push_back((*buffer)->getBuffer().str());
  return contents;
}

/// Adds the modules of a file, which `// -----` separates, without comments.
static void addModules(StringRef file, std::vector<std::string> &texts) {
  std::string text;
  auto finish = [&] {
    if (!StringRef(text).trim().empty())
      texts.push_back(text);
    text.clear();
  };
  while (!file.empty()) {
    auto [line, rest] = file.split('\n');
    file = rest;
    if (line.starts_with("// -----"))
      finish();
    else if (!line.ltrim().starts_with("//"))
      text += (line + "\n").str();
  }
  finish();
}

static std::string print(mlir::ModuleOp module, bool generic) {
  std::string text;
  llvm::raw_string_ostream os(text);
  mlir::OpPrintingFlags flags;
  if (generic)
    flags.printGenericOpForm().useLocalScope();
  module.print(os, flags);
  return text;
}

/// Adds the other forms of a module, if it is valid.
static void addForms(const std::string &text, mlir::MLIRContext &context,
                     const mlir::posenc::TargetSpec &target, Corpus &corpus) {
  using mlir::posenc::Stage;
  auto parse = [&] {
    return mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  };
  mlir::OwningOpRef<mlir::ModuleOp> module = parse();
  if (!module)
    return;
  corpus.generic.push_back(print(*module, /*generic=*/true));
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  if (succeeded(mlir::writeBytecodeToFile(*module, os)))
    corpus.bytecode.push_back(bytes);
  auto addStage = [&](mlir::ModuleOp from, Stage stage, Stage reached) {
    bool isLowered =
        succeeded(mlir::posenc::lowerModule(from, stage, target, reached));
    if (isLowered)
      corpus.stages.push_back(print(from, /*generic=*/false));
    return isLowered;
  };
  addStage(*parse(), Stage::Linalg, Stage::Posenc);
  if (addStage(*module, Stage::Vector, Stage::Posenc))
    addStage(*module, Stage::Llvm, Stage::Vector);
}

std::vector<std::string> posenc::fuzz::readConfigs() {
  return readFolder(POSENC_SOURCE_DIR "/examples/configs", ".json");
}

static Corpus createCorpus() {
  Corpus corpus;
  corpus.configs = readConfigs();
  llvm::SmallVector<StringRef> folders{POSENC_SOURCE_DIR "/test/fuzz/Inputs"};
  if (const char *more = std::getenv("POSENC_FUZZ_INPUTS"))
    StringRef(more).split(folders, ':');
  for (StringRef folder : folders)
    for (const std::string &file : readFolder(folder, ".mlir"))
      addModules(file, corpus.texts);
  folders.front() = POSENC_SOURCE_DIR "/test/Import";
  folders.push_back(POSENC_SOURCE_DIR "/test/Raise");
  for (StringRef folder : folders)
    for (const std::string &file : readFolder(folder, ".mlir"))
      addModules(file, corpus.graphs);

  mlir::DialectRegistry registry;
  mlir::posenc::registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  // Seeds may be invalid, so diagnostics are not printed.
  mlir::ScopedDiagnosticHandler quiet(
      &context, [](mlir::Diagnostic &) { return mlir::success(); });
  // A fixed target gives the same stages on every machine.
  auto target = mlir::posenc::TargetSpec::parse("x86-64:x86-64-v3");
  if (!target) {
    llvm::consumeError(target.takeError());
    return corpus;
  }
  for (const std::string &text : corpus.texts)
    addForms(text, context, *target, corpus);
  return corpus;
}

const Corpus &posenc::fuzz::getCorpus() {
  static const Corpus corpus = createCorpus();
  return corpus;
}
