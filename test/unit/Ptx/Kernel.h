//===- Kernel.h - small PTX kernels for tests -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_UNIT_PTX_KERNEL_H
#define POSENC_TEST_UNIT_PTX_KERNEL_H

#include "ptx/Module.h"

#include "gtest/gtest.h"

namespace posenc::test {

/// Returns the PTX of a module for sm_90 with one kernel `k`. `params` are its
/// parameters (".param .u64 a"), `tuning` directives such as .maxntid, and
/// `variables` declarations of module scope. The body can use registers %h, %r,
/// %d (16, 32 and 64 bits) and %p (predicates).
std::string makeModule(const std::string &params, const std::string &body,
                       const std::string &tuning = "",
                       const std::string &variables = "");

/// Runs a body in one thread and returns the register `result` (%h, %r, %d or
/// %p). An error fails the test.
uint64_t evaluate(const std::string &body, const std::string &result,
                  const ptx::ParseOptions &options = {});

/// A module with a kernel `k`, and the device memory to run it.
class Kernel {
public:
  explicit Kernel(const std::string &text,
                  const ptx::ParseOptions &options = {});

  ptx::LaunchShape shape;
  ptx::RunOptions options;
  ptx::Memory memory;
  ptx::Statistics statistics;

  /// Fails the test if the launch fails.
  void run(const std::vector<ptx::Argument> &arguments);
  /// Expects a fault of this kind with a message that contains all of `parts`.
  void expectFault(ptx::FaultKind kind,
                   const std::vector<ptx::Argument> &arguments,
                   const std::vector<std::string> &parts);

  /// Returns the kind of the fault of a launch; nullopt if there is none.
  std::optional<ptx::FaultKind>
  getFault(const std::vector<ptx::Argument> &arguments);

private:
  std::optional<ptx::Module> module;
};

/// Parses PTX and returns the error, or "".
std::string getError(const std::string &text,
                     const ptx::ParseOptions &options = {});
/// Parses a kernel with one instruction and returns the error, or "".
std::string getInstructionError(const std::string &instruction);

} // namespace posenc::test

#endif // POSENC_TEST_UNIT_PTX_KERNEL_H
