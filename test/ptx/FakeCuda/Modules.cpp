//===- Modules.cpp - modules and launches of the fake CUDA driver ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <unistd.h>

using namespace llvm;
using namespace posenc;
using namespace posenc::fakecuda;

// Splits "sm_90a" into 90 and "a".
static bool parseTarget(StringRef target, unsigned &number, StringRef &letter) {
  if (!target.consume_front("sm_"))
    return false;
  letter = target.ltrim("0123456789");
  return !target.drop_back(letter.size()).getAsInteger(10, number);
}

// Applies POSENC_FAKE_CUDA_EDIT. Warns if its text is not in the PTX: the fault
// would not be injected.
static std::string edit(const Driver &driver, StringRef text) {
  std::string result = text.str();
  if (driver.editFrom.empty())
    return result;
  size_t at = 0;
  unsigned count = 0;
  for (; (at = result.find(driver.editFrom, at)) != std::string::npos;
       ++count) {
    result.replace(at, driver.editFrom.size(), driver.editTo);
    at += driver.editTo.size();
  }
  if (!count)
    errs() << "fake CUDA: no '" << driver.editFrom << "' in the PTX\n";
  return result;
}

static CUresult load(Driver &driver, LoadedModule **module, StringRef image) {
  std::string text = edit(driver, image);
  // Attention approximates exp2; of other kernels, the tests that compare bits
  // would see an approximation, and ptx-known.test refuses it.
  ptx::ParseOptions options;
  options.allowApproximate = true;
  Expected<ptx::Module> parsed = ptx::Module::parse(text, options);
  if (!parsed) {
    errs() << "fake CUDA: cannot parse the PTX: "
           << toString(parsed.takeError()) << "\n";
    return CUDA_ERROR_INVALID_PTX;
  }
  // PTX for sm_90 runs on all later devices, PTX for sm_100f on later devices
  // of its family, and PTX for sm_90a on sm_90 only.
  unsigned number = 0;
  StringRef letter;
  Device &device = getCurrentDevice();
  unsigned capability = device.capability;
  bool fits =
      parseTarget(parsed->getTarget(), number, letter) &&
      (letter.empty()  ? number <= capability
       : letter == "f" ? number / 10 == capability / 10 && number <= capability
                       : number == capability);
  if (!fits) {
    errs() << "fake CUDA: PTX for " << parsed->getTarget()
           << " does not run on sm_" << capability << "\n";
    return CUDA_ERROR_INVALID_PTX;
  }
  *module = new LoadedModule(std::move(*parsed), &device);
  driver.modules.insert(*module);
  driver.note("load " + (*module)->module.getTarget() + device.getSuffix());
  return CUDA_SUCCESS;
}

POSENC_CUDA cuModuleLoadData(LoadedModule **module, const void *image) {
  LOCK_DRIVER
  if (CUresult result = checkUncaptured(driver))
    return result;
  if (!image)
    return CUDA_ERROR_INVALID_VALUE;
  // ELF and fat binaries contain machine code, which cannot be interpreted.
  const auto *bytes = static_cast<const unsigned char *>(image);
  if (!std::memcmp(bytes, "\177ELF", 4) ||
      !std::memcmp(bytes, "\x50\xed\x55\xba", 4))
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  return load(driver, module, static_cast<const char *>(image));
}
POSENC_CUDA_SYMBOL(cuModuleLoadData)

POSENC_CUDA cuModuleLoadDataEx(LoadedModule **module, const void *image,
                               unsigned, int *, void **) {
  return cuModuleLoadData(module, image);
}
POSENC_CUDA_SYMBOL(cuModuleLoadDataEx)

POSENC_CUDA cuModuleLoad(LoadedModule **module, const char *path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return CUresult(301); // CUDA_ERROR_FILE_NOT_FOUND
  return cuModuleLoadData(module, (*buffer)->getBufferStart());
}
POSENC_CUDA_SYMBOL(cuModuleLoad)

POSENC_CUDA cuModuleUnload(LoadedModule *module) {
  LOCK_DRIVER
  if (CUresult result = checkUncaptured(driver))
    return result;
  if (!driver.modules.erase(module))
    return CUDA_ERROR_INVALID_HANDLE;
  delete module;
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuModuleUnload)

/// Returns the dynamic shared memory that a kernel may have before an attribute
/// permits more.
static unsigned getDefaultShared(unsigned staticShared) {
  return std::max(48u << 10, staticShared) - staticShared;
}

// Returns the function of a module, or the kernel of a library if `device` is
// null; null if there is none.
static LoadedFunction *findFunction(LoadedModule &module, StringRef name,
                                    Device *device) {
  const ptx::Function *kernel = module.module.getKernel(name);
  if (!kernel)
    return nullptr;
  int ordinal = device ? device->ordinal : -1;
  std::unique_ptr<LoadedFunction> &entry =
      module.functions[{name.str(), ordinal}];
  if (entry)
    return entry.get();
  unsigned bytes = module.module.getStaticShared(*kernel);
  entry = std::make_unique<LoadedFunction>(
      LoadedFunction{&module, name.str(), kernel, bytes, device, nullptr});
  // A function of a library has the attributes of its kernel.
  if (device && !module.device) {
    entry->maxDynamicShared =
        findFunction(module, name, nullptr)->maxDynamicShared;
  } else {
    entry->maxDynamicShared =
        std::make_shared<std::array<unsigned, numDevices>>();
    entry->maxDynamicShared->fill(getDefaultShared(bytes));
  }
  return entry.get();
}

static CUresult getFunction(LoadedFunction **function, LoadedModule *module,
                            const char *name, bool isLibrary) {
  LOCK_DRIVER
  if (CUresult result = checkReady(driver))
    return result;
  if (!driver.modules.count(module) || !module->device != isLibrary)
    return CUDA_ERROR_INVALID_HANDLE;
  *function = findFunction(*module, name, module->device);
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

POSENC_CUDA cuModuleGetFunction(LoadedFunction **function, LoadedModule *module,
                                const char *name) {
  return getFunction(function, module, name, /*isLibrary=*/false);
}
POSENC_CUDA_SYMBOL(cuModuleGetFunction)

POSENC_CUDA cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size,
                                 LoadedModule *module, const char *name) {
  LOCK_DRIVER
  if (CUresult result = checkReady(driver))
    return result;
  if (!driver.modules.count(module))
    return CUDA_ERROR_INVALID_HANDLE;
  uint64_t bytes = 0;
  uint64_t found =
      module->module.getVariable(name, getCurrentDevice().memory, &bytes);
  if (address)
    *address = found;
  if (size)
    *size = bytes;
  return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
POSENC_CUDA_SYMBOL(cuModuleGetGlobal_v2)

static bool isLoadedEagerly() {
  const char *mode = std::getenv("CUDA_MODULE_LOADING");
  return mode && StringRef(mode) == "EAGER";
}

static const RefusedLibrary *findRefused(const Driver &driver, void *handle) {
  return driver.refused.count(handle) ? static_cast<RefusedLibrary *>(handle)
                                      : nullptr;
}

static bool isFunction(const Driver &driver, LoadedFunction *function) {
  for (const LoadedModule *module : driver.modules)
    for (const auto &entry : module->functions)
      if (entry.second.get() == function)
        return true;
  return false;
}

// Returns the device on which a function runs in the current context.
static Device &getDevice(const LoadedFunction &function) {
  return function.device ? *function.device : getCurrentDevice();
}

// Libraries are implemented as modules, and kernels as functions. As those of
// the real driver, they are loaded when a function is needed, so that only then
// an image is refused. Here, other images are loaded at once.
POSENC_CUDA cuLibraryLoadData(void **library, const void *image, int *, void **,
                              unsigned, int *, void **, unsigned) {
  LOCK_DRIVER
  LoadedModule *module = nullptr;
  CUresult result = cuModuleLoadData(&module, image);
  if (!result)
    module->device = nullptr;
  *library = module;
  bool isRefused = result == CUDA_ERROR_INVALID_IMAGE ||
                   result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
                   result == CUDA_ERROR_INVALID_PTX;
  if (!isRefused || isLoadedEagerly())
    return result;
  *library = new RefusedLibrary{result};
  driver.refused.insert(*library);
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuLibraryLoadData)
POSENC_CUDA cuLibraryUnload(void *library) {
  LOCK_DRIVER
  if (driver.refused.erase(library)) {
    delete static_cast<RefusedLibrary *>(library);
    return CUDA_SUCCESS;
  }
  return cuModuleUnload(static_cast<LoadedModule *>(library));
}
POSENC_CUDA_SYMBOL(cuLibraryUnload)
POSENC_CUDA cuLibraryGetKernel(void **kernel, void *library, const char *name) {
  LOCK_DRIVER
  if (findRefused(driver, library)) {
    *kernel = library;
    return CUDA_SUCCESS;
  }
  LoadedFunction *function = nullptr;
  CUresult result =
      getFunction(&function, static_cast<LoadedModule *>(library), name,
                  /*isLibrary=*/true);
  *kernel = function;
  return result;
}
POSENC_CUDA_SYMBOL(cuLibraryGetKernel)
POSENC_CUDA cuKernelGetFunction(void **function, void *kernel) {
  LOCK_DRIVER
  if (CUresult result = checkReady(driver))
    return result;
  if (const RefusedLibrary *refused = findRefused(driver, kernel))
    return refused->error;
  auto *found = static_cast<LoadedFunction *>(kernel);
  if (!isFunction(driver, found) || found->device)
    return CUDA_ERROR_INVALID_HANDLE;
  *function = findFunction(*found->module, found->name, &getCurrentDevice());
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuKernelGetFunction)

void Driver::forgetModules(Device &device) {
  std::set<LoadedModule *> all = modules;
  for (LoadedModule *module : all) {
    if (module->device == &device) {
      modules.erase(module);
      delete module;
      continue;
    }
    for (auto it = module->functions.begin(); it != module->functions.end();) {
      LoadedFunction &function = *it->second;
      (*function.maxDynamicShared)[device.ordinal] =
          getDefaultShared(function.staticShared);
      it = function.device == &device ? module->functions.erase(it)
                                      : std::next(it);
    }
  }
}

POSENC_CUDA cuFuncGetAttribute(int *value, int attribute,
                               LoadedFunction *function) {
  LOCK_DRIVER
  if (CUresult result = checkReady(driver))
    return result;
  if (!isFunction(driver, function))
    return CUDA_ERROR_INVALID_HANDLE;
  const Device &device = getDevice(*function);
  const auto &limit = function->kernel->maxThreads[0]
                          ? function->kernel->maxThreads
                          : function->kernel->requiredThreads;
  switch (attribute) {
  case 0: // threads per block
    *value = limit[0] ? limit[0] * limit[1] * limit[2] : 1024;
    break;
  case 1: // static shared memory
    *value = function->staticShared;
    break;
  case 2: // constant memory
    *value = 0;
    break;
  case 3: // local memory
    *value = function->kernel->laneBytes;
    break;
  case 4: // registers; arbitrary here
    *value = 32;
    break;
  case 5: // PTX version and binary version
  case 6:
    *value = device.capability;
    break;
  case 8: // largest dynamic shared memory
    *value = (*function->maxDynamicShared)[device.ordinal];
    break;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuFuncGetAttribute)

static CUresult setAttribute(LoadedFunction &function, int attribute, int value,
                             const Device &device) {
  if (attribute == 9) // preferred shared memory carveout
    return CUDA_SUCCESS;
  if (attribute != 8 || value < 0 ||
      unsigned(value) + function.staticShared > device.getSharedLimit())
    return CUDA_ERROR_INVALID_VALUE;
  (*function.maxDynamicShared)[device.ordinal] = value;
  return CUDA_SUCCESS;
}

POSENC_CUDA cuFuncSetAttribute(LoadedFunction *function, int attribute,
                               int value) {
  LOCK_DRIVER
  if (CUresult result = checkReady(driver))
    return result;
  return isFunction(driver, function)
             ? setAttribute(*function, attribute, value, getDevice(*function))
             : CUDA_ERROR_INVALID_HANDLE;
}
POSENC_CUDA_SYMBOL(cuFuncSetAttribute)
// The real function takes no functions of modules, either.
POSENC_CUDA cuKernelSetAttribute(int attribute, int value,
                                 LoadedFunction *kernel, CUdevice device) {
  LOCK_DRIVER
  if (CUresult result = checkReady(driver))
    return result;
  const Device *found = driver.getDevice(device);
  if (!found)
    return CUDA_ERROR_INVALID_DEVICE;
  return isFunction(driver, kernel) && !kernel->device
             ? setAttribute(*kernel, attribute, value, *found)
             : CUDA_ERROR_INVALID_HANDLE;
}
POSENC_CUDA_SYMBOL(cuKernelSetAttribute)

static CUresult getCode(ptx::FaultKind kind) {
  switch (kind) {
  case ptx::FaultKind::Launch:
    return CUDA_ERROR_INVALID_VALUE;
  case ptx::FaultKind::OutOfBounds:
  case ptx::FaultKind::ReadOnly:
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  case ptx::FaultKind::Misaligned:
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  case ptx::FaultKind::Limit:
    return CUDA_ERROR_LAUNCH_TIMEOUT;
  default:
    return CUDA_ERROR_LAUNCH_FAILED;
  }
}

// Runs a kernel. As on a device, a faulting kernel does not fail its launch but
// all later calls; only invalid launches fail here.
static CUresult runKernel(LoadedFunction *function, Device &device,
                          const ptx::LaunchShape &shape,
                          ArrayRef<ptx::Argument> arguments) {
  Driver &driver = Driver::get();
  // The module of a node of a graph may be gone.
  if (!isFunction(driver, function))
    return CUDA_ERROR_INVALID_HANDLE;
  if (!driver.skipped.empty() &&
      StringRef(function->name).contains(driver.skipped))
    return CUDA_SUCCESS;
  while (!driver.hanging.empty() &&
         StringRef(function->name).contains(driver.hanging))
    pause();
  ptx::RunOptions options;
  options.seed = driver.seed;
  options.ex2Ulps = driver.ex2Ulps;
  options.sharedLimit = device.getSharedLimit();
  CUresult result = CUDA_SUCCESS;
  ptx::Statistics statistics;
  handleAllErrors(function->module->module.launch(function->name, shape,
                                                  arguments, device.memory,
                                                  options, &statistics),
                  [&](const ptx::Fault &fault) {
                    errs() << "fake CUDA: " << function->name << ": ";
                    fault.log(errs());
                    errs() << "\n";
                    result = getCode(fault.kind);
                    if (fault.kind != ptx::FaultKind::Launch) {
                      driver.sticky = result;
                      result = CUDA_SUCCESS;
                    }
                  });
  driver.note(
      "ran " + function->name + " loaded " + Twine(statistics.loadedBytes) +
      " in " + Twine(statistics.loadSectors) + " stored " +
      Twine(statistics.storedBytes) + " in " + Twine(statistics.storeSectors) +
      " rewritten " + Twine(statistics.rewrittenBytes) + " shared " +
      Twine(statistics.sharedAccesses) + " in " +
      Twine(statistics.sharedPasses) + " instructions " +
      Twine(statistics.warpInstructions) + " trips " +
      Twine(statistics.roundTrips) + " copied " +
      Twine(statistics.countThreads("cp.async.bulk.tensor")) + " boxes" +
      device.getSuffix());
  return result;
}

static std::string describe(const std::array<uint32_t, 3> &shape) {
  return utostr(shape[0]) + "x" + utostr(shape[1]) + "x" + utostr(shape[2]);
}

static CUresult launch(LoadedFunction *function, const ptx::LaunchShape &shape,
                       void *stream, void **params, void **extra) {
  LOCK_DRIVER
  if (CUresult result = checkReady(driver))
    return result;
  // The function and the stream must be of the current context.
  Device &device = getCurrentDevice();
  Stream *found = findStream(driver, stream);
  if (!isFunction(driver, function) || &getDevice(*function) != &device ||
      !found || found->device != &device)
    return CUDA_ERROR_INVALID_HANDLE;
  if (extra || (!params && !function->kernel->params.empty()))
    return CUDA_ERROR_INVALID_VALUE;
  if (shape.dynamicShared > (*function->maxDynamicShared)[device.ordinal])
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<ptx::Argument> arguments;
  for (size_t i = 0; i < function->kernel->params.size(); ++i)
    arguments.emplace_back(
        ArrayRef<uint8_t>(static_cast<const uint8_t *>(params[i]),
                          function->kernel->params[i].size));
  driver.note("launch " + function->name + " " + describe(shape.grid) + " " +
              describe(shape.block) + " " + Twine(shape.dynamicShared) +
              device.getSuffix());
  return submit(driver, stream, [=, &device] {
    return runKernel(function, device, shape, arguments);
  });
}

POSENC_CUDA cuLaunchKernel(LoadedFunction *function, unsigned gridX,
                           unsigned gridY, unsigned gridZ, unsigned blockX,
                           unsigned blockY, unsigned blockZ, unsigned shared,
                           void *stream, void **params, void **extra) {
  return launch(function,
                {{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, shared},
                stream, params, extra);
}
POSENC_CUDA_SYMBOL(cuLaunchKernel)

namespace {
struct LaunchConfig {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, shared;
  void *stream;
  void *attributes;
  unsigned numAttributes;
};
} // namespace

POSENC_CUDA cuLaunchKernelEx(const LaunchConfig *config,
                             LoadedFunction *function, void **params,
                             void **extra) {
  // A CUlaunchAttribute has 72 bytes: its number, padding and a value of 64
  // bytes. Number 4 is the cluster dimension.
  for (unsigned i = 0; i < config->numAttributes; ++i) {
    const auto *words =
        static_cast<const unsigned *>(config->attributes) + i * 18;
    if (words[0] == 4 && words[2] * words[3] * words[4] > 1)
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return cuLaunchKernel(function, config->gridX, config->gridY, config->gridZ,
                        config->blockX, config->blockY, config->blockZ,
                        config->shared, config->stream, params, extra);
}
POSENC_CUDA_SYMBOL(cuLaunchKernelEx)
