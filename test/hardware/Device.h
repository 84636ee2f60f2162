//===- Device.h - a CUDA device with a stream and events --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_HARDWARE_DEVICE_H
#define POSENC_TEST_HARDWARE_DEVICE_H

#include "CudaDriver.h"

#include "posenc/runtime/cuda.h"

#include <functional>
#include <stdexcept>
#include <string>

namespace posenc::hardware {

/// The error of a case. Later cases still run.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// There is no CUDA driver or no device.
struct NoDevice : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Functions of the CUDA driver that are not in runtime::CudaDriver.
struct StreamDriver {
  int (*getVersion)(int *version);
  int (*createStream)(void **stream, unsigned flags);
  int (*destroyStream)(void *stream);
  int (*synchronizeStream)(void *stream);
  int (*createEvent)(void **event, unsigned flags);
  int (*destroyEvent)(void *event);
  int (*recordEvent)(void *event, void *stream);
  int (*synchronizeEvent)(void *event);
  int (*getElapsedTime)(float *milliseconds, void *start, void *end);
  int (*copyAsync)(uint64_t to, uint64_t from, size_t bytes, void *stream);
  int (*fillAsync)(uint64_t to, unsigned value, size_t words, void *stream);
  int (*beginCapture)(void *stream, int mode);
  int (*endCapture)(void *stream, void **graph);
  int (*instantiate)(void **executable, void *graph, unsigned long long flags);
  int (*launchGraph)(void *executable, void *stream);
  int (*destroyGraph)(void *graph);
  int (*destroyExecutable)(void *executable);
};

/// Enqueues work in the stream of the device.
using Enqueue = std::function<void()>;

/// A CUDA device whose primary context is current in this thread, and a stream.
class Device {
public:
  /// Throws NoDevice without a driver or device, and Failure for other errors.
  explicit Device(int index);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// Throws Failure if `error` is not 0. `what` names the failed step.
  void check(int error, const char *what) const;
  /// Waits until the work in the stream is done.
  void wait() const;
  /// Measures the device time of the work that `work` enqueues.
  double measureSeconds(const Enqueue &work) const;

  int index;
  posenc_cuda_facts facts;
  int l2Bytes = 0, driverVersion = 0;
  const runtime::CudaDriver *driver = nullptr;
  StreamDriver streams;
  void *stream = nullptr;

private:
  int device = 0;
  void *start = nullptr, *end = nullptr;
};

/// An allocation of device memory.
class Memory {
public:
  Memory(const Device &device, uint64_t bytes);
  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  void write(uint64_t offset, const void *from, uint64_t bytes) const;
  void read(void *to, uint64_t bytes) const;
  /// Fills the allocation with copies of its first `bytes` bytes.
  void repeat(uint64_t bytes) const;

  const Device &device;
  uint64_t address = 0, bytes;
};

/// A CUDA graph that is captured from the work that `work` enqueues.
class Graph {
public:
  Graph(const Device &device, const Enqueue &work);
  ~Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  void launch() const;

private:
  const Device &device;
  void *graph = nullptr, *executable = nullptr;
};

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_DEVICE_H
