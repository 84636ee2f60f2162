//===- Diagnostics.h - printing of MLIR diagnostics -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_DRIVER_DIAGNOSTICS_H
#define POSENC_DRIVER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

namespace mlir::posenc {

/// While alive, prints the diagnostics of a context to standard error as
/// `file:line:col: error: text`. For a location without a file, the prefix
/// `file:line:col: ` is omitted.
class DiagnosticPrinter {
public:
  explicit DiagnosticPrinter(MLIRContext &context);

private:
  ScopedDiagnosticHandler handler;
};

} // namespace mlir::posenc

#endif // POSENC_DRIVER_DIAGNOSTICS_H
