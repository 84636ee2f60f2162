//===- Search.cpp - the best choices of a machine ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search.h"

#include "Interrupt.h"
#include "Threads.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir::posenc;

static TimePoint getTimeAfter(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(seconds));
}

Search::Search(const TuneRequest &request)
    : request(request), compiler(request),
      searchDeadline(getTimeAfter(0.8 * request.budgetSeconds)),
      deadline(getTimeAfter(request.budgetSeconds)) {}

bool Search::isOver() const {
  return std::chrono::steady_clock::now() >= searchDeadline;
}

/// More than noise, on the whole and nearly everywhere.
bool Search::Gain::isSure() const {
  return mean.median > 1.02 && mean.low > 1.0 && worst > 0.98;
}

std::optional<Search::Gain> Search::compare(const Version &from,
                                            const Version &to,
                                            TimePoint deadline) const {
  Gain gain;
  double medians = 0, lows = 0;
  for (const std::unique_ptr<Problem> &problem : problems) {
    if (!problem->isAffected(from, to))
      continue;
    std::optional<Speed> speed = problem->compare(from, to, deadline);
    if (!speed)
      return std::nullopt;
    medians += std::log(speed->median);
    lows += std::log(speed->low);
    gain.worst = std::min(gain.worst, speed->median);
    ++gain.problems;
  }
  if (gain.problems > 0)
    gain.mean = {std::exp(medians / gain.problems),
                 std::exp(lows / gain.problems)};
  return gain;
}

/// Measures the candidates of a choice, and takes the best if it is better than
/// what there is. False after an error or an interrupt.
bool Search::tryChoice(const TuningChoice &choice) {
  std::optional<Version> found;
  double foundSpeed = 0;
  for (uint64_t candidate : choice.candidates) {
    Tuning tuning = best->tuning;
    if (tuning.*choice.value == candidate)
      continue;
    llvm::outs() << choice.name << " " << candidate << ": ";
    if (isOver()) {
      llvm::outs() << "not measured, the time is over\n";
      continue;
    }
    tuning.*choice.value = candidate;
    std::optional<Version> version = compiler.compile(tuning);
    if (!version) {
      llvm::outs() << "not compiled\n";
      return false;
    }
    std::optional<Gain> gain = compare(*best, *version, searchDeadline);
    if (isInterrupted()) {
      llvm::outs() << "interrupted\n";
      return false;
    }
    if (!gain)
      llvm::outs() << "not measured, the time is over\n";
    else if (gain->problems == 0)
      llvm::outs() << "no difference\n";
    else
      llvm::outs() << llvm::format("%.3f", gain->mean.median) << "\n";
    llvm::outs().flush();
    if (gain && gain->isSure() && gain->mean.median > foundSpeed) {
      foundSpeed = gain->mean.median;
      found = std::move(version);
    }
  }
  if (!found)
    return true;
  // The best of several is too good: it must be so once more.
  std::optional<Gain> again = compare(*best, *found, searchDeadline);
  if (!again || !again->isSure())
    return true;
  llvm::outs() << choice.name << " " << found->tuning.*choice.value
               << " is taken\n";
  best = std::move(found);
  return true;
}

std::optional<Tuning> Search::run() {
  setKernelThreads(1);
  std::optional<Version> defaults = compiler.compile(request.target.tuning);
  if (!defaults)
    return std::nullopt;
  problems = createProblems(request, *defaults);
  if (problems.empty())
    return std::nullopt;
  // Another copy of the same: a version belongs to one place.
  best = compiler.compile(request.target.tuning);
  if (!best)
    return std::nullopt;
  for (const TuningChoice &choice : getTuningChoices())
    if (!tryChoice(choice))
      return std::nullopt;
  if (best->tuning == defaults->tuning) {
    llvm::outs() << "nothing is faster than the defaults\n";
    return best->tuning;
  }
  // What was gained step by step must be there in the end.
  std::optional<Gain> gain = compare(*defaults, *best, deadline);
  if (isInterrupted())
    return std::nullopt;
  if (gain && !gain->isSure()) {
    llvm::outs() << "nothing is faster than the defaults for sure\n";
    return defaults->tuning;
  }
  if (gain)
    llvm::outs() << "faster than the defaults by "
                 << llvm::format("%.1f", 100 * (gain->mean.median - 1))
                 << " % where choices matter\n";
  else
    llvm::outs() << "no time was left to measure the gain of all choices\n";
  return best->tuning;
}
