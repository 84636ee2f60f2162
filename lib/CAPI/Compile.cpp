//===- Compile.cpp - compiles kernels within a process --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc-c/Compile.h"

#include "posenc/Driver/Diagnostics.h"
#include "posenc/Driver/Input.h"
#include "posenc/Driver/Options.h"
#include "posenc/Driver/TuningFile.h"
#include "posenc/Registration/Registration.h"
#include "posenc/Target/JitLibrary.h"

#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>

using namespace mlir;
using namespace mlir::posenc;

struct posenc_kernels {
  std::unique_ptr<JitLibrary> library;
};

namespace {
/// The parsed options of a compilation.
struct Request {
  InputOptions input;
  JitOptions jit;
};
} // namespace

/// Prints an error and returns false.
static bool fail(const llvm::Twine &message) {
  getErrorStream() << "error: " << message << "\n";
  return false;
}

static bool parseTarget(ArrayRef<std::string> names,
                        const std::optional<std::string> &tuning,
                        const std::optional<std::string> &schedule,
                        JitOptions &jit) {
  if (names.size() > 1)
    return fail("expected one target, got " + llvm::Twine(names.size()) +
                ": code in memory is for this machine");
  StringRef name = names.empty() ? StringRef("host") : StringRef(names.front());
  if (CudaTarget::isName(name) || name == kVulkanTarget)
    return fail("target '" + name +
                "' is not a CPU; compile a library with posenc-compile");
  llvm::Expected<TargetSpec> target = TargetSpec::parse(name);
  if (!target)
    return fail(llvm::toString(target.takeError()));
  llvm::Triple host(llvm::sys::getProcessTriple());
  if (llvm::Triple(target->triple).getArch() != host.getArch())
    return fail("target '" + name + "' is of another architecture than this " +
                "machine, " + host.getArchName());
  if (tuning && failed(applyTuningFile(*tuning, *target)))
    return false;
  target->schedule = schedule.value_or("");
  jit.target = std::move(*target);
  return true;
}

static bool parseOptions(ArrayRef<const char *> texts, Request &request) {
  OptionParser parser("posenc_compile", "[options]", "");
  std::optional<std::string> threads, tuning, schedule;
  std::optional<OptLevel> optLevel;
  std::vector<std::string> targets, positional;
  addInputOptions(parser, request.input);
  addKernelsOption(parser, request.input);
  addOptLevelOption(parser, optLevel);
  parser.add("target", "TARGET", "", targets);
  parser.add("threads", "none", "", threads);
  parser.add("tuning", "FILE", "", tuning);
  parser.add("schedule", "FILE", "", schedule);
  parser.add("no-warnings", "", request.input.noWarnings);
  // The parser would print its help to standard output.
  for (StringRef text : texts)
    if (!text.starts_with("--") || text == "--help" || text == "--version")
      return fail("'" + text + "' is not an option of a compilation");
  if (!texts.empty() && parser.parse(texts, positional))
    return false;
  if (!positional.empty())
    return fail("'" + positional.front() + "' is not an option");
  if (threads && *threads != "none")
    return fail("unknown threads '" + *threads + "': expected none");
  request.jit.threads = threads ? Threads::None : Threads::OpenMP;
  request.jit.optLevel = optLevel.value_or(OptLevel::O3);
  return parseTarget(targets, tuning, schedule, request.jit);
}

static std::unique_ptr<JitLibrary> compile(StringRef name, StringRef input,
                                           ArrayRef<const char *> options) {
  Request request;
  if (!parseOptions(options, request))
    return nullptr;
  // If the process has a libgomp already, as with PyTorch, this is the same, so
  // that both use one pool of threads.
  if (request.jit.threads == Threads::OpenMP &&
      !dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL)) {
    fail("libgomp.so.1 was not found: install libgomp1, or pass "
         "--threads=none");
    return nullptr;
  }
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  DiagnosticPrinter diagnostics(context);
  OwningOpRef<ModuleOp> module =
      loadModuleFromText(name, input, request.input, context);
  if (!module)
    return nullptr;
  return JitLibrary::create(*module, CodeCache::fromEnvironment(), request.jit);
}

/// Returns a copy that free() releases, or null.
static char *copyText(StringRef text) {
  auto *copy = static_cast<char *>(std::malloc(text.size() + 1));
  if (copy) {
    std::memcpy(copy, text.data(), text.size());
    copy[text.size()] = '\0';
  }
  return copy;
}

posenc_kernels *posenc_compile(const char *name, const char *input, size_t size,
                               const char *const *options, size_t numOptions,
                               char **messages) {
  std::string text;
  std::unique_ptr<JitLibrary> library;
  if (!name || (!input && size) || (!options && numOptions)) {
    text = "error: posenc_compile: a pointer is NULL\n";
  } else {
    // Signal handlers for crashes are those of the process, so there is one
    // compilation at a time.
    static std::mutex mutex;
    static bool hasCrashed = false;
    std::lock_guard<std::mutex> lock(mutex);
    if (hasCrashed) {
      text = "error: the compiler crashed before in this process: restart it\n";
    } else {
      // MLIR's parser and passes recurse as deeply as the input nests.
      constexpr unsigned stackSize = 256u << 20;
      llvm::CrashRecoveryContext::Enable();
      llvm::CrashRecoveryContext recovery;
      hasCrashed = !recovery.RunSafelyOnThread(
          [&] {
            RedirectErrors redirect(text);
            library = compile(name, StringRef(input, size),
                              ArrayRef(options, numOptions));
          },
          stackSize);
      llvm::CrashRecoveryContext::Disable();
      if (hasCrashed)
        text += "error: internal error: the compiler crashed\n";
    }
  }
  if (messages)
    *messages = copyText(text);
  return library ? new posenc_kernels{std::move(library)} : nullptr;
}

const char *posenc_kernels_metadata(const posenc_kernels *kernels) {
  return kernels ? kernels->library->getMetadata() : nullptr;
}

void *posenc_kernels_symbol(posenc_kernels *kernels, const char *symbol) {
  return kernels && symbol ? kernels->library->lookup(symbol) : nullptr;
}

void posenc_kernels_free(posenc_kernels *kernels) { delete kernels; }

void posenc_messages_free(char *messages) { std::free(messages); }

const char *posenc_compiler_version(void) { return POSENC_VERSION; }
