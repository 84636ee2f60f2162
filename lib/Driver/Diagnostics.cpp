//===- Diagnostics.cpp - diagnostics of the tools ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Driver/Diagnostics.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

/// The first place in a file that a location leads to.
static FileLineColLoc findFile(Location loc) {
  FileLineColLoc found;
  loc->walk([&](Location nested) {
    found = dyn_cast<FileLineColLoc>(nested);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

static StringRef getSeverity(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Remark:
    return "remark";
  case DiagnosticSeverity::Note:
    return "note";
  }
  return "error";
}

static void print(Location loc, DiagnosticSeverity severity,
                  const std::string &text) {
  if (FileLineColLoc file = findFile(loc))
    llvm::errs() << file.getFilename().getValue() << ':' << file.getLine()
                 << ':' << file.getColumn() << ": ";
  llvm::errs() << getSeverity(severity) << ": " << text << "\n";
}

mlir::posenc::DiagnosticPrinter::DiagnosticPrinter(MLIRContext &context)
    : handler(&context, [](Diagnostic &diagnostic) {
        print(diagnostic.getLocation(), diagnostic.getSeverity(),
              diagnostic.str());
        // The whole operation, which MLIR notes on a verifier's error, says
        // nothing that the location does not.
        for (Diagnostic &note : diagnostic.getNotes())
          if (!StringRef(note.str()).starts_with("see current operation"))
            print(note.getLocation(), DiagnosticSeverity::Note, note.str());
        return success();
      }) {
  context.printOpOnDiagnostic(false);
}
