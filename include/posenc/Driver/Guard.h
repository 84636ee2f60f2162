//===- Guard.h - no signal leaves a tool ------------------------*- C++ -*-===//
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

/// Runs `body` on a large stack and returns its result. A crash, from then on,
/// ends the process with `error: internal error` and exit code 1.
int runGuarded(llvm::function_ref<int()> body);

} // namespace mlir::posenc

#endif // POSENC_DRIVER_GUARD_H
