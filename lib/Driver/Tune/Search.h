//===- Search.h - the best choices of a machine -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_TUNE_SEARCH_H
#define POSENC_LIB_DRIVER_TUNE_SEARCH_H

#include "Problems.h"

namespace mlir::posenc {

/// Compares the rows of the table of CPU families as a whole, then changes one
/// choice at a time, for as long as the budget lasts.
class Search {
public:
  explicit Search(const TuneRequest &request);
  /// Prints a line for each candidate, and at the end what was gained. Nothing
  /// after an error, which is printed, and after an interrupt.
  std::optional<Tuning> run();

private:
  /// What one version gains over another.
  struct Gain {
    /// The geometric mean over the problems that are affected.
    double mean = 1;
    int problems = 0, faster = 0;
    /// Of a problem that is slower beyond doubt; else 1.
    double worst = 1;

    /// Whether problems are faster beyond doubt and none is much slower.
    bool isSure() const;
  };
  std::optional<Gain> compare(const Version &from, const Version &to,
                              int mostPairs, TimePoint deadline) const;
  /// Compiles and measures a candidate, and prints a line. Nothing after an
  /// error and an interrupt; else a version that is not there was not measured.
  struct Candidate {
    std::optional<Version> version;
    Gain gain;
  };
  std::optional<Candidate> measure(const std::string &name,
                                   const Tuning &tuning);
  bool tryPresets();
  bool tryChoice(const TuningChoice &choice);
  bool isOver() const;

  const TuneRequest &request;
  VersionCompiler compiler;
  /// Until when to search, and until when to measure what was found.
  TimePoint searchDeadline, deadline;
  std::vector<std::unique_ptr<Problem>> problems;
  std::optional<Version> best;
  /// The most pairs of a comparison: a second pass over the choices looks
  /// closer.
  int mostPairs = 15;
  bool hasChanged = false, hasMeasured = false;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_TUNE_SEARCH_H
