//===- Interrupt.cpp - deferred SIGINT and SIGTERM ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interrupt.h"

#include "llvm/Support/Signals.h"

#include <csignal>

using namespace mlir::posenc;

static volatile std::sig_atomic_t interrupted;

void mlir::posenc::deferInterrupts() {
  llvm::sys::SetInterruptFunction([] { interrupted = 1; });
}

bool mlir::posenc::isInterrupted() { return interrupted; }
