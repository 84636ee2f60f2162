//===- Registration.h - registration of dialects and passes -----*- C++ -*-===//
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

/// Registers the posenc dialect and its external interface models.
void registerPosencDialect(DialectRegistry &registry);

/// Registers the passes and pipelines of this project. Must be called only once
/// per process.
void registerPosencPasses();

/// Registers all upstream dialects and extensions and the posenc dialect, with
/// their translations to LLVM IR.
void registerAllDialects(DialectRegistry &registry);

} // namespace mlir::posenc

#endif // POSENC_REGISTRATION_REGISTRATION_H
