//===- Guard.cpp - crash handling and stack size of the tools -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Driver/Guard.h"

#include "posenc/Driver/Options.h"

#include "llvm/Support/Signals.h"
#include "llvm/Support/thread.h"

#include <csignal>
#include <memory>
#include <unistd.h>

using namespace mlir::posenc;

/// Ends the process from the signal handler, in whichever thread crashed.
/// Resuming, as llvm::CrashRecoveryContext does, would leave locks held, and
/// works only for the thread that set up the recovery.
static void onCrash(int signal, siginfo_t *info, void *) {
  static volatile std::sig_atomic_t isSecond;
  if (!isSecond) {
    isSecond = 1;
    // Removes temporary files, and prints the stack if main() enabled that.
    llvm::sys::CleanupOnSignal(static_cast<uintptr_t>(signal));
  }
  // The address is behind the end of a file, or the disk has failed.
  bool isFile = signal == SIGBUS && info->si_code == BUS_ADRERR;
  constexpr llvm::StringLiteral
      internal = "error: internal error\n",
      file = "error: a file that is mapped, such as that "
             "of weights, was cut off or cannot be read\n";
  llvm::StringRef message = isFile ? file : internal;
  [[maybe_unused]] ssize_t written =
      write(STDERR_FILENO, message.data(), message.size());
  _exit(kExitError);
}

static void handleCrashes() {
#if LLVM_ADDRESS_SANITIZER_BUILD
  // Leaves crashes to the sanitizer: its report says more, and tests cannot
  // mistake it for an error in the input.
  return;
#endif
  struct sigaction action = {};
  action.sa_sigaction = onCrash;
  action.sa_flags = SA_ONSTACK | SA_NODEFER | SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP})
    sigaction(signal, &action, nullptr);
}

int mlir::posenc::runGuarded(llvm::function_ref<int()> body) {
  // Writing to a closed pipe then fails with an error instead of a signal.
  std::signal(SIGPIPE, SIG_IGN);
  handleCrashes();
  int result = kExitError;
  // MLIR's parser and passes recurse as deeply as the input nests. The signal
  // handler has its own stack, as it must also run after a stack overflow.
  constexpr unsigned stackSize = 256u << 20;
  constexpr size_t signalStackSize = 64 << 10;
  auto signalStack = std::make_unique<char[]>(signalStackSize);
  llvm::thread worker(std::optional<unsigned>(stackSize), [&] {
    stack_t stack = {};
    stack.ss_sp = signalStack.get();
    stack.ss_size = signalStackSize;
    sigaltstack(&stack, nullptr);
    result = body();
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, nullptr);
  });
  worker.join();
  return result;
}
