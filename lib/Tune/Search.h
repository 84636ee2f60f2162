//===- Search.h - the best choices of a machine -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_TUNE_SEARCH_H
#define POSENC_LIB_TUNE_SEARCH_H

#include "Problems.h"

namespace mlir::posenc {

/// Goes through the choices one after the other, and keeps what is faster than
/// the default for sure.
class Search {
public:
  explicit Search(const TuneRequest &request);
  /// Prints a line for each candidate, and at the end what was gained. Nothing
  /// after an error, which is printed, and after an interrupt.
  std::optional<Tuning> run();

private:
  /// What one version gains over another.
  struct Gain {
    /// The mean over all problems, and their worst.
    Speed mean = {};
    double worst = 1;
    int problems = 0;

    bool isSure() const;
  };
  std::optional<Gain> compare(const Version &from, const Version &to,
                              TimePoint deadline) const;
  bool tryChoice(const TuningChoice &choice);
  bool isOver() const;

  const TuneRequest &request;
  VersionCompiler compiler;
  /// Until when to search, and until when to measure what was found.
  TimePoint searchDeadline, deadline;
  std::vector<std::unique_ptr<Problem>> problems;
  std::optional<Version> best;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_TUNE_SEARCH_H
