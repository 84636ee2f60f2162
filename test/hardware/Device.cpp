//===- Device.cpp - the GPU, its stream and its clock -----------*- C++ -*-===//
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
  // Open already.
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
  check(driver->getDevice(&device, index), "the device cannot be used");
  check(driver->getDeviceAttribute(&l2Bytes, l2Attribute, device),
        "the size of the L2 cache");
  check(streams.getVersion(&driverVersion), "the driver's version");
  void *context;
  check(driver->retainPrimaryContext(&context, device), "a context");
  check(driver->pushContext(context), "the context");
  enum { doesNotWaitForTheDefaultStream = 1 };
  check(streams.createStream(&stream, doesNotWaitForTheDefaultStream),
        "a stream");
  check(streams.createEvent(&start, 0), "an event");
  check(streams.createEvent(&end, 0), "an event");
}

// What fails here has nobody left to tell.
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
  check(streams.recordEvent(start, stream), "an event cannot be recorded");
  work();
  check(streams.recordEvent(end, stream), "an event cannot be recorded");
  check(streams.synchronizeEvent(end), "work on the device failed");
  float milliseconds = 0;
  check(streams.getElapsedTime(&milliseconds, start, end),
        "the time cannot be read");
  return milliseconds / 1e3;
}

Memory::Memory(const Device &device, uint64_t bytes)
    : device(device), bytes(bytes) {
  // No size is an error to the driver.
  device.check(device.driver->allocate(&address, std::max<uint64_t>(bytes, 1)),
               "no memory on the device");
}

Memory::~Memory() { device.driver->release(address); }

void Memory::write(uint64_t offset, const void *from, uint64_t bytes) const {
  if (bytes > 0)
    device.check(device.driver->copyToDevice(address + offset, from, bytes),
                 "data cannot be copied to the device");
}

void Memory::repeat(uint64_t written) const {
  while (written > 0 && written < bytes) {
    uint64_t more = std::min(written, bytes - written);
    device.check(device.streams.copyAsync(address + written, address, more,
                                          device.stream),
                 "data cannot be copied on the device");
    written += more;
  }
  device.wait();
}

Graph::Graph(const Device &device, const Enqueue &work) : device(device) {
  const StreamDriver &streams = device.streams;
  enum { ofThisThread = 1 };
  device.check(streams.beginCapture(device.stream, ofThisThread),
               "a graph cannot be recorded");
  try {
    work();
  } catch (...) {
    // The stream is needed again.
    streams.endCapture(device.stream, &graph);
    if (graph)
      streams.destroyGraph(graph);
    throw;
  }
  device.check(streams.endCapture(device.stream, &graph),
               "a graph cannot be recorded");
  if (int error = streams.instantiate(&executable, graph, 0)) {
    streams.destroyGraph(graph);
    device.check(error, "a graph cannot be made");
  }
}

Graph::~Graph() {
  device.streams.destroyExecutable(executable);
  device.streams.destroyGraph(graph);
}

void Graph::launch() const {
  device.check(device.streams.launchGraph(executable, device.stream),
               "a graph cannot be launched");
}
