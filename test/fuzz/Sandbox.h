//===- Sandbox.h - runs inputs in processes of their own --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inputs run in batches, a forked child for each batch. A child that dies, ends
// or hangs is noticed, the input it was at is blamed, and the rest of the batch
// goes on in another child.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_FUZZ_SANDBOX_H
#define POSENC_TEST_FUZZ_SANDBOX_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace posenc::fuzz {

/// Wrong is what the body itself reports.
enum class Fault { None, Signal, Exit, Timeout, Wrong };

struct Failure {
  /// The inputs that show the failure: the last one alone, unless it takes
  /// those before it.
  size_t first = 0, last = 0;
  Fault fault = Fault::None;
  std::string what;
  /// Where it is, as far as is known.
  std::string place;
  /// What the child wrote, its end.
  std::string log;
};

struct Summary {
  /// Inputs that ran to their end, or to a fault.
  size_t executed = 0;
  /// Known faults within LLVM and MLIR, below no function of this project but
  /// the one that calls a pass or the parser; the places, and how many each
  /// has.
  size_t foreign = 0;
  std::map<std::string, size_t> foreignPlaces;
  std::vector<Failure> failures;
  double slowestSeconds = 0;
  size_t slowest = 0;
  /// How many inputs got how far.
  std::vector<size_t> reached;
};

/// What became of an input that ran to its end.
struct Outcome {
  /// What is wrong, or empty.
  std::string wrong;
  /// How far it got, below maxReached.
  size_t reached = 0;
};
inline constexpr size_t maxReached = 8;

struct SandboxOptions {
  size_t batch = 100;
  unsigned children = 2;
  /// Limits for one input: CPU time, and time on the wall for one that waits.
  unsigned cpuSeconds = 10, wallSeconds = 120;
  /// Address space of a child, in bytes; none under a sanitizer.
  size_t memory = size_t(6) << 30;
  /// Whether the inputs are read by code that damages the heap and makes
  /// objects that are invalid: what LLVM, MLIR, malloc and free then run into
  /// counts as foreign, whoever called them.
  bool readerIsSuspect = false;
  /// Whether a foreign fault with this backtrace is a known one of LLVM or
  /// MLIR. Others are failures.
  std::function<bool(llvm::StringRef backtrace)> isKnown = [](llvm::StringRef) {
    return true;
  };
  /// After so many failures the rest is not run.
  size_t maxFailures = 10;
};

/// Runs the input with this number, in a child.
using Body = std::function<Outcome(size_t input)>;
/// Makes a body in a child, with whatever the inputs of a batch share.
using MakeBody = std::function<Body()>;

/// Runs inputs 0 to `count`.
Summary runSandboxed(size_t count, const MakeBody &makeBody,
                     const SandboxOptions &options = {});

/// What happened, in a line for the log.
std::string describe(const Failure &failure);

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_SANDBOX_H
