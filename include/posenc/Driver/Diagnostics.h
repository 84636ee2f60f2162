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
#include "llvm/Support/raw_ostream.h"

namespace mlir::posenc {

/// The stream that the driver prints errors and warnings of this thread to:
/// standard error, unless they are redirected.
raw_ostream &getErrorStream();

/// While alive, redirects the errors and warnings of this thread to a string.
class RedirectErrors {
public:
  explicit RedirectErrors(std::string &text);
  ~RedirectErrors();

private:
  llvm::raw_string_ostream stream;
  raw_ostream *previous;
};

/// While alive, prints the diagnostics of a context to getErrorStream() as
/// `file:line:col: error: text`. For a location without a file, the prefix
/// `file:line:col: ` is omitted.
class DiagnosticPrinter {
public:
  explicit DiagnosticPrinter(MLIRContext &context);

  /// Prints remarks as well: what passes chose, and why they left operations
  /// alone.
  void printRemarks();

private:
  ScopedDiagnosticHandler handler;
  MLIRContext &context;
};

} // namespace mlir::posenc

#endif // POSENC_DRIVER_DIAGNOSTICS_H
