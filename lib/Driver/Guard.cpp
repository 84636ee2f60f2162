//===- Guard.cpp - no signal leaves a tool ----------------------*- C++ -*-===//
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

/// Ends the process from where it crashed, in whatever thread: a way back, as
/// llvm::CrashRecoveryContext has, leaves locks behind, and that only for the
/// thread that asked for it.
static void onCrash(int signal) {
  static volatile std::sig_atomic_t isSecond;
  if (!isSecond) {
    isSecond = 1;
    // Removes temporary files; prints the stack if main() asked for that.
    llvm::sys::CleanupOnSignal(static_cast<uintptr_t>(signal));
  }
  constexpr char message[] = "error: internal error\n";
  [[maybe_unused]] ssize_t written =
      write(STDERR_FILENO, message, sizeof(message) - 1);
  _exit(kExitError);
}

static void handleCrashes() {
#if LLVM_ADDRESS_SANITIZER_BUILD
  // Its report says more, and no test takes that for an error of the user's.
  return;
#endif
  struct sigaction action = {};
  action.sa_handler = onCrash;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP})
    sigaction(signal, &action, nullptr);
}

int mlir::posenc::runGuarded(llvm::function_ref<int()> body) {
  // A reader that has gone is an error of writing.
  std::signal(SIGPIPE, SIG_IGN);
  handleCrashes();
  int result = kExitError;
  // MLIR's parser and passes recurse by the depth of the input. A stack that
  // overflowed has no room for the handler: it has one of its own.
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
