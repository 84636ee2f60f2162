//===- Compile.cpp - compiles kernels within a process --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc-c/Compile.h"

#include "posenc/Driver/CompileReport.h"
#include "posenc/Driver/Diagnostics.h"
#include "posenc/Driver/Input.h"
#include "posenc/Driver/Options.h"
#include "posenc/Driver/TuningFile.h"
#include "posenc/IR/Posenc.h"
#include "posenc/Registration/Registration.h"
#include "posenc/Target/JitLibrary.h"
#include "posenc/Target/Ptxas.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
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
  /// The file of the report.
  std::optional<std::string> report;
};
} // namespace

/// Prints an error and returns false.
static bool fail(const llvm::Twine &message) {
  getErrorStream() << "error: " << message << "\n";
  return false;
}

/// Adds a target for CUDA, unless it is there.
static bool addCudaTarget(StringRef name, JitOptions &jit) {
  llvm::Expected<CudaTarget> target = CudaTarget::parse(name);
  if (!target)
    return fail(llvm::toString(target.takeError()));
  if (llvm::none_of(jit.gpus.cuda, [&](const CudaTarget &other) {
        return other.name == target->name;
      }))
    jit.gpus.cuda.push_back(std::move(*target));
  return true;
}

static bool parseTargets(ArrayRef<std::string> names,
                         const std::optional<std::string> &tuning,
                         const std::optional<std::string> &schedule,
                         JitOptions &jit) {
  SmallVector<StringRef> cpus;
  for (StringRef name : names) {
    if (name == kVulkanTarget)
      return fail("target 'vulkan' needs a library: compile one with "
                  "posenc-compile");
    if (!CudaTarget::isName(name))
      cpus.push_back(name);
    else if (!addCudaTarget(name, jit))
      return false;
  }
  if (cpus.size() > 1)
    return fail("expected one CPU as a target, got " +
                llvm::Twine(cpus.size()) +
                ": code in memory is for this machine");
  // Without code for CPUs, the target says where that for GPUs is called.
  jit.hasCpuCode = !cpus.empty() || jit.gpus.empty();
  StringRef name = cpus.empty() ? StringRef("host") : cpus.front();
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
  parser.add("report", "FILE", "", request.report);
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
  return parseTargets(targets, tuning, schedule, request.jit);
}

static DialectRegistry createRegistry() {
  DialectRegistry registry;
  registerAllDialects(registry);
  return registry;
}

/// Compiles the input; `report` may be null.
static std::unique_ptr<JitLibrary> compile(StringRef name, StringRef input,
                                           const Request &request,
                                           CompileReport *report) {
  MLIRContext context(createRegistry(), MLIRContext::Threading::DISABLED);
  DiagnosticPrinter diagnostics(context);
  if (report)
    report->watch(context, diagnostics, /*print=*/false);
  OwningOpRef<ModuleOp> module =
      loadModuleFromText(name, input, request.input, context,
                         report ? report->getLoadHooks() : LoadHooks());
  if (!module)
    return nullptr;
  if (report) {
    CodeOptions options;
    options.targets = {*request.jit.target};
    options.gpus = request.jit.gpus;
    options.hasCpuCode = request.jit.hasCpuCode;
    report->setOutput("kernels in memory", options);
    report->addStages(*module, Stage::Vector, options);
  }
  std::unique_ptr<JitLibrary> library = JitLibrary::create(
      *module, report ? CodeCache() : CodeCache::fromEnvironment(),
      request.jit);
  if (library && report)
    report->addMetadata(library->getMetadata());
  return library;
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
  if (!request.report)
    return compile(name, input, request, nullptr);
  std::string command = ("posenc_compile: " + name).str();
  for (StringRef option : options)
    command += (" " + option).str();
  CompileReport report(name, command);
  std::string messages;
  std::unique_ptr<JitLibrary> library;
  {
    RedirectErrors copy(messages, /*alsoPrint=*/true);
    library = compile(name, input, request, &report);
  }
  if (failed(report.save(*request.report, messages, library != nullptr)))
    return nullptr;
  return library;
}

/// Returns JSON, or nullopt after an error.
static std::optional<std::string> list(StringRef name, StringRef input,
                                       ArrayRef<const char *> options) {
  Request request;
  if (!parseOptions(options, request))
    return std::nullopt;
  MLIRContext context(createRegistry(), MLIRContext::Threading::DISABLED);
  DiagnosticPrinter diagnostics(context);
  OwningOpRef<ModuleOp> module =
      loadModuleFromText(name, input, request.input, context);
  if (!module)
    return std::nullopt;
  llvm::json::Array functions;
  for (auto function : module->getOps<FunctionOpInterface>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    llvm::json::Object object{{"name", function.getName()}};
    if (auto doc =
            function->getAttrOfType<StringAttr>(PosencDialect::kDocAttrName))
      object["doc"] = doc.getValue();
    functions.push_back(std::move(object));
  }
  llvm::json::Array targets;
  if (request.jit.hasCpuCode)
    targets.push_back(request.jit.target->name);
  for (const CudaTarget &target : request.jit.gpus.cuda)
    targets.push_back(target.name);
  llvm::json::Object root{{"targets", std::move(targets)},
                          {"functions", std::move(functions)}};
  return llvm::formatv("{0}", llvm::json::Value(std::move(root))).str();
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

namespace {
/// The state that all calls of the compiler share. LLVM's handlers of crashes
/// are those of the process, so they stay while any call runs.
struct CallState {
  std::mutex mutex;
  unsigned numCalls = 0;
  bool hasCrashed = false;
};
} // namespace

/// Runs a call of the compiler on a thread of its own. Returns its messages,
/// and catches its crashes.
static std::string runSafely(llvm::function_ref<void()> call) {
  static CallState state;
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    if (state.hasCrashed)
      return "error: the compiler crashed before in this process: restart it\n";
    if (state.numCalls++ == 0)
      llvm::CrashRecoveryContext::Enable();
  }
  // MLIR's parser and passes recurse as deeply as the input nests.
  constexpr unsigned stackSize = 256u << 20;
  std::string text;
  bool isDone;
  {
    llvm::CrashRecoveryContext recovery;
    isDone = recovery.RunSafelyOnThread(
        [&] {
          RedirectErrors redirect(text);
          call();
        },
        stackSize);
  }
  std::lock_guard<std::mutex> lock(state.mutex);
  if (--state.numCalls == 0)
    llvm::CrashRecoveryContext::Disable();
  if (isDone)
    return text;
  state.hasCrashed = true;
  return text + "error: internal error: the compiler crashed\n";
}

/// Runs a call with the arguments of posenc_compile(), and sets its messages.
static void
runWith(const char *function, const char *name, const char *input, size_t size,
        const char *const *options, size_t numOptions, char **messages,
        llvm::function_ref<void(StringRef, StringRef, ArrayRef<const char *>)>
            call) {
  std::string text;
  if (!name || (!input && size) || (!options && numOptions))
    text = (llvm::Twine("error: ") + function + ": a pointer is NULL\n").str();
  else
    text = runSafely([&] {
      call(name, StringRef(input, size), ArrayRef(options, numOptions));
    });
  if (messages)
    *messages = copyText(text);
}

posenc_kernels *posenc_compile(const char *name, const char *input, size_t size,
                               const char *const *options, size_t numOptions,
                               char **messages) {
  std::unique_ptr<JitLibrary> library;
  runWith("posenc_compile", name, input, size, options, numOptions, messages,
          [&](StringRef name, StringRef input, ArrayRef<const char *> options) {
            library = compile(name, input, options);
          });
  return library ? new posenc_kernels{std::move(library)} : nullptr;
}

char *posenc_list(const char *name, const char *input, size_t size,
                  const char *const *options, size_t numOptions,
                  char **messages) {
  std::optional<std::string> text;
  runWith("posenc_list", name, input, size, options, numOptions, messages,
          [&](StringRef name, StringRef input, ArrayRef<const char *> options) {
            text = list(name, input, options);
          });
  return text ? copyText(*text) : nullptr;
}

const char *posenc_kernels_metadata(const posenc_kernels *kernels) {
  return kernels ? kernels->library->getMetadata() : nullptr;
}

void *posenc_kernels_symbol(posenc_kernels *kernels, const char *symbol) {
  return kernels && symbol ? kernels->library->lookup(symbol) : nullptr;
}

void posenc_kernels_free(posenc_kernels *kernels) { delete kernels; }

void posenc_messages_free(char *messages) { std::free(messages); }

void posenc_set_package_folders(const char *const *folders, size_t numFolders) {
  std::vector<std::string> names;
  for (const char *folder : ArrayRef(folders, folders ? numFolders : 0))
    names.push_back(folder ? folder : "");
  setPackageFolders(std::move(names));
}

const char *posenc_compiler_version(void) { return POSENC_VERSION; }
