//===- Interrupt.h - deferred SIGINT and SIGTERM ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_TUNE_INTERRUPT_H
#define POSENC_TOOLS_TUNE_INTERRUPT_H

namespace mlir::posenc {

/// From now on, the first signal that asks the program to exit, such as SIGINT
/// by Ctrl-C, only sets a flag, so that temporary folders can be removed. A
/// second signal ends the program.
void deferInterrupts();

/// Returns whether a signal was received after deferInterrupts().
bool isInterrupted();

} // namespace mlir::posenc

#endif // POSENC_TOOLS_TUNE_INTERRUPT_H
