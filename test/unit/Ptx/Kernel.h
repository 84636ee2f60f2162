//===- Kernel.h - short kernels in tests ------------------------*- C++ -*-===//
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

/// A module for sm_90 with a kernel `k` of these parameters, such as
/// ".param .u64 a", with registers %h, %r, %d and %p (16, 32, 64 bits and
/// predicates) and a body.
std::string makeModule(const std::string &params, const std::string &body,
                       const std::string &tuning = "",
                       const std::string &variables = "");

/// What one thread leaves in a register (%h, %r, %d or %p) after a body. A
/// failure is a test failure.
uint64_t evaluate(const std::string &body, const std::string &result,
                  const ptx::ParseOptions &options = {});

/// A module with one kernel `k`, and memory to run it in.
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
  /// Expects a fault of this kind whose message has all of `parts`.
  void expectFault(ptx::FaultKind kind,
                   const std::vector<ptx::Argument> &arguments,
                   const std::vector<std::string> &parts);

private:
  std::optional<ptx::Module> module;
};

/// The error that a text of PTX has; empty if it has none.
std::string getError(const std::string &text,
                     const ptx::ParseOptions &options = {});
/// The error that the one instruction has in a body.
std::string getInstructionError(const std::string &instruction);

} // namespace posenc::test

#endif // POSENC_TEST_UNIT_PTX_KERNEL_H
