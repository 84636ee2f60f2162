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

#include <functional>
#include <memory>

namespace mlir::remark::detail {
class Remark;
} // namespace mlir::remark::detail

namespace mlir::posenc {

/// Prints text with control characters, which names from files may contain,
/// escaped as `\xNN`, except for ends of lines and tabs.
void printEscaped(raw_ostream &os, StringRef text);

/// The stream that the driver prints errors and warnings of this thread to:
/// standard error, unless they are redirected. They are escaped as above.
raw_ostream &getErrorStream();

/// While alive, redirects the errors and warnings of this thread to a string.
class RedirectErrors {
public:
  /// With `alsoPrint`, they are printed to where they went before as well.
  explicit RedirectErrors(std::string &text, bool alsoPrint = false);
  ~RedirectErrors();

private:
  std::unique_ptr<raw_ostream> stream;
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
  void printRemarks() { handleRemarks(nullptr, /*print=*/true); }
  /// Passes remarks to `record`, and also prints them if `print` is set.
  using RemarkRecorder = std::function<void(const remark::detail::Remark &)>;
  void handleRemarks(RemarkRecorder record, bool print);

private:
  ScopedDiagnosticHandler handler;
  MLIRContext &context;
};

/// Returns the place that messages about a location begin with, such as
/// `file:line:col` or, for a node of a binary file, `file: node`; empty if it
/// is not known.
std::string describeLocation(Location loc);

} // namespace mlir::posenc

#endif // POSENC_DRIVER_DIAGNOSTICS_H
