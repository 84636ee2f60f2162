//===- FakeCuda.h - state of the fake CUDA driver ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_FAKECUDA_FAKECUDA_H
#define POSENC_TEST_PTX_FAKECUDA_FAKECUDA_H

#include "../Module.h"

#include <array>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

// A replacement for libcuda.so.1 with two devices, whose kernels the PTX
// interpreter runs. Functions that it does not support are not exported.
// Environment variables and their defaults:
//   POSENC_FAKE_CUDA_SM    the compute capability: 80 for sm_80, or one for
//                          each device: 90,80 (90)
//   POSENC_FAKE_CUDA_MULTIPROCESSORS
//                          their number, which does not change the order in
//                          which blocks run (132)
//   POSENC_FAKE_CUDA_SEED  the order of warps; see RunOptions::seed (0)
//   POSENC_FAKE_CUDA_LOG   a file; each module load, launch, allocation and
//                          finished kernel, with its statistics, appends a line
//   POSENC_FAKE_CUDA_EDIT  `from=>to`: replaces `from` by `to` in all PTX, to
//                          inject a fault
//   POSENC_FAKE_CUDA_EX2   errors of ex2.approx; see RunOptions::ex2Ulps (0)
//   POSENC_FAKE_CUDA_HANG  a part of a name: kernels with it never end
//   POSENC_FAKE_CUDA_SKIP  a part of a name: kernels with it do nothing
//   CUDA_MODULE_LOADING    LAZY or EAGER, as of the real driver: whether a
//   library
//                          whose image is refused is an error at its first
//                          kernel or when it is loaded (LAZY)
// A forked process cannot use what its parent has initialized.

#define POSENC_CUDA extern "C" __attribute__((visibility("default"))) CUresult

namespace posenc::fakecuda {

enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
  CUDA_ERROR_CAPTURED_EVENT = 907,
  CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
};

using CUdevice = int;
using CUdeviceptr = unsigned long long;

constexpr int numDevices = 2;
struct Device;

/// The primary context of a device, which exists while it has users.
struct Context {
  Device *device;
  unsigned users = 0; // number of retains
};

struct LoadedModule;
struct LoadedFunction {
  LoadedModule *module;
  std::string name;
  const ptx::Function *kernel;
  unsigned staticShared;
  /// The device of the function. Null for the kernel of a library, which runs
  /// on all devices and has a function on each.
  Device *device;
  /// The largest dynamic shared memory on each device, which the kernel of a
  /// library shares with its functions.
  std::shared_ptr<std::array<unsigned, numDevices>> maxDynamicShared;
};
struct LoadedModule {
  LoadedModule(ptx::Module module, Device *device)
      : module(std::move(module)), device(device) {}
  ptx::Module module;
  /// Null for a library, which belongs to no context.
  Device *device;
  /// By name and device, -1 for the kernel of a library.
  std::map<std::pair<std::string, int>, std::unique_ptr<LoadedFunction>>
      functions;
};

/// A library whose image was refused, and each of its kernels, which have the
/// same address.
struct RefusedLibrary {
  CUresult error;
};

/// Work of a stream. Returns its error.
using Work = std::function<CUresult()>;

struct Graph {
  /// An executable graph belongs to a device.
  Device *device = nullptr;
  std::vector<Work> nodes;
};

enum class CaptureMode { Global, ThreadLocal, Relaxed };

struct Stream {
  Device *device;
  bool isBlocking = true; // synchronizes with the default stream
  bool isCapturing = false, isInvalid = false;
  CaptureMode mode = CaptureMode::Global;
  std::thread::id thread = {};
  std::unique_ptr<Graph> graph = nullptr;
};

struct Event {
  Device *device;
  bool isRecorded = false;
  bool isCaptured = false;
  double milliseconds = 0;
};

/// A device and what belongs to its primary context.
struct Device {
  Device(int ordinal);
  Device(const Device &) = delete;

  const int ordinal;
  unsigned capability = 90; // major * 10 + minor
  Context primary{this};
  Stream defaultStream{this};
  ptx::Memory memory;

  /// The largest opt-in shared memory of a block, in bytes.
  unsigned getSharedLimit() const;
  /// Returns " on device 1", which lines of the log end with; "" for device 0.
  std::string getSuffix() const;
};

/// The state of the driver, a singleton. Each call of the driver holds `mutex`.
struct Driver {
  static Driver &get();

  std::recursive_mutex mutex;
  /// Whether this process has initialized the driver, which did not fork it.
  bool isInitialized() const;
  CUresult initialize();
  /// The error of the first faulting kernel. Like a CUDA context, every later
  /// call returns it.
  CUresult sticky = CUDA_SUCCESS;
  unsigned multiprocessors = 132;
  uint32_t seed = 0, ex2Ulps = 0;
  std::string log;
  std::string editFrom, editTo;
  // Parts of the names of kernels that never end, or do nothing.
  std::string hanging, skipped;
  Device devices[numDevices] = {0, 1};
  std::set<LoadedModule *> modules;
  std::set<void *> refused; // RefusedLibrary
  std::set<Stream *> streams;
  std::set<Event *> events;
  std::set<Graph *> graphs, executables;

  /// Returns a device, or null.
  Device *getDevice(CUdevice ordinal);
  /// Returns the device whose memory contains an address, or null.
  Device *findDevice(CUdeviceptr address);
  /// Destroys what belongs to the primary context of a device: its memory,
  /// modules, streams, events and graphs, and the attributes of kernels.
  void destroyContext(Device &device);
  /// Forgets the modules, functions and attributes of a device.
  void forgetModules(Device &device);
  /// Appends a line to the log, if there is one.
  void note(const llvm::Twine &line);

private:
  Driver();
  int process = 0; // that has initialized the driver
};

/// Declares `driver` and locks it for the rest of the call.
#define LOCK_DRIVER                                                            \
  Driver &driver = Driver::get();                                              \
  std::lock_guard<std::recursive_mutex> lock(driver.mutex);

/// The context stack and the capture mode of the calling thread.
extern thread_local std::vector<Context *> contexts;
extern thread_local CaptureMode threadMode;

/// Succeeds if the driver is initialized, a context is current, which has not
/// been destroyed, and no kernel has faulted.
CUresult checkReady(const Driver &driver);
/// Returns the device of the current context, which there must be.
inline Device &getCurrentDevice() { return *contexts.back()->device; }
/// Performs checkReady(), and also fails, and invalidates the captures, if a
/// capture forbids the call in this thread.
CUresult checkUncaptured(Driver &driver);
/// Returns the stream of a handle, or null if the handle is invalid.
Stream *findStream(Driver &driver, void *handle);
/// Runs the work at once, or records it if `stream`, a handle from the caller,
/// is being captured.
CUresult submit(Driver &driver, void *stream, Work work);
/// Invalidates all captures in progress.
void invalidateCaptures(Driver &driver);

struct Symbol {
  const char *name;
  void *address;
};
/// Returns all exported functions, for cuGetProcAddress.
const std::vector<Symbol> &getSymbols();
/// Registers a function; see POSENC_CUDA_SYMBOL.
struct RegisterSymbol {
  RegisterSymbol(const char *name, void *address);
};
#define POSENC_CUDA_SYMBOL(NAME)                                               \
  static const RegisterSymbol register_##NAME(                                 \
      #NAME, reinterpret_cast<void *>(&NAME));

} // namespace posenc::fakecuda

#endif // POSENC_TEST_PTX_FAKECUDA_FAKECUDA_H
