//===- Process.h - commands with a limited time -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_HARDWARE_PROCESS_H
#define POSENC_TEST_HARDWARE_PROCESS_H

#include <string>
#include <vector>

namespace posenc::hardware {

/// How a process has ended.
struct Ending {
  enum Kind { Exited, Signaled, Late } kind = Exited;
  int code = 0; ///< exit code or number of the signal
  double seconds = 0;
  std::string
      lastLine; ///< of its output, if that was captured; not empty lines
};

/// Runs a command for at most `seconds`. After that time it gets SIGTERM, and
/// SIGKILL `grace` seconds later, as do its children; one that the kernel
/// cannot end, such as one in a call of a driver that hangs, is left behind.
/// With isCaptured, its output is read instead of printed. The command ends
/// with this process. Throws Failure if it cannot be started.
Ending runProcess(const std::vector<std::string> &command, double seconds,
                  double grace, bool isCaptured);

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_PROCESS_H
