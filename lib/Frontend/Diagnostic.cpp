//===- Diagnostic.cpp - printing diagnostics ------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Frontend/Diagnostic.h"

#include "llvm/Support/raw_ostream.h"

using namespace posenc::frontend;

llvm::raw_ostream &posenc::frontend::operator<<(llvm::raw_ostream &os,
                                                const Diagnostic &diag) {
  os << diag.file << ':' << diag.line << ':' << diag.col << ": "
     << (diag.severity == Severity::Error ? "error: " : "warning: ")
     << diag.message << '\n';
  return os;
}

void posenc::frontend::printDiagnostics(llvm::raw_ostream &os,
                                        llvm::ArrayRef<Diagnostic> diags) {
  for (const Diagnostic &diag : diags)
    os << diag;
}
