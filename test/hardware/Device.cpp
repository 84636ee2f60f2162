//===- Device.cpp - a CUDA device with a stream and events ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"

#include <dlfcn.h>

#include <algorithm>
#include <type_traits>

using namespace posenc;
using namespace posenc::hardware;

static StreamDriver findStreamDriver() {
  // getCudaDriver() has opened the driver already.
  void *library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw NoDevice(std::string("there is no CUDA driver: ") + ::dlerror());
  StreamDriver driver;
  auto get = [&](auto &function, const char *name) {
    void *address = ::dlsym(library, name);
    if (!address)
      throw Failure(std::string("the CUDA driver has no ") + name);
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  get(driver.getVersion, "cuDriverGetVersion");
  get(driver.createStream, "cuStreamCreate");
  get(driver.destroyStream, "cuStreamDestroy_v2");
  get(driver.synchronizeStream, "cuStreamSynchronize");
  get(driver.createEvent, "cuEventCreate");
  get(driver.destroyEvent, "cuEventDestroy_v2");
  get(driver.recordEvent, "cuEventRecord");
  get(driver.synchronizeEvent, "cuEventSynchronize");
  get(driver.getElapsedTime, "cuEventElapsedTime");
  get(driver.copyAsync, "cuMemcpyDtoDAsync_v2");
  get(driver.fillAsync, "cuMemsetD32Async");
  get(driver.beginCapture, "cuStreamBeginCapture_v2");
  get(driver.endCapture, "cuStreamEndCapture");
  get(driver.instantiate, "cuGraphInstantiateWithFlags");
  get(driver.launchGraph, "cuGraphLaunch");
  get(driver.destroyGraph, "cuGraphDestroy");
  get(driver.destroyExecutable, "cuGraphExecDestroy");
  return driver;
}

Device::Device(int index) : index(index) {
  int32_t count = 0;
  posenc_status status = posenc_cuda_count_devices(&count);
  if (status == POSENC_NOT_FOUND)
    throw NoDevice(posenc_last_error());
  if (status)
    throw Failure(posenc_last_error());
  if (count == 0)
    throw NoDevice("the CUDA driver finds no device");
  if (posenc_cuda_query_device(index, &facts) || runtime::getCudaDriver(driver))
    throw Failure(posenc_last_error());
  streams = findStreamDriver();
  enum { l2Attribute = 38 };
  check(driver->getDevice(&device, index), "cannot get the device");
  check(driver->getDeviceAttribute(&l2Bytes, l2Attribute, device),
        "cannot query the size of the L2 cache");
  check(streams.getVersion(&driverVersion),
        "cannot query the version of the driver");
  void *context;
  check(driver->retainPrimaryContext(&context, device),
        "cannot retain the primary context");
  check(driver->pushContext(context), "cannot make the context current");
  enum { nonBlocking = 1 };
  check(streams.createStream(&stream, nonBlocking), "cannot create a stream");
  check(streams.createEvent(&start, 0), "cannot create an event");
  check(streams.createEvent(&end, 0), "cannot create an event");
}

// Errors are ignored: a destructor cannot report them.
Device::~Device() {
  streams.destroyEvent(end);
  streams.destroyEvent(start);
  streams.destroyStream(stream);
  void *context;
  driver->popContext(&context);
  driver->releasePrimaryContext(device);
}

void Device::check(int error, const char *what) const {
  if (!error)
    return;
  runtime::failCuda(*driver, error, what);
  throw Failure(posenc_last_error());
}

void Device::wait() const {
  check(streams.synchronizeStream(stream), "work on the device failed");
}

double Device::measureSeconds(const Enqueue &work) const {
  check(streams.recordEvent(start, stream), "cannot record an event");
  work();
  check(streams.recordEvent(end, stream), "cannot record an event");
  check(streams.synchronizeEvent(end), "work on the device failed");
  float milliseconds = 0;
  check(streams.getElapsedTime(&milliseconds, start, end),
        "cannot read the elapsed time");
  return milliseconds / 1e3;
}

Memory::Memory(const Device &device, uint64_t bytes)
    : device(device), bytes(bytes) {
  // The driver refuses allocations of 0 bytes.
  device.check(device.driver->allocate(&address, std::max<uint64_t>(bytes, 1)),
               "cannot allocate device memory");
}

Memory::~Memory() { device.driver->release(address); }

void Memory::write(uint64_t offset, const void *from, uint64_t bytes) const {
  if (bytes > 0)
    device.check(device.driver->copyToDevice(address + offset, from, bytes),
                 "cannot copy data to the device");
}

void Memory::read(void *to, uint64_t bytes) const {
  if (bytes > 0)
    device.check(device.driver->copyFromDevice(to, address, bytes),
                 "cannot copy data from the device");
}

void Memory::repeat(uint64_t written) const {
  while (written > 0 && written < bytes) {
    uint64_t more = std::min(written, bytes - written);
    device.check(device.streams.copyAsync(address + written, address, more,
                                          device.stream),
                 "cannot copy data on the device");
    written += more;
  }
  device.wait();
}

Graph::Graph(const Device &device, const Enqueue &work) : device(device) {
  const StreamDriver &streams = device.streams;
  enum { threadLocal = 1 };
  device.check(streams.beginCapture(device.stream, threadLocal),
               "cannot capture a graph");
  try {
    work();
  } catch (...) {
    // Later work needs a stream that is not capturing.
    streams.endCapture(device.stream, &graph);
    if (graph)
      streams.destroyGraph(graph);
    throw;
  }
  device.check(streams.endCapture(device.stream, &graph),
               "cannot capture a graph");
  if (int error = streams.instantiate(&executable, graph, 0)) {
    streams.destroyGraph(graph);
    device.check(error, "cannot instantiate a graph");
  }
}

Graph::~Graph() {
  device.streams.destroyExecutable(executable);
  device.streams.destroyGraph(graph);
}

void Graph::launch() const {
  device.check(device.streams.launchGraph(executable, device.stream),
               "cannot launch a graph");
}
