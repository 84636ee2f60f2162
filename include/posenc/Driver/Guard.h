//===- Guard.h - crash handling and stack size of the tools -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_DRIVER_GUARD_H
#define POSENC_DRIVER_GUARD_H

#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::posenc {

/// Runs `body` on a thread with a large stack and returns its result. From then
/// on, a crash in any thread ends the process with `error: internal error` and
/// exit code 1, and SIGPIPE is ignored.
int runGuarded(llvm::function_ref<int()> body);

} // namespace mlir::posenc

#endif // POSENC_DRIVER_GUARD_H
