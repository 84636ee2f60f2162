//===- Sandbox.h - runs inputs in child processes ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inputs run in batches, each batch in a forked child. If a child is killed,
// exits or hangs, the failure is attributed to its current input, and another
// child runs the rest of the batch.
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

/// The kind of a failure. The body reports Wrong itself.
enum class Fault { None, Signal, Exit, Timeout, Wrong };

struct Failure {
  /// The range of inputs that reproduces the failure, `last` included. `first`
  /// is `last`, unless the failure depends on earlier inputs.
  size_t first = 0, last = 0;
  Fault fault = Fault::None;
  std::string what;
  /// The innermost frames, if known.
  std::string location;
  /// The end of the child's output.
  std::string log;
};

struct Summary {
  /// Number of inputs that ran to their end or to a fault.
  size_t executed = 0;
  /// Number of known faults of LLVM and MLIR (`Backtrace::isUpstream`), also by
  /// location.
  size_t upstream = 0;
  std::map<std::string, size_t> upstreamLocations;
  std::vector<Failure> failures;
  double slowestSeconds = 0;
  size_t slowest = 0;
  /// Number of inputs by `Outcome::reached`.
  std::vector<size_t> reached;
};

/// The outcome of an input that ran to its end.
struct Outcome {
  /// The error that was found; empty if there is none.
  std::string wrong;
  /// The last stage that the input reached, below maxReached.
  size_t reached = 0;
};
inline constexpr size_t maxReached = 8;

struct SandboxOptions {
  size_t batch = 100;
  unsigned children = 2;
  /// Limits of CPU time, and of wall-clock time, for one input.
  unsigned cpuSeconds = 10, wallSeconds = 120;
  /// Limit of a child's address space in bytes; unlimited under a sanitizer.
  size_t memory = size_t(6) << 30;
  /// Whether the code that reads the inputs corrupts the heap and creates
  /// invalid objects. If so, later faults within LLVM, MLIR, malloc and free
  /// also count as upstream faults when this project called them.
  bool readerCorruptsMemory = false;
  /// Whether an upstream fault with this backtrace is known. Others are
  /// failures.
  std::function<bool(llvm::StringRef backtrace)> isKnown = [](llvm::StringRef) {
    return true;
  };
  /// The number of failures after which no more inputs are run.
  size_t maxFailures = 10;
};

/// Runs the input with this number in a child.
using Body = std::function<Outcome(size_t input)>;
/// Creates the body in a child, with the state that the inputs of a batch
/// share.
using MakeBody = std::function<Body()>;

/// Runs the inputs from 0 to `count` - 1.
Summary runSandboxed(size_t count, const MakeBody &makeBody,
                     const SandboxOptions &options = {});

/// Describes a failure, with the backtrace and the child's output.
std::string describe(const Failure &failure);

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_SANDBOX_H
