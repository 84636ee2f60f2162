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

int mlir::posenc::runGuarded(llvm::function_ref<int()> body) {
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext context;
  int result = kExitError;
  // MLIR's parser and passes recurse by the depth of the input.
  constexpr unsigned stackSize = 256u << 20;
  if (context.RunSafelyOnThread([&] { result = body(); }, stackSize))
    return result;
  llvm::errs() << "error: internal error\n";
  return kExitError;
}
