//===- Registration.h - what tools register ---------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_REGISTRATION_REGISTRATION_H
#define POSENC_REGISTRATION_REGISTRATION_H

#include "mlir/IR/DialectRegistry.h"

namespace mlir::posenc {

/// Registers the posenc dialect, its interfaces and nothing else.
void registerPosencDialect(DialectRegistry &registry);

/// Registers the passes and pipelines of this project. Once a process.
void registerPosencPasses();

/// Registers all dialects and extensions that the pipelines may meet, with
/// their translations to LLVM IR.
void registerAllDialects(DialectRegistry &registry);

} // namespace mlir::posenc

#endif // POSENC_REGISTRATION_REGISTRATION_H
