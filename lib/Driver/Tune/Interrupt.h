//===- Interrupt.h - a search that is told to stop --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_TUNE_INTERRUPT_H
#define POSENC_LIB_DRIVER_TUNE_INTERRUPT_H

namespace mlir::posenc {

/// From now on the first signal that asks the program to end, as Ctrl-C does,
/// is only noted: what runs has a temporary folder to remove. A second one ends
/// the program.
void noteInterrupts();

/// Whether there was one.
bool isInterrupted();

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_TUNE_INTERRUPT_H
