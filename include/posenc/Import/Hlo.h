//===- Hlo.h - import of StableHLO and TTIR ---------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IMPORT_HLO_H
#define POSENC_IMPORT_HLO_H

#include "mlir/IR/DialectRegistry.h"

namespace mlir::posenc {

/// Registers the syntax of StableHLO and of the dialects that its producers
/// add to modules (`mhlo`, `sdy`, `jax`), of TTIR (`ttir`, `ttcore`), and of
/// torch-mlir's `tm_tensor`.
/// Operations have no verifiers; their pretty form is parsed into the generic
/// one.
void registerHloSyntax(DialectRegistry &registry);

} // namespace mlir::posenc

#endif // POSENC_IMPORT_HLO_H
