//===- Device.h - the GPU, its stream and its clock -------------*- C++ -*-===//
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

/// Ends a case, not the program: what follows may still be measured.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// There is nothing to run on.
struct NoDevice : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What the runtime's own table of the driver's functions does not have.
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

/// Puts work into the device's stream.
using Enqueue = std::function<void()>;

/// A device with a context that is current in this thread, and a stream.
class Device {
public:
  /// Throws NoDevice where there is none.
  explicit Device(int index);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  void check(int error, const char *what) const;
  void wait() const;
  /// The time on the device of what is put into the stream.
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

/// Memory of a device.
class Memory {
public:
  Memory(const Device &device, uint64_t bytes);
  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  void write(uint64_t offset, const void *from, uint64_t bytes) const;
  /// Repeats the first bytes to the end.
  void repeat(uint64_t bytes) const;

  const Device &device;
  uint64_t address = 0, bytes;
};

/// Work that was recorded once, to be launched again and again.
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
