//===- Diagnostic.h - errors and warnings about a config --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_FRONTEND_DIAGNOSTIC_H
#define POSENC_FRONTEND_DIAGNOSTIC_H

#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace llvm {
class raw_ostream;
}

namespace posenc::frontend {

enum class Severity { Error, Warning };

struct Diagnostic {
  Severity severity = Severity::Error;
  std::string file;
  unsigned line = 1; // 1-based
  unsigned col = 1;  // 1-based, in bytes
  std::string message;
};

/// Prints `file:line:col: error: message`, or `warning:`, and a newline.
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Diagnostic &diag);

/// Prints each diagnostic in this form, in the order of the list.
void printDiagnostics(llvm::raw_ostream &os, llvm::ArrayRef<Diagnostic> diags);

} // namespace posenc::frontend

#endif // POSENC_FRONTEND_DIAGNOSTIC_H
