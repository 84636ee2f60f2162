//===- FakeCuda.h - a stand-in for the CUDA driver --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_FAKECUDA_FAKECUDA_H
#define POSENC_TEST_PTX_FAKECUDA_FAKECUDA_H

#include "../Module.h"

#include <functional>
#include <mutex>
#include <set>
#include <thread>

// A library that stands for libcuda.so.1: one device, whose kernels the
// interpreter runs. What it does not know it does not export. Variables of the
// environment:
//   POSENC_FAKE_CUDA_SM    its compute capability, such as 80 or 90 (90)
//   POSENC_FAKE_CUDA_SEED  an order of warps; see RunOptions (0)
//   POSENC_FAKE_CUDA_LOG   a file to which a line is added for what is loaded,
//                          launched and has run, with what it did
//   POSENC_FAKE_CUDA_EDIT  `from=>to`: a fault to put into all PTX

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

struct Context {
  unsigned users = 0; // of the primary one
};

struct LoadedModule;
struct LoadedFunction {
  LoadedModule *module;
  std::string name;
  const ptx::Function *kernel;
  unsigned staticShared;
  unsigned maxDynamicShared;
};
struct LoadedModule {
  LoadedModule(ptx::Module module) : module(std::move(module)) {}
  ptx::Module module;
  std::map<std::string, std::unique_ptr<LoadedFunction>> functions;
};

/// What a stream does later; answers with what went wrong.
using Work = std::function<CUresult()>;

struct Graph {
  std::vector<Work> nodes;
};

enum class CaptureMode { Global, ThreadLocal, Relaxed };

struct Stream {
  bool isBlocking = true; // for the default stream
  bool isCapturing = false, isInvalid = false;
  CaptureMode mode = CaptureMode::Global;
  std::thread::id thread;
  std::unique_ptr<Graph> graph;
};

struct Event {
  bool isRecorded = false;
  bool isCaptured = false;
  double milliseconds = 0;
};

/// The driver's state, of which there is one. Calls hold its mutex.
struct Driver {
  static Driver &get();

  std::recursive_mutex mutex;
  bool isInitialized = false;
  /// After a fault every call answers with it, as contexts do.
  CUresult sticky = CUDA_SUCCESS;
  unsigned capability = 90; // major * 10 + minor
  uint32_t seed = 0;
  std::string log;
  std::string editFrom, editTo;
  ptx::Memory memory;
  Context primary;
  Stream defaultStream;
  std::set<LoadedModule *> modules;
  std::set<Stream *> streams;
  std::set<Event *> events;
  std::set<Graph *> graphs, executables;

  void note(const llvm::Twine &line);
  unsigned getSharedLimit() const;

private:
  Driver();
};

/// How a call begins that uses the driver.
#define LOCK_DRIVER                                                            \
  Driver &driver = Driver::get();                                              \
  std::lock_guard<std::recursive_mutex> lock(driver.mutex);

extern thread_local std::vector<Context *> contexts;
extern thread_local CaptureMode threadMode;

/// Initialised, with a current context and without an old fault.
CUresult checkReady(const Driver &driver);
/// Also refused while a stream records a graph.
CUresult checkUncaptured(Driver &driver);
/// The stream that a handle stands for, or null.
Stream *findStream(Driver &driver, void *handle);
/// Does the work, or records it; `stream` has been given by the caller.
CUresult submit(Driver &driver, void *stream, Work work);
/// Makes every graph being recorded invalid.
void invalidateCaptures(Driver &driver);

struct Symbol {
  const char *name;
  void *address;
};
/// All that is exported, with the names that cuGetProcAddress takes.
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
