//===- Kernels.cpp - loading of kernels to call ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc-run/Kernels.h"

#include "posenc/Driver/Diagnostics.h"
#include "posenc/Driver/TuningFile.h"
#include "posenc/Registration/Registration.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::posenc;
namespace runtime = ::posenc::runtime;

bool mlir::posenc::isLibraryPath(StringRef path) {
  StringRef name = llvm::sys::path::filename(path);
  return name.ends_with(".so") || name.contains(".so.");
}

static bool fail(const Twine &message) {
  getErrorStream() << "error: " << message << "\n";
  return false;
}

/// Prints the error that the input has no function or several of them.
static bool failAmbiguous(ArrayRef<std::string> names) {
  if (names.empty())
    return fail("the input has no public function");
  return fail("the input has several functions; pass --function with one of " +
              llvm::join(names, ", "));
}

bool Kernel::find(StringRef name) {
  std::string error;
  if (!name.empty()) {
    function = library.find(name.str(), error);
    return function || fail(error);
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < library.numFunctions(); ++i)
    names.push_back(library.function(i).name());
  if (names.size() != 1)
    return failAmbiguous(names);
  function = library.function(0);
  return true;
}

/// Reads the parameters for this machine from a tuning file. Prints an error
/// and returns nullopt on failure.
static std::optional<Tuning> readTuning(StringRef path) {
  llvm::Expected<TargetSpec> host = TargetSpec::parse("host");
  if (!host) {
    fail(llvm::toString(host.takeError()));
    return std::nullopt;
  }
  if (failed(applyTuningFile(path, *host)))
    return std::nullopt;
  return host->tuning;
}

/// Returns the architecture of a CUDA device. Prints an error and returns
/// nullopt on failure.
static std::optional<CudaTarget> findCudaTarget(int32_t device) {
  posenc_cuda_facts facts;
  if (posenc_cuda_query_device(device, &facts)) {
    fail(posenc_last_error());
    return std::nullopt;
  }
  // The kernels run on this device only, so they may use all of its
  // instructions.
  constexpr int32_t kHopper = 90;
  llvm::Expected<CudaTarget> target =
      CudaTarget::parse("cuda:sm_" + std::to_string(facts.arch) +
                        (facts.arch == kHopper ? "a" : ""));
  if (!target) {
    fail(llvm::toString(target.takeError()));
    return std::nullopt;
  }
  return *target;
}

bool Kernel::load(StringRef path, StringRef name, KernelOptions &options) {
  JitOptions jitOptions;
  jitOptions.optLevel = options.optLevel;
  if (!options.tuning.empty()) {
    jitOptions.tuning = readTuning(options.tuning);
    if (!jitOptions.tuning)
      return false;
  }
  if (device.kind == Device::Kind::Cuda) {
    std::optional<CudaTarget> cuda = findCudaTarget(device.number);
    if (!cuda)
      return false;
    jitOptions.gpus.cuda.push_back(std::move(*cuda));
    jitOptions.hasCpuCode = false;
  }
  if (device.kind == Device::Kind::Vulkan) {
    posenc_vulkan_facts facts;
    if (posenc_vulkan_query_device(device.number, &facts))
      return fail(posenc_last_error());
    jitOptions.gpus.vulkan = true;
    jitOptions.hasCpuCode = false;
  }
  DialectRegistry registry;
  registerAllDialects(registry);
  context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  diagnostics = std::make_unique<DiagnosticPrinter>(*context);
  // Compiles only this function.
  options.input.namesOneFunction = true;
  if (!name.empty())
    options.input.kernels = {name.str()};
  OwningOpRef<ModuleOp> module = loadModule(path, options.input, *context);
  if (!module)
    return false;
  std::vector<std::string> names;
  for (auto candidate : module->getOps<FunctionOpInterface>())
    if (candidate.isPublic())
      names.push_back(candidate.getName().str());
  // The name of a family, if only its functions for some layers exist.
  if (names.size() > 1 && !name.empty())
    return fail("no function '" + name + "': expected one of " +
                llvm::join(names, ", "));
  if (names.size() != 1)
    return failAmbiguous(names);
  if (options.keepSource) {
    sourceModule = module->clone();
    for (auto candidate : sourceModule->getOps<FunctionOpInterface>())
      if (candidate.isPublic())
        source = candidate;
  }

  jit = JitLibrary::create(*module, CodeCache::fromEnvironment(), jitOptions);
  if (!jit)
    return false;
  const char *metadata = jit->getMetadata();
  if (!metadata)
    return fail("internal error: the compiled module has no metadata");
  std::string error;
  library = runtime::Library::fromSymbols(
      metadata,
      [](void *jit, const char *symbol) {
        return static_cast<JitLibrary *>(jit)->lookup(symbol);
      },
      jit.get(), error);
  return library ? true : fail(error);
}

std::unique_ptr<Kernel> Kernel::open(StringRef path, StringRef name,
                                     KernelOptions options) {
  std::unique_ptr<Kernel> kernel(new Kernel);
  kernel->device = options.device;
  if (isLibraryPath(path)) {
    std::string error;
    kernel->library = runtime::Library::open(path.str(), error);
    if (!kernel->library) {
      fail(error);
      return nullptr;
    }
  } else if (!kernel->load(path, name, options)) {
    return nullptr;
  }
  if (!kernel->find(name))
    return nullptr;
  return kernel;
}

llvm::Error Kernel::call(ArrayRef<posenc_value> inputs,
                         ArrayRef<posenc_value> outputs) const {
  std::string error;
  std::vector<posenc_value> in = inputs.vec(), out = outputs.vec();
  bool isDone = false;
  switch (device.kind) {
  case Device::Kind::CPU:
    isDone = function.call(in, out, error);
    break;
  case Device::Kind::Cuda:
    isDone = function.callOnCuda(device.number, in, out, error);
    break;
  case Device::Kind::Vulkan:
    isDone = function.callOnVulkan(device.number, in, out, error);
    break;
  }
  return isDone ? llvm::Error::success() : llvm::createStringError(error);
}
