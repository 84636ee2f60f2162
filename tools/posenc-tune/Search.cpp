//===- Search.cpp - search for the fastest tuning parameters --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search.h"

#include "Interrupt.h"
#include "Threads.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

using namespace mlir::posenc;

static TimePoint getTimeAfter(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(seconds));
}

std::vector<TuningChoice>
mlir::posenc::orderChoices(llvm::ArrayRef<TunedFunction> functions) {
  auto isOfKernels = [&](const TuningChoice &choice) {
    std::string kernel = choice.name.split('_').first.str();
    return llvm::any_of(functions, [&](const TunedFunction &tuned) {
      return llvm::is_contained(tuned.tunedKernels, kernel);
    });
  };
  std::vector<TuningChoice> choices;
  for (bool own : {true, false})
    llvm::copy_if(
        getTuningChoices(), std::back_inserter(choices),
        [&](const TuningChoice &choice) { return isOfKernels(choice) == own; });
  return choices;
}

Search::Search(const TuneRequest &request)
    : request(request), compiler(request),
      searchDeadline(getTimeAfter(0.8 * request.budgetSeconds)),
      deadline(getTimeAfter(request.budgetSeconds)) {}

bool Search::isOver() const {
  return std::chrono::steady_clock::now() >= searchDeadline;
}

/// Requires a mean gain above the noise, and no problem that loses over 3 %.
bool Search::Gain::isSignificant() const {
  return faster > 0 && mean > 1.01 && worst > 0.97;
}

std::optional<Search::Gain> Search::compare(const Version &from,
                                            const Version &to, int maxPairs,
                                            TimePoint deadline) const {
  Gain gain;
  double sum = 0;
  for (const std::unique_ptr<Problem> &problem : problems) {
    if (!problem->isAffected(from, to))
      continue;
    std::optional<Speed> speed = problem->compare(from, to, maxPairs, deadline);
    if (!speed)
      return std::nullopt;
    sum += std::log(speed->median);
    gain.faster += speed->isFaster();
    if (speed->isSlower())
      gain.worst = std::min(gain.worst, speed->median);
    ++gain.problems;
  }
  if (gain.problems > 0)
    gain.mean = std::exp(sum / gain.problems);
  return gain;
}

std::optional<Search::Candidate> Search::measure(const std::string &name,
                                                 const Tuning &tuning) {
  llvm::outs() << name << ": ";
  if (isOver()) {
    llvm::outs() << "not measured, the budget is used up\n";
    return Candidate();
  }
  Candidate candidate;
  candidate.version = compiler.compile(tuning);
  if (!candidate.version) {
    llvm::outs() << (isInterrupted() ? "interrupted\n" : "not compiled\n");
    return std::nullopt;
  }
  std::optional<Gain> gain =
      compare(*best, *candidate.version, maxPairs, searchDeadline);
  if (isInterrupted()) {
    llvm::outs() << "interrupted\n";
    return std::nullopt;
  }
  if (!gain) {
    llvm::outs() << "not measured, the budget is used up\n";
    return Candidate();
  }
  candidate.gain = *gain;
  hasMeasured |= gain->problems > 0;
  if (gain->problems == 0)
    llvm::outs() << "no difference\n";
  else
    llvm::outs() << llvm::format("%.3f", gain->mean) << "\n";
  llvm::outs().flush();
  return candidate;
}

bool Search::tryPresets() {
  // Parameters interact: changing one at a time does not lead from every row of
  // the table to the best one.
  std::optional<Version> found;
  double foundSpeed = 1.01;
  for (const TuningPreset &preset : getTuningPresets(request.target.triple)) {
    if (preset.tuning == best->tuning)
      continue;
    std::optional<Candidate> candidate =
        measure("the choices for " + preset.name.str(), preset.tuning);
    if (!candidate)
      return false;
    // A row that is faster on average is a better start, even if it is slower
    // for some problem.
    if (!candidate->version || candidate->gain.mean <= foundSpeed)
      continue;
    foundSpeed = candidate->gain.mean;
    found = std::move(candidate->version);
  }
  if (found)
    best = std::move(found);
  return true;
}

bool Search::tryChoice(const TuningChoice &choice) {
  std::optional<Version> found;
  double foundSpeed = 0;
  for (uint64_t value : choice.candidates) {
    Tuning tuning = best->tuning;
    if (tuning.*choice.value == value)
      continue;
    tuning.*choice.value = value;
    std::optional<Candidate> candidate =
        measure(choice.name.str() + " " + std::to_string(value), tuning);
    if (!candidate)
      return false;
    if (candidate->version && candidate->gain.isSignificant() &&
        candidate->gain.mean > foundSpeed) {
      foundSpeed = candidate->gain.mean;
      found = std::move(candidate->version);
    }
  }
  if (!found)
    return true;
  // The best of several measurements is biased upwards, so it is repeated.
  std::optional<Gain> again = compare(*best, *found, maxPairs, searchDeadline);
  if (!again || !again->isSignificant())
    return true;
  llvm::outs() << choice.name << " " << found->tuning.*choice.value
               << " is taken\n";
  best = std::move(found);
  hasChanged = true;
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
  // Versions cannot be copied, so the defaults are compiled a second time.
  best = compiler.compile(request.target.tuning);
  if (!best || !tryPresets())
    return std::nullopt;
  constexpr int finalPairs = 127;
  std::vector<TuningChoice> choices = orderChoices(request.functions);
  do {
    hasChanged = hasMeasured = false;
    for (const TuningChoice &choice : choices)
      if (!tryChoice(choice))
        return std::nullopt;
    if (!hasChanged)
      maxPairs = std::min(2 * maxPairs, finalPairs);
  } while (hasMeasured && !isOver());
  if (best->tuning == defaults->tuning) {
    llvm::outs() << "nothing is faster than the defaults\n";
    return best->tuning;
  }
  // Confirms the total gain of all steps.
  std::optional<Gain> gain = compare(*defaults, *best, finalPairs, deadline);
  if (isInterrupted())
    return std::nullopt;
  if (gain && (gain->faster == 0 || gain->mean <= 1)) {
    llvm::outs() << "nothing is significantly faster than the defaults\n";
    return defaults->tuning;
  }
  if (gain)
    llvm::outs() << "faster than the defaults by "
                 << llvm::format("%.1f", 100 * (gain->mean - 1))
                 << " % where the choices matter\n";
  else
    llvm::outs() << "no time was left to measure the gain of all choices\n";
  return best->tuning;
}
