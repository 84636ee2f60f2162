//===- Search.h - search for the fastest tuning parameters ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_TUNE_SEARCH_H
#define POSENC_TOOLS_TUNE_SEARCH_H

#include "Problems.h"

namespace mlir::posenc {

/// Returns all parameters in the order in which they are measured: first those
/// of the functions' kernels, as the budget may not suffice for all.
std::vector<TuningChoice> orderChoices(llvm::ArrayRef<TunedFunction> functions);

/// Coordinate descent: compares the rows of the table of CPU families, starts
/// from the fastest, and changes one tuning parameter at a time. Repeats this
/// with more samples until the budget is used up.
class Search {
public:
  explicit Search(const TuneRequest &request);
  /// Prints a line for each candidate and, at the end, the total gain. Returns
  /// the fastest parameters, or nullopt after an error, which is printed, or an
  /// interrupt.
  std::optional<Tuning> run();

private:
  /// The speed of one version relative to another.
  struct Gain {
    /// Geometric mean over the affected problems.
    double mean = 1;
    /// Numbers of affected problems, and of those that are significantly
    /// faster.
    int problems = 0, faster = 0;
    /// Minimum over the problems that are significantly slower; 1 if there are
    /// none.
    double worst = 1;

    /// Returns whether the gain is real and no problem is much slower.
    bool isSignificant() const;
  };
  /// Returns nullopt after the deadline or an interrupt.
  std::optional<Gain> compare(const Version &from, const Version &to,
                              int maxPairs, TimePoint deadline) const;
  struct Candidate {
    /// nullopt if the budget was used up before the candidate was measured.
    std::optional<Version> version;
    Gain gain;
  };
  /// Compiles a candidate, compares it with `best`, and prints a line. Returns
  /// nullopt after an error or an interrupt.
  std::optional<Candidate> measure(const std::string &name,
                                   const Tuning &tuning);
  /// Sets `best` to the fastest row of the table. Returns false after an error
  /// or an interrupt.
  bool tryPresets();
  /// Sets `best` to the fastest value of one parameter. Returns false after an
  /// error or an interrupt.
  bool tryChoice(const TuningChoice &choice);
  /// Returns whether the time to search is over.
  bool isOver() const;

  const TuneRequest &request;
  VersionCompiler compiler;
  /// The ends of the search (80 % of the budget) and of the final comparison
  /// with the defaults.
  TimePoint searchDeadline, deadline;
  std::vector<std::unique_ptr<Problem>> problems;
  /// The fastest version so far.
  std::optional<Version> best;
  /// The maximum number of pairs of a comparison. Doubles after each pass that
  /// changes nothing.
  int maxPairs = 15;
  bool hasChanged = false, hasMeasured = false;
};

} // namespace mlir::posenc

#endif // POSENC_TOOLS_TUNE_SEARCH_H
