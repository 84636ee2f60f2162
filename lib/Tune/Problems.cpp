//===- Problems.cpp - what the choices are measured on ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Problems.h"

#include "Interrupt.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <tuple>

using namespace mlir::posenc;

std::unique_ptr<Problem> Problem::create(const TuneRequest &request,
                                         const Version &version,
                                         size_t function, int64_t bytes,
                                         bool inPlace) {
  Case from;
  from.path = version.functions[function].path;
  from.function = request.functions[function];
  from.outputBytes = bytes;
  from.inPlace = inPlace;
  std::unique_ptr<Problem> problem(new Problem);
  problem->function = function;
  problem->kernel = BenchKernel::create(from);
  if (!problem->kernel)
    return nullptr;
  if (int32_t status = problem->kernel->call()) {
    llvm::errs() << "error: " << from.function << " for target '"
                 << request.target.name << "' fails on this machine with code "
                 << status << "\n";
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
  // A limit changes the code, but only some sizes go another way.
  auto getWay = [&](const Tuning &tuning) {
    uint64_t size = bytes;
    auto isStreamed = [&](uint64_t from) {
      return !kernel->isInPlace() && from > 0 && size >= from;
    };
    return std::tuple(size >= tuning.prefetchFrom ? tuning.prefetchDistance : 0,
                      isStreamed(tuning.streamFrom),
                      isStreamed(tuning.streamTablesFrom),
                      tuning.blockPositions, tuning.blockBelow);
  };
  return getWay(from.tuning) != getWay(to.tuning);
}

static double getQuantile(const std::vector<double> &sorted, double quantile) {
  return sorted[static_cast<size_t>(quantile * double(sorted.size() - 1))];
}

std::optional<Speed> Problem::compare(const Version &from, const Version &to,
                                      TimePoint deadline) const {
  constexpr double sampleSeconds = 300e-6, totalSeconds = 0.2;
  constexpr double fewestPairs = 5, mostPairs = 21;
  const CaseLibrary &a = from.functions[function].library;
  const CaseLibrary &b = to.functions[function].library;
  // Warms up caches, and tells how many calls a sample needs.
  kernel->measure(1, b);
  double once = std::max(kernel->measure(1, a), 1e-9);
  int64_t calls = static_cast<int64_t>(sampleSeconds / once + 1);
  int pairs = static_cast<int>(std::clamp(
      totalSeconds / (2 * once * double(calls)), fewestPairs, mostPairs));
  std::vector<double> ratios;
  for (int i = 0; i < pairs; ++i) {
    if (isInterrupted() || std::chrono::steady_clock::now() >= deadline)
      return std::nullopt;
    // Each comes as often after the other as before it.
    bool isFirst = i % 2;
    double first = kernel->measure(calls, isFirst ? a : b);
    double second = kernel->measure(calls, isFirst ? b : a);
    ratios.push_back(isFirst ? first / second : second / first);
  }
  std::sort(ratios.begin(), ratios.end());
  return Speed{getQuantile(ratios, 0.5), getQuantile(ratios, 0.25)};
}

std::vector<std::unique_ptr<Problem>>
mlir::posenc::createProblems(const TuneRequest &request,
                             const Version &version) {
  // Between the limits among which there is a choice.
  constexpr int64_t sizes[] = {256 << 10, 2 << 20, 8 << 20, 24 << 20, 96 << 20};
  std::vector<std::unique_ptr<Problem>> problems;
  for (size_t function = 0; function < request.functions.size(); ++function)
    for (bool inPlace : {true, false})
      for (int64_t size : sizes) {
        std::unique_ptr<Problem> problem =
            Problem::create(request, version, function, size, inPlace);
        if (!problem || isInterrupted())
          return {};
        // Where sizes are fixed, or nothing can be in place, it is another
        // one's twin.
        bool isKnown = llvm::any_of(
            problems, [&](auto &other) { return other->isTwin(*problem); });
        if (!isKnown)
          problems.push_back(std::move(problem));
      }
  return problems;
}
