//===- CaseLibrary.cpp - the compiled library of a case -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CaseLibrary.h"

#include "CaseInputs.h"
#include "OutputFiles.h"
#include "Threads.h"
#include "posenc-run/Kernels.h"
#include "posenc/Driver/Compile.h"
#include "posenc/Driver/Diagnostics.h"
#include "posenc/kernel/Symbols.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <dlfcn.h>

using namespace mlir::posenc;
using llvm::StringRef;
using llvm::Twine;
namespace runtime = ::posenc::runtime;

static std::nullopt_t fail(const Twine &message) {
  getErrorStream() << "error: " << message << "\n";
  return std::nullopt;
}

static std::error_code writeText(StringRef path, StringRef text) {
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (error)
    return error;
  os << text;
  os.close();
  error = os.error();
  os.clear_error();
  return error;
}

/// Compiles the case's function from the file `source` to the file `library`.
/// Returns false after an error, which is printed.
static bool compile(const Case &from, const std::string &source,
                    const std::string &library, FunctionInfo &info) {
  InputOptions options = from.inputOptions;
  options.kernels = {from.function};
  options.namesOneFunction = true;
  std::optional<std::vector<SourceFunction>> functions =
      readSource(source, options);
  if (!functions)
    return false;
  for (const SourceFunction &candidate : *functions)
    if (candidate.name == from.function)
      info = candidate.info;

  std::vector<std::string> arguments = {"posenc-compile", "-o", library,
                                        "--kernels=" + from.function};
  if (!from.target.empty())
    arguments.push_back("--target=" + from.target);
  if (!from.tuning.empty())
    arguments.push_back("--tuning=" + from.tuning);
  llvm::append_range(arguments, getInputFlags(options));
  arguments.push_back("--");
  arguments.push_back(source);
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  return compileMain(static_cast<int>(argv.size()), argv.data()) == 0;
}

/// Copies a library to `path`. Returns false after an error, which is printed.
static bool keep(const std::string &library, const std::string &path) {
  auto content = llvm::MemoryBuffer::getFile(library);
  if (!content) {
    fail("cannot read '" + library + "': " + content.getError().message());
    return false;
  }
  OutputFiles files;
  llvm::Error error = files.add(path, (*content)->getBuffer()).takeError();
  if (!error)
    error = files.commit();
  if (!error)
    return true;
  fail(llvm::toString(std::move(error)));
  return false;
}

/// The parallel_for of kernels that are compiled without threads: runs their
/// tasks on the threads of the other kernels.
static void runTasks(void *context, void (*body)(void *arg, int64_t i),
                     void *arg, int64_t n) {
  int threads = getKernelThreads();
  runThreads(threads, [&](int thread) {
    for (int64_t i = n * thread / threads, end = n * (thread + 1) / threads;
         i < end; ++i)
      body(arg, i);
  });
}

void CaseLibrary::findEntryPoints(const std::string &path) {
  entryPoint = posenc_function_address(function.get());
  // The library is already loaded; dlclose does not unload it while `library`
  // is open.
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return;
  std::string symbol = posenc_function_symbol(function.get());
  tensorEntryPoint = dlsym(handle, (symbol + POSENC_TENSOR_SUFFIX).c_str());
  workspaceFunction = dlsym(handle, (symbol + POSENC_WORKSPACE_SUFFIX).c_str());
  dlclose(handle);
}

std::optional<CaseLibrary> CaseLibrary::open(const Case &from) {
  llvm::SmallString<128> folder;
  if (std::error_code error =
          llvm::sys::fs::createUniqueDirectory("posenc-bench", folder))
    return fail("cannot create a temporary folder: " + error.message());
  // A loaded library stays usable after its file is removed.
  llvm::scope_exit cleanUp([&] { llvm::sys::fs::remove_directories(folder); });
  std::string source = from.path, path = from.path, error;
  CaseLibrary opened;
  bool isLibrary = from.module.empty() && isLibraryPath(path);
  if (!isLibrary) {
    path = (folder + "/libbench.so").str();
    if (!from.module.empty()) {
      source = (folder + "/module.mlir").str();
      if (std::error_code error = writeText(source, from.module))
        return fail("cannot write '" + source + "': " + error.message());
    }
    if (!compile(from, source, path, opened.info) ||
        (!from.keptLibrary.empty() && !keep(path, from.keptLibrary)))
      return std::nullopt;
  }
  opened.library = runtime::Library::open(path, error);
  if (!opened.library)
    return fail(error);
  opened.function = opened.library.find(from.function, error);
  if (!opened.function)
    return fail(error);
  opened.findEntryPoints(path);
  if (!isLibrary)
    return opened;
  opened.info.family = from.function;
  opened.info.variant = "kernel";
  opened.info.results.resize(opened.function.numOutputs());
  // Only decode: arguments do not tell whether a prefill is causal.
  if (auto attention = inferAttentionInfo(opened.function);
      attention && attention->isDecode)
    opened.info.attention = std::move(attention);
  auto file = llvm::MemoryBuffer::getFile(path);
  bool hasThreads = file && (*file)->getBuffer().contains("libgomp");
  // The call fails for libraries without parallel loops, which run on one
  // thread anyway.
  if (!hasThreads)
    opened.library.setParallelFor(runTasks, nullptr, error);
  return opened;
}
