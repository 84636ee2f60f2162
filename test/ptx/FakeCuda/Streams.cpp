//===- Streams.cpp - streams, events and graphs of the fake CUDA driver ---===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include <chrono>

using namespace llvm;

namespace posenc::fakecuda {

void invalidateCaptures(Driver &driver) {
  for (Stream *stream : driver.streams)
    if (stream->isCapturing)
      stream->isInvalid = true;
}

// Returns whether a capture forbids this thread calls that cannot be captured.
static bool isForbidden(const Driver &driver) {
  if (threadMode == CaptureMode::Relaxed)
    return false;
  for (const Stream *stream : driver.streams) {
    if (!stream->isCapturing || stream->mode == CaptureMode::Relaxed)
      continue;
    if (stream->thread == std::this_thread::get_id() ||
        (stream->mode == CaptureMode::Global &&
         threadMode == CaptureMode::Global))
      return true;
  }
  return false;
}

CUresult checkUncaptured(Driver &driver) {
  if (CUresult result = checkReady(driver))
    return result;
  if (!isForbidden(driver))
    return CUDA_SUCCESS;
  invalidateCaptures(driver);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

// 1 and 2 are the handles of the legacy and the per-thread default stream.
Stream *findStream(Driver &driver, void *handle) {
  if (reinterpret_cast<uintptr_t>(handle) <= 2)
    return contexts.empty() ? nullptr : &getCurrentDevice().defaultStream;
  auto *stream = static_cast<Stream *>(handle);
  return driver.streams.count(stream) ? stream : nullptr;
}

CUresult submit(Driver &driver, void *handle, Work work) {
  if (CUresult result = checkReady(driver))
    return result;
  Stream *stream = findStream(driver, handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream == &stream->device->defaultStream) {
    for (Stream *other : driver.streams) {
      if (!other->isCapturing || !other->isBlocking ||
          other->device != stream->device)
        continue;
      other->isInvalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  if (!stream->isCapturing)
    return work();
  if (stream->isInvalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  stream->graph->nodes.push_back(std::move(work));
  return CUDA_SUCCESS;
}

static double getMilliseconds() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

} // namespace posenc::fakecuda

using namespace posenc::fakecuda;

POSENC_CUDA cuStreamCreate(Stream **stream, unsigned flags) {
  LOCK_DRIVER
  if (CUresult result = checkReady(driver))
    return result;
  if (flags > 1)
    return CUDA_ERROR_INVALID_VALUE;
  *stream = new Stream{&getCurrentDevice()};
  (*stream)->isBlocking = flags == 0;
  driver.streams.insert(*stream);
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuStreamCreate)

POSENC_CUDA cuStreamCreateWithPriority(Stream **stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}
POSENC_CUDA_SYMBOL(cuStreamCreateWithPriority)

POSENC_CUDA cuStreamDestroy_v2(Stream *stream) {
  LOCK_DRIVER
  if (!driver.streams.erase(stream))
    return CUDA_ERROR_INVALID_HANDLE;
  delete stream;
  return driver.sticky;
}
POSENC_CUDA_SYMBOL(cuStreamDestroy_v2)

// Fails, and invalidates the capture, if the stream to wait for is being
// captured in any mode.
static CUresult checkWait(Driver &driver, void *handle) {
  if (CUresult result = checkReady(driver))
    return result;
  Stream *stream = findStream(driver, handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream->isCapturing) {
    stream->isInvalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

POSENC_CUDA cuStreamSynchronize(void *stream) {
  LOCK_DRIVER
  return checkWait(driver, stream);
}
POSENC_CUDA_SYMBOL(cuStreamSynchronize)

POSENC_CUDA cuStreamQuery(void *stream) {
  LOCK_DRIVER
  return checkWait(driver, stream);
}
POSENC_CUDA_SYMBOL(cuStreamQuery)

POSENC_CUDA cuStreamGetCtx(void *stream, Context **context) {
  LOCK_DRIVER
  Stream *found = findStream(driver, stream);
  if (!found)
    return CUDA_ERROR_INVALID_HANDLE;
  *context = &found->device->primary;
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuStreamGetCtx)

POSENC_CUDA cuStreamWaitEvent(void *stream, Event *event, unsigned) {
  LOCK_DRIVER
  if (CUresult result = checkReady(driver))
    return result;
  return findStream(driver, stream) && driver.events.count(event)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_HANDLE;
}
POSENC_CUDA_SYMBOL(cuStreamWaitEvent)

POSENC_CUDA cuThreadExchangeStreamCaptureMode(int *mode) {
  if (*mode < 0 || *mode > 2)
    return CUDA_ERROR_INVALID_VALUE;
  auto old = threadMode;
  threadMode = CaptureMode(*mode);
  *mode = int(old);
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuThreadExchangeStreamCaptureMode)

POSENC_CUDA cuStreamBeginCapture_v2(void *handle, int mode) {
  LOCK_DRIVER
  if (CUresult result = checkReady(driver))
    return result;
  Stream *stream = findStream(driver, handle);
  if (!stream || mode < 0 || mode > 2)
    return CUDA_ERROR_INVALID_VALUE;
  if (stream == &stream->device->defaultStream)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->isCapturing)
    return CUDA_ERROR_INVALID_VALUE;
  stream->isCapturing = true;
  stream->isInvalid = false;
  stream->mode = CaptureMode(mode);
  stream->thread = std::this_thread::get_id();
  stream->graph = std::make_unique<Graph>();
  driver.note("begin capture");
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuStreamBeginCapture_v2)

POSENC_CUDA cuStreamEndCapture(void *handle, Graph **graph) {
  LOCK_DRIVER
  *graph = nullptr;
  if (CUresult result = checkReady(driver))
    return result;
  Stream *stream = findStream(driver, handle);
  if (!stream || !stream->isCapturing)
    return CUDA_ERROR_INVALID_VALUE;
  if (stream->mode != CaptureMode::Relaxed &&
      stream->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  stream->isCapturing = false;
  driver.note("end capture");
  if (stream->isInvalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = stream->graph.release();
  driver.graphs.insert(*graph);
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuStreamEndCapture)

POSENC_CUDA cuStreamIsCapturing(void *handle, int *status) {
  LOCK_DRIVER
  if (CUresult result = checkReady(driver))
    return result;
  Stream *stream = findStream(driver, handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  *status = !stream->isCapturing ? 0 : stream->isInvalid ? 2 : 1;
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuStreamIsCapturing)

POSENC_CUDA cuGraphGetNodes(Graph *graph, void **nodes, size_t *count) {
  LOCK_DRIVER
  if (!driver.graphs.count(graph) || nodes)
    return CUDA_ERROR_INVALID_VALUE;
  *count = graph->nodes.size();
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuGraphGetNodes)

POSENC_CUDA cuGraphInstantiateWithFlags(Graph **executable, Graph *graph,
                                        unsigned long long) {
  LOCK_DRIVER
  if (CUresult result = checkUncaptured(driver))
    return result;
  if (!driver.graphs.count(graph))
    return CUDA_ERROR_INVALID_VALUE;
  *executable = new Graph(*graph);
  (*executable)->device = &getCurrentDevice();
  driver.executables.insert(*executable);
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuGraphInstantiateWithFlags)

POSENC_CUDA cuGraphLaunch(Graph *executable, void *stream) {
  LOCK_DRIVER
  if (!driver.executables.count(executable))
    return CUDA_ERROR_INVALID_VALUE;
  driver.note("launch graph of " + Twine(executable->nodes.size()));
  for (const Work &work : executable->nodes)
    if (CUresult result = submit(driver, stream, work))
      return result;
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuGraphLaunch)

POSENC_CUDA cuGraphDestroy(Graph *graph) {
  LOCK_DRIVER
  if (!driver.graphs.erase(graph))
    return CUDA_ERROR_INVALID_VALUE;
  delete graph;
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuGraphDestroy)

POSENC_CUDA cuGraphExecDestroy(Graph *executable) {
  LOCK_DRIVER
  if (!driver.executables.erase(executable))
    return CUDA_ERROR_INVALID_VALUE;
  delete executable;
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuGraphExecDestroy)

POSENC_CUDA cuEventCreate(Event **event, unsigned) {
  LOCK_DRIVER
  if (CUresult result = checkReady(driver))
    return result;
  *event = new Event{&getCurrentDevice()};
  driver.events.insert(*event);
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuEventCreate)

POSENC_CUDA cuEventDestroy_v2(Event *event) {
  LOCK_DRIVER
  if (!driver.events.erase(event))
    return CUDA_ERROR_INVALID_HANDLE;
  delete event;
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuEventDestroy_v2)

POSENC_CUDA cuEventRecord(Event *event, void *handle) {
  LOCK_DRIVER
  if (CUresult result = checkReady(driver))
    return result;
  Stream *stream = findStream(driver, handle);
  if (!stream || !driver.events.count(event) || event->device != stream->device)
    return CUDA_ERROR_INVALID_HANDLE;
  event->isRecorded = true;
  event->isCaptured = stream->isCapturing;
  event->milliseconds = getMilliseconds();
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuEventRecord)

POSENC_CUDA cuEventSynchronize(Event *event) {
  LOCK_DRIVER
  if (CUresult result = checkUncaptured(driver))
    return result;
  if (!driver.events.count(event))
    return CUDA_ERROR_INVALID_HANDLE;
  return event->isCaptured ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuEventSynchronize)

POSENC_CUDA cuEventQuery(Event *event) { return cuEventSynchronize(event); }
POSENC_CUDA_SYMBOL(cuEventQuery)

POSENC_CUDA cuEventElapsedTime(float *milliseconds, Event *start, Event *end) {
  LOCK_DRIVER
  if (CUresult result = checkReady(driver))
    return result;
  if (!driver.events.count(start) || !driver.events.count(end) ||
      !start->isRecorded || !end->isRecorded)
    return CUDA_ERROR_INVALID_HANDLE;
  *milliseconds = end->milliseconds - start->milliseconds;
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuEventElapsedTime)
