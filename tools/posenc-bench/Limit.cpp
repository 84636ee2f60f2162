//===- Limit.cpp - memory bandwidth and FMA rate of the machine -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc-bench/Limit.h"

#include "PeakLoops.h"
#include "ScaleLoops.h"
#include "Threads.h"

#include "posenc/TargetInfo/TargetSpec.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>

using namespace mlir::posenc;

static constexpr int64_t kLine = 64;

//===----------------------------------------------------------------------===//
// Loops for this CPU
//===----------------------------------------------------------------------===//

namespace {
struct Loops {
  const ScaleLoops &scale;
  const PeakLoops &peak;
};
} // namespace

#if defined(__x86_64__)
bool mlir::posenc::mayUseAMX() {
  static const bool isAllowed = [] {
    llvm::Expected<TargetSpec> host = TargetSpec::parse("host");
    if (host)
      return host->hasAMXBF16;
    llvm::consumeError(host.takeError());
    return false;
  }();
  return isAllowed;
}
#endif

static Loops getLoops() {
#if defined(__x86_64__)
  bool hasAVX512 =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  if (hasAVX512 && __builtin_cpu_supports("avx512bf16"))
    return {kAVX512BF16Loops, kAVX512BF16Peaks};
  if (hasAVX512)
    return {kAVX512Loops, kAVX512Peaks};
  // Every CPU with AVX2 and FMA has F16C.
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {kAVX2Loops, kAVX2Peaks};
#endif
  return {kPortableLoops, kPortablePeaks};
}

/// Returns null if there are no loops with streaming stores for the CPU.
static StreamingCopy getStreamingCopy() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return copyAVX512;
  if (__builtin_cpu_supports("avx2"))
    return copyAVX2;
#endif
  return nullptr;
}

static ScaleLoop getLoop(posenc_dtype dtype) {
  const ScaleLoops &loops = getLoops().scale;
  switch (dtype) {
  case POSENC_F64:
    return loops.f64;
  case POSENC_F16:
    return loops.f16;
  case POSENC_BF16:
    return loops.bf16;
  default:
    return loops.f32;
  }
}

/// Returns the f32 loop for f16, as kernels multiply f16 in f32.
static FmaLoop getFmaLoop(posenc_dtype dtype) {
  const PeakLoops &loops = getLoops().peak;
#if defined(__x86_64__)
  if (dtype == POSENC_BF16 && mayUseAMX())
    return multiplyTiles;
#endif
  return dtype == POSENC_F64    ? loops.f64
         : dtype == POSENC_BF16 ? loops.bf16
                                : loops.f32;
}

int64_t mlir::posenc::getLastLevelCacheBytes() {
  int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::string path = "/sys/devices/system/cpu/cpu0/cache/index" +
                       std::to_string(index) + "/size";
    auto text = llvm::MemoryBuffer::getFileAsStream(path);
    if (!text)
      break;
    llvm::StringRef size = (*text)->getBuffer().trim();
    int64_t unit = size.consume_back("K")   ? 1 << 10
                   : size.consume_back("M") ? 1 << 20
                                            : 1;
    int64_t value;
    if (!size.getAsInteger(10, value))
      largest = std::max(largest, value * unit);
  }
  constexpr int64_t guess = 32 << 20;
  return largest ? largest : guess;
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

ByteRows ByteRows::create(void *data, int64_t bytes) {
  return {static_cast<char *>(data), 1, bytes, {{0, bytes}}};
}

int64_t ByteRows::bytes() const {
  int64_t bytesOfRow = 0;
  for (const ByteRun &run : runs)
    bytesOfRow += run.bytes;
  return rows * bytesOfRow;
}

/// Returns slice `index` of `count`: whole rows, or whole cache lines if there
/// is one row.
static ByteRows getSlice(ByteRows region, int index, int count) {
  int64_t bytes = region.bytes();
  bool isRow = region.rows == 1;
  int64_t total = isRow ? (bytes + kLine - 1) / kLine : region.rows;
  int64_t begin = total * index / count, end = total * (index + 1) / count;
  if (isRow)
    return ByteRows::create(region.data + begin * kLine,
                            std::min(end * kLine, bytes) - begin * kLine);
  region.data += begin * region.stride;
  region.rows = end - begin;
  return region;
}

ByteRows mlir::posenc::getTouchedLines(void *data, int64_t count,
                                       int64_t rowBytes, int64_t windowOffset,
                                       int64_t windowBytes) {
  // The offset of rows within cache lines repeats after `period` rows.
  int64_t period = 1;
  while (period * rowBytes % kLine != 0)
    ++period;
  if (windowBytes == rowBytes || count < period)
    return ByteRows::create(data, count * rowBytes);
  ByteRows region;
  region.data = static_cast<char *>(data);
  region.rows = count / period;
  region.stride = period * rowBytes;
  int64_t previousEnd = 0;
  for (int64_t row = 0; row < period; ++row) {
    int64_t begin = row * rowBytes + windowOffset;
    int64_t end = begin + windowBytes;
    begin = std::max(begin / kLine * kLine, previousEnd);
    end = (end + kLine - 1) / kLine * kLine;
    if (begin < end)
      region.runs.push_back({begin, end - begin});
    previousEnd = end;
  }
  return region;
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

static void copyRun(char *to, const char *from, int64_t bytes,
                    bool nonTemporal) {
  if (nonTemporal && reinterpret_cast<uintptr_t>(to) % kLine == 0) {
    int64_t lines = bytes / kLine * kLine;
    getStreamingCopy()(to, from, lines);
    to += lines;
    from += lines;
    bytes -= lines;
  }
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

/// Calls body(offset, bytes) for every run of every row.
template <typename Body>
static void forEachRun(const ByteRows &region, Body body) {
  for (int64_t row = 0; row < region.rows; ++row)
    for (const ByteRun &run : region.runs)
      body(row * region.stride + run.offset, run.bytes);
}

/// The sum of the read bytes is stored here, so that the compiler keeps the
/// reads.
static volatile uint32_t keptSum;

static void readRun(const char *data, int64_t bytes, bool hasHints) {
  // Two pages: the hardware prefetcher does not cross pages of 4 KiB.
  constexpr int64_t ahead = 8192;
  keptSum = getLoops().peak.read(data, bytes, hasHints ? ahead : 0);
}

/// Runs one thread's slice of a step.
static void run(const StreamStep &step, int thread, int numThreads,
                float factor, bool hasHints) {
  ByteRows to = getSlice(step.to, thread, numThreads);
  ByteRows from = getSlice(step.from, thread, numThreads);
  switch (step.kind) {
  case StreamStep::Scale:
    getLoop(step.dtype)({to.data, to.rows, to.stride, to.runs.data(),
                         static_cast<int64_t>(to.runs.size())},
                        factor);
    return;
  case StreamStep::Copy:
    forEachRun(to, [&](int64_t offset, int64_t bytes) {
      copyRun(to.data + offset, from.data + offset, bytes, hasHints);
    });
    return;
  case StreamStep::Fill:
    forEachRun(to, [&](int64_t offset, int64_t bytes) {
      std::memset(to.data + offset, 0, static_cast<size_t>(bytes));
    });
    return;
  case StreamStep::Read:
    forEachRun(from, [&](int64_t offset, int64_t bytes) {
      readRun(from.data + offset, bytes, hasHints);
    });
    return;
  case StreamStep::Fma:
    getFmaLoop(step.dtype)(step.flops / numThreads, factor, factor - 1);
    return;
  }
}

int64_t StreamStep::bytes() const {
  switch (kind) {
  case Scale:
  case Copy:
    return 2 * to.bytes();
  case Fill:
    return to.bytes();
  case Read:
    return from.bytes();
  case Fma:
    break;
  }
  return 0;
}

int64_t Stream::bytes() const {
  int64_t total = 0;
  for (const StreamStep &step : steps)
    total += step.bytes();
  return total;
}

double Stream::flops() const {
  double total = 0;
  for (const StreamStep &step : steps)
    total += step.flops;
  return total;
}

void Stream::run(int threads) const {
  // A factor that leaves the data unchanged and is unknown to the compiler.
  static volatile float one = 1.0f;
  float factor = one;
  runThreads(threads, [&](int thread) {
    for (const StreamStep &step : steps)
      ::run(step, thread, threads, factor, hasHints);
  });
}

std::vector<Stream> mlir::posenc::createStreams(std::vector<StreamStep> steps) {
  auto has = [&](StreamStep::Kind kind) {
    return llvm::any_of(
        steps, [&](const StreamStep &step) { return step.kind == kind; });
  };
  if (has(StreamStep::Fma))
    return {{"fma", std::move(steps), false}};
  if (has(StreamStep::Read))
    return {{"read", steps, false}, {"prefetched read", steps, true}};
  if (has(StreamStep::Scale))
    return {{"loop", std::move(steps), false}};
  if (has(StreamStep::Copy) && getStreamingCopy())
    return {{"memcpy", steps, false}, {"streaming copy", steps, true}};
  return {
      {has(StreamStep::Copy) ? "memcpy" : "memset", std::move(steps), false}};
}
