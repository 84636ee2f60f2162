//===- Guard.cpp - no signal leaves a tool ----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Tools/Guard.h"

#include "posenc/Tools/Options.h"

#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <memory>

/// The handlers of crashes run on the thread's own stack, of which one that
/// overflowed has nothing left: give them another.
static void useSignalStack(char *memory, size_t size) {
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = size;
  sigaltstack(&stack, nullptr);
  for (int signal : {SIGSEGV, SIGBUS}) {
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) == 0) {
      action.sa_flags |= SA_ONSTACK;
      sigaction(signal, &action, nullptr);
    }
  }
}

int mlir::posenc::runGuarded(llvm::function_ref<int()> body) {
  // A reader that has gone is an error of writing.
  std::signal(SIGPIPE, SIG_IGN);
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext context;
  int result = kExitError;
  // MLIR's parser and passes recurse by the depth of the input.
  constexpr unsigned stackSize = 256u << 20;
  constexpr size_t signalStackSize = 64 << 10;
  auto signalStack = std::make_unique<char[]>(signalStackSize);
  auto run = [&] {
    useSignalStack(signalStack.get(), signalStackSize);
    result = body();
  };
  if (context.RunSafelyOnThread(run, stackSize))
    return result;
  llvm::errs() << "error: internal error\n";
  return kExitError;
}
