//===- Measure.cpp - measures a case and its bandwidth limit --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Measure.h"

#include "Operands.h"
#include "Signature.h"

#include <algorithm>
#include <chrono>
#include <optional>

using namespace posenc;
using namespace posenc::hardware;

static double getMedian(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t half = values.size() / 2;
  return values.size() % 2 ? values[half]
                           : (values[half - 1] + values[half]) / 2;
}

namespace {

/// Work that is launched many times: the function, or the copy or fill that
/// gives its limit.
class Subject {
public:
  using Launch = std::function<void(int copy)>;

  Subject(const Device &device, const Operands &operands, Launch launch,
          int graphLaunches)
      : device(device), operands(operands), launch(std::move(launch)),
        launchesPerRun(std::max(graphLaunches, 1)) {
    // The first call loads the module, which cannot be captured.
    this->launch(0);
    device.wait();
    if (graphLaunches > 0)
      graph.emplace(device, [&] {
        for (int i = 0; i < graphLaunches; ++i)
          launchNext();
      });
  }

  /// Returns the seconds per launch of getLaunches(count) launches.
  double measureSeconds(int64_t count) {
    // These keep the device busy while the host enqueues the measured launches.
    run(2 * launchesPerRun);
    double seconds = device.measureSeconds([&] {
      auto begin = std::chrono::steady_clock::now();
      run(count);
      enqueueSeconds = std::chrono::duration<double>(
                           std::chrono::steady_clock::now() - begin)
                           .count();
    });
    int64_t launches = getLaunches(count);
    enqueueSeconds /= launches;
    return seconds / launches;
  }
  /// Rounds `count` up to a multiple of the launches of the graph.
  int64_t getLaunches(int64_t count) const {
    return (count + launchesPerRun - 1) / launchesPerRun * launchesPerRun;
  }

  /// The host seconds per launch of the last measureSeconds().
  double enqueueSeconds = 0;

private:
  void launchNext() {
    launch(next);
    next = (next + 1) % operands.numCopies();
  }
  void run(int64_t count) {
    for (int64_t i = 0; i < getLaunches(count); i += launchesPerRun) {
      if (graph)
        graph->launch();
      else
        launchNext();
    }
  }

  const Device &device;
  const Operands &operands;
  Launch launch;
  int launchesPerRun;
  int next = 0;
  std::optional<Graph> graph;
};

} // namespace

/// The limits that the datasheet of a GPU states; 0 for other GPUs.
struct Datasheet {
  const char *name = "";
  double operations = 0; ///< per second, of dense products of 16-bit numbers
  double bytes = 0;      ///< per second, of memory
};

static Datasheet findDatasheet(const std::string &name) {
  // The first row whose name is a part of the GPU's counts.
  static const Datasheet rows[] = {
      {"H100 PCIe", 756e12, 2.04e12}, {"H100 NVL", 835e12, 3.94e12},
      {"H100", 989e12, 3.35e12},      {"H200", 989e12, 4.8e12},
      {"A100", 312e12, 2.04e12},      {"L40S", 362e12, 0.864e12},
      {"B200", 2250e12, 8e12}};
  for (const Datasheet &row : rows)
    if (name.find(row.name) != std::string::npos)
      return row;
  return {};
}

Result hardware::measure(const Device &device, const posenc_function &function,
                         const Case &measured, const MeasureOptions &options) {
  if (!function.cudaEntry)
    throw Failure(function.name + ": the library has no code for CUDA");
  Operands operands(device, function, measured);
  int graphLaunches = measured.isGraph ? options.graphLaunches : 0;
  Subject ours(
      device, operands, [&](int copy) { operands.launch(copy); },
      graphLaunches);
  std::optional<Subject> limit;
  bool hasOperations = measured.isAttention || measured.operations > 0;
  if (!hasOperations && !measured.isRead)
    limit.emplace(
        device, operands, [&](int copy) { operands.runLimit(copy); },
        graphLaunches);
  double operations = hasOperations ? operands.countOperations() : 0;
  Datasheet sheet = findDatasheet(device.facts.name);
  double least = hasOperations
                     ? sheet.operations ? operations / sheet.operations : 0
                 : sheet.bytes ? operands.bytes() / sheet.bytes
                               : 0;
  double limitScale =
      limit ? double(operands.bytes()) / operands.limitBytes() : 0;
  auto measureLimit = [&](int64_t count) {
    return limit ? limitScale * limit->measureSeconds(count) : least;
  };

  constexpr int64_t minCount = 1, maxCount = 10000;
  double once = ours.measureSeconds(minCount);
  int64_t count = maxCount;
  if (once * maxCount > options.seconds)
    count = std::max<int64_t>(options.seconds / once, minCount);
  // Warm up: the clocks of the device rise under load.
  for (double spent = 0; spent < 10 * options.seconds;)
    spent += count * (ours.measureSeconds(count) + measureLimit(count));
  std::vector<double> times, limits, fractions, enqueued;
  for (int i = 0; i < options.repetitions; ++i) {
    times.push_back(ours.measureSeconds(count));
    enqueued.push_back(ours.enqueueSeconds);
    limits.push_back(measureLimit(count));
    if (times.back() <= 0 || (limit && limits.back() <= 0))
      throw Failure("the clock does not advance");
    fractions.push_back(limits.back() / times.back());
  }
  Result result;
  result.name = measured.name + "/cuda:" + std::to_string(device.index);
  result.seconds = getMedian(times);
  result.slowest = *std::max_element(times.begin(), times.end());
  result.limitSeconds = getMedian(limits);
  result.fraction = getMedian(fractions);
  result.enqueueSeconds = measured.isGraph ? 0 : getMedian(enqueued);
  result.bytes = operands.bytes();
  result.operations = operations;
  result.limit = !limit ? "datasheet" : operands.hasSources() ? "copy" : "fill";
  result.launches = options.repetitions * ours.getLaunches(count);
  result.copies = operands.numCopies();
  result.isGraph = measured.isGraph;
  return result;
}
