//===- Device.cpp - devices and contexts of the fake CUDA driver ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

using namespace llvm;

namespace posenc::fakecuda {

thread_local std::vector<Context *> contexts;
thread_local CaptureMode threadMode = CaptureMode::Global;

static std::vector<Symbol> &getMutableSymbols() {
  static std::vector<Symbol> symbols;
  return symbols;
}
const std::vector<Symbol> &getSymbols() { return getMutableSymbols(); }
RegisterSymbol::RegisterSymbol(const char *name, void *address) {
  getMutableSymbols().push_back({name, address});
}

static uint64_t getNumber(const char *name, uint64_t defaultValue) {
  const char *text = std::getenv(name);
  uint64_t value;
  if (!text || StringRef(text).getAsInteger(10, value))
    return defaultValue;
  return value;
}

// A terabyte apart, so that an address is in the memory of one device.
Device::Device(int ordinal)
    : ordinal(ordinal),
      memory((uint64_t(1) << 50) + (uint64_t(ordinal) << 40)) {}

Driver::Driver() {
  if (const char *list = std::getenv("POSENC_FAKE_CUDA_SM")) {
    auto [first, second] = StringRef(list).split(',');
    StringRef texts[numDevices] = {first, second.empty() ? first : second};
    for (Device &device : devices)
      if (texts[device.ordinal].getAsInteger(10, device.capability))
        device.capability = 90;
  }
  multiprocessors = getNumber("POSENC_FAKE_CUDA_MULTIPROCESSORS", 132);
  seed = getNumber("POSENC_FAKE_CUDA_SEED", 0);
  ex2Ulps = getNumber("POSENC_FAKE_CUDA_EX2", 0);
  if (const char *path = std::getenv("POSENC_FAKE_CUDA_LOG"))
    log = path;
  if (const char *name = std::getenv("POSENC_FAKE_CUDA_HANG"))
    hanging = name;
  if (const char *name = std::getenv("POSENC_FAKE_CUDA_SKIP"))
    skipped = name;
  if (const char *edit = std::getenv("POSENC_FAKE_CUDA_EDIT")) {
    auto [from, to] = StringRef(edit).split("=>");
    editFrom = from.str();
    editTo = to.str();
  }
}

// Never destroyed: destructors of static objects may still call the driver.
Driver &Driver::get() {
  static Driver *driver = new Driver;
  return *driver;
}

void Driver::note(const Twine &line) {
  if (log.empty())
    return;
  std::error_code error;
  raw_fd_ostream os(log, error, sys::fs::OF_Append);
  if (!error)
    os << line << "\n";
}

bool Driver::isInitialized() const { return process == getpid(); }

CUresult Driver::initialize() {
  if (!process)
    process = getpid();
  return isInitialized() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

std::string Device::getSuffix() const {
  return ordinal ? " on device " + std::to_string(ordinal) : "";
}

unsigned Device::getSharedLimit() const {
  switch (capability) {
  case 70:
    return 96 << 10;
  case 75:
    return 64 << 10;
  case 80:
  case 87:
    return 163 << 10;
  case 86:
  case 89:
  case 120:
    return 99 << 10;
  default:
    return 227 << 10;
  }
}

Device *Driver::getDevice(CUdevice ordinal) {
  return ordinal >= 0 && ordinal < numDevices ? &devices[ordinal] : nullptr;
}

Device *Driver::findDevice(CUdeviceptr address) {
  for (Device &device : devices)
    if (device.memory.find(address, 1))
      return &device;
  return nullptr;
}

template <typename T>
static void destroyOf(const Device &device, std::set<T *> &objects) {
  for (auto it = objects.begin(); it != objects.end();) {
    T *object = *it++;
    if (object->device != &device)
      continue;
    objects.erase(object);
    delete object;
  }
}

void Driver::destroyContext(Device &device) {
  forgetModules(device);
  destroyOf(device, streams);
  destroyOf(device, events);
  destroyOf(device, executables);
  device.memory.clear();
}

CUresult checkReady(const Driver &driver) {
  if (!driver.isInitialized())
    return CUDA_ERROR_NOT_INITIALIZED;
  if (contexts.empty() || !contexts.back())
    return CUDA_ERROR_INVALID_CONTEXT;
  if (!contexts.back()->users)
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return driver.sticky;
}

} // namespace posenc::fakecuda

using namespace posenc::fakecuda;

POSENC_CUDA cuInit(unsigned flags) {
  Driver &driver = Driver::get();
  std::lock_guard<std::recursive_mutex> lock(driver.mutex);
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  return driver.initialize();
}
POSENC_CUDA_SYMBOL(cuInit)

POSENC_CUDA cuDriverGetVersion(int *version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuDriverGetVersion)

POSENC_CUDA cuDeviceGetCount(int *count) {
  if (!Driver::get().isInitialized())
    return CUDA_ERROR_NOT_INITIALIZED;
  *count = numDevices;
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuDeviceGetCount)

POSENC_CUDA cuDeviceGet(CUdevice *device, int ordinal) {
  if (!Driver::get().isInitialized())
    return CUDA_ERROR_NOT_INITIALIZED;
  if (!Driver::get().getDevice(ordinal))
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuDeviceGet)

POSENC_CUDA cuDeviceGetName(char *name, int length, CUdevice device) {
  if (!Driver::get().getDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  if (length <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(name, length, "Posenc PTX interpreter");
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuDeviceGetName)

POSENC_CUDA cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  if (!Driver::get().getDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  *bytes = size_t(16) << 30;
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuDeviceTotalMem_v2)

POSENC_CUDA cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  Driver &driver = Driver::get();
  const Device *found = driver.getDevice(device);
  if (!found)
    return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
  case 1: // threads per block; block size in x and y
  case 2:
  case 3:
    *value = 1024;
    break;
  case 4: // block size in z
    *value = 64;
    break;
  case 5: // blocks per grid in each dimension
    *value = 0x7fffffff;
    break;
  case 6:
  case 7:
    *value = 65535;
    break;
  case 8: // shared memory per block
    *value = 48 << 10;
    break;
  case 9: // constant memory
    *value = 64 << 10;
    break;
  case 10: // warp size
    *value = 32;
    break;
  case 12: // registers per block and per multiprocessor
  case 82:
    *value = 65536;
    break;
  case 13: // clock in kHz
    *value = 1980000;
    break;
  case 16: // multiprocessors
    *value = driver.multiprocessors;
    break;
  case 36: // memory clock in kHz
    *value = 2619000;
    break;
  case 37: // memory bus width in bits
    *value = 5120;
    break;
  case 38: // size of the L2 cache
    *value = 50 << 20;
    break;
  case 39: // threads per multiprocessor
    *value = 2048;
    break;
  case 41:  // unified addressing
  case 115: // memory pools
    *value = 1;
    break;
  case 75: // compute capability, major and minor
    *value = found->capability / 10;
    break;
  case 76:
    *value = found->capability % 10;
    break;
  case 81: // shared memory per multiprocessor
    *value = found->getSharedLimit() + 1024;
    break;
  case 83: // managed memory
  case 95: // cooperative launches
    *value = 0;
    break;
  case 97: // opt-in shared memory per block
    *value = found->getSharedLimit();
    break;
  case 106: // blocks per multiprocessor
    *value = 32;
    break;
  case 111: // reserved shared memory per block
    *value = 1024;
    break;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuDeviceGetAttribute)

POSENC_CUDA cuDevicePrimaryCtxRetain(Context **context, CUdevice device) {
  Driver &driver = Driver::get();
  std::lock_guard<std::recursive_mutex> lock(driver.mutex);
  if (!driver.isInitialized())
    return CUDA_ERROR_NOT_INITIALIZED;
  Device *found = driver.getDevice(device);
  if (!found)
    return CUDA_ERROR_INVALID_DEVICE;
  if (found->primary.users++ == 0)
    driver.note("context created" + found->getSuffix());
  *context = &found->primary;
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuDevicePrimaryCtxRetain)

POSENC_CUDA cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  Driver &driver = Driver::get();
  std::lock_guard<std::recursive_mutex> lock(driver.mutex);
  Device *found = driver.getDevice(device);
  if (!found)
    return CUDA_ERROR_INVALID_DEVICE;
  if (!found->primary.users)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (--found->primary.users == 0)
    driver.destroyContext(*found);
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuDevicePrimaryCtxRelease_v2)

POSENC_CUDA cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags,
                                       int *isActive) {
  const Device *found = Driver::get().getDevice(device);
  if (!found)
    return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *isActive = found->primary.users != 0;
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuDevicePrimaryCtxGetState)

POSENC_CUDA cuCtxGetCurrent(Context **context) {
  if (!Driver::get().isInitialized())
    return CUDA_ERROR_NOT_INITIALIZED;
  *context = contexts.empty() ? nullptr : contexts.back();
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuCtxGetCurrent)

static bool isContext(const Context *context) {
  for (const Device &device : Driver::get().devices)
    if (context == &device.primary)
      return context->users;
  return false;
}

POSENC_CUDA cuCtxSetCurrent(Context *context) {
  if (!Driver::get().isInitialized())
    return CUDA_ERROR_NOT_INITIALIZED;
  if (context && !isContext(context))
    return CUDA_ERROR_INVALID_CONTEXT;
  if (!contexts.empty())
    contexts.pop_back();
  if (context)
    contexts.push_back(context);
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuCtxSetCurrent)

POSENC_CUDA cuCtxPushCurrent_v2(Context *context) {
  if (!Driver::get().isInitialized())
    return CUDA_ERROR_NOT_INITIALIZED;
  if (!isContext(context))
    return CUDA_ERROR_INVALID_CONTEXT;
  contexts.push_back(context);
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuCtxPushCurrent_v2)

POSENC_CUDA cuCtxPopCurrent_v2(Context **context) {
  if (contexts.empty())
    return CUDA_ERROR_INVALID_CONTEXT;
  if (context)
    *context = contexts.back();
  contexts.pop_back();
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuCtxPopCurrent_v2)

POSENC_CUDA cuCtxGetDevice(CUdevice *device) {
  if (contexts.empty())
    return CUDA_ERROR_INVALID_CONTEXT;
  *device = getCurrentDevice().ordinal;
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuCtxGetDevice)

POSENC_CUDA cuCtxSynchronize() {
  Driver &driver = Driver::get();
  std::lock_guard<std::recursive_mutex> lock(driver.mutex);
  return checkUncaptured(driver);
}
POSENC_CUDA_SYMBOL(cuCtxSynchronize)

// Callers pass the base name of a function and get its latest version.
POSENC_CUDA cuGetProcAddress_v2(const char *name, void **address, int, uint64_t,
                                int *status) {
  *address = nullptr;
  for (const char *suffix : {"", "_v2"})
    for (const Symbol &symbol : getSymbols())
      if ((StringRef(name) + suffix).str() == symbol.name)
        *address = symbol.address;
  if (status)
    *status = *address ? 0 : 1;
  return *address ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
POSENC_CUDA_SYMBOL(cuGetProcAddress_v2)
