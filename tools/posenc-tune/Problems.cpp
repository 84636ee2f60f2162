//===- Problems.cpp - the functions and sizes to tune for -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Problems.h"

#include "posenc/Driver/Diagnostics.h"

#include "Interrupt.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

using namespace mlir::posenc;

std::unique_ptr<Problem> Problem::create(const TuneRequest &request,
                                         const Version &version,
                                         size_t function, int64_t bytes,
                                         bool inPlace) {
  const TunedFunction &tuned = request.functions[function];
  Case from = tuned.function;
  from.target = request.target.name;
  // Uses the library that is already compiled, unless the inputs must be chosen
  // from the source.
  if (tuned.sweepsSizes || !from.inputs.empty()) {
    from.module.clear();
    from.path = version.functions[function].path;
  }
  if (tuned.sweepsSizes) {
    from.outputBytes = bytes;
    from.inPlace = inPlace;
  }
  std::unique_ptr<Problem> problem(new Problem);
  problem->function = function;
  problem->kernel = BenchKernel::create(from);
  if (!problem->kernel)
    return nullptr;
  if (int32_t status = problem->kernel->call()) {
    getErrorStream() << "error: '" << from.function
                     << "', compiled for target '" << request.target.name
                     << "', returned error code " << status
                     << " on this machine\n";
    return nullptr;
  }
  for (auto [number, shape] :
       llvm::enumerate(problem->kernel->getOutputShapes())) {
    int64_t size = static_cast<int64_t>(posenc_dtype_size(
        problem->kernel->getFunction().output(number).dtype()));
    for (int64_t dim : shape)
      size *= dim;
    problem->bytes += size;
  }
  return problem;
}

bool Problem::isAffected(const Version &from, const Version &to) const {
  if (from.functions[function].hash == to.functions[function].hash)
    return false;
  // Kernels compare the size of tensors with thresholds at run time, so two
  // thresholds differ only if this problem's size is between them. A threshold
  // of 0 means always or never.
  auto getBehavior = [&](const TuningChoice &choice, const Tuning &tuning) {
    uint64_t value = tuning.*choice.value;
    if (choice.max != kMaxTensorBytes || value == 0)
      return std::pair(false, value);
    return std::pair(true, uint64_t(uint64_t(bytes) >= value));
  };
  return llvm::any_of(getTuningChoices(), [&](const TuningChoice &choice) {
    return getBehavior(choice, from.tuning) != getBehavior(choice, to.tuning);
  });
}

Speed Speed::get(std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  // The number of ratios below the true median is binomial, with the standard
  // deviation sqrt(count) / 2. The interval is 1.96 of them to either side.
  double count = double(ratios.size());
  auto at = [&](double number) {
    return ratios[static_cast<size_t>(
        std::clamp(std::round(number), 0.0, count - 1))];
  };
  double middle = (count - 1) / 2, spread = 0.98 * std::sqrt(count);
  return {at(middle), at(middle - spread), at(middle + spread)};
}

std::optional<Speed> Problem::compare(const Version &from, const Version &to,
                                      int maxPairs, TimePoint deadline) const {
  constexpr double sampleSeconds = 300e-6, isClear = 0.01;
  constexpr int minPairs = 8;
  BenchKernel::Call a =
      llvm::cantFail(kernel->bind(from.functions[function].library));
  BenchKernel::Call b =
      llvm::cantFail(kernel->bind(to.functions[function].library));
  // Warms up the caches, and estimates the number of calls of a sample.
  kernel->measure(1, b);
  double once = std::max(kernel->measure(1, a), 1e-9);
  int64_t calls = static_cast<int64_t>(sampleSeconds / once + 1);
  std::vector<double> ratios;
  Speed speed;
  for (int i = 0; i < maxPairs; ++i) {
    if (isInterrupted() || std::chrono::steady_clock::now() >= deadline)
      return std::nullopt;
    // The order alternates, so neither profits from always running second.
    bool isFirst = i % 2;
    double first = kernel->measure(calls, isFirst ? a : b);
    double second = kernel->measure(calls, isFirst ? b : a);
    ratios.push_back(isFirst ? first / second : second / first);
    if (i + 1 < minPairs)
      continue;
    speed = Speed::get(ratios);
    if (speed.low > 1 + isClear || speed.high < 1 - isClear ||
        speed.high - speed.low < isClear)
      break;
  }
  return speed;
}

std::vector<std::unique_ptr<Problem>>
mlir::posenc::createProblems(const TuneRequest &request,
                             const Version &version) {
  // Sizes between the candidates of the thresholds on tensor sizes.
  constexpr int64_t sizes[] = {256 << 10, 2 << 20, 8 << 20, 24 << 20, 96 << 20};
  std::vector<std::unique_ptr<Problem>> problems;
  auto add = [&](size_t function, int64_t size, bool inPlace) {
    std::unique_ptr<Problem> problem =
        Problem::create(request, version, function, size, inPlace);
    if (!problem || isInterrupted())
      return false;
    // With static shapes, or without results in place, the problem duplicates
    // another one.
    bool isKnown = llvm::any_of(
        problems, [&](auto &other) { return other->isDuplicateOf(*problem); });
    if (!isKnown)
      problems.push_back(std::move(problem));
    return true;
  };
  for (auto [number, tuned] : llvm::enumerate(request.functions)) {
    if (!tuned.sweepsSizes) {
      if (!add(number, 0, tuned.function.inPlace))
        return {};
      continue;
    }
    for (bool inPlace : {true, false})
      for (int64_t size : sizes)
        if (!add(number, size, inPlace))
          return {};
  }
  return problems;
}
