//===- Diagnostics.cpp - printing of MLIR diagnostics ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Driver/Diagnostics.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

static thread_local raw_ostream *redirected = nullptr;

raw_ostream &mlir::posenc::getErrorStream() {
  return redirected ? *redirected : llvm::errs();
}

mlir::posenc::RedirectErrors::RedirectErrors(std::string &text)
    : stream(text), previous(redirected) {
  redirected = &stream;
}

mlir::posenc::RedirectErrors::~RedirectErrors() { redirected = previous; }

/// Returns the first file location within a location; null if there is none.
static FileLineColLoc findFileLoc(Location loc) {
  FileLineColLoc found;
  loc->walk([&](Location nested) {
    found = dyn_cast<FileLineColLoc>(nested);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

/// Returns the first name within a location; null if there is none.
static NameLoc findNameLoc(Location loc) {
  NameLoc found;
  loc->walk([&](Location nested) {
    found = dyn_cast<NameLoc>(nested);
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
  raw_ostream &os = mlir::posenc::getErrorStream();
  FileLineColLoc file = findFileLoc(loc);
  if (file)
    os << file.getFilename().getValue() << ':';
  // Binary files have no lines, but names of nodes.
  bool isBinary = file && file.getLine() == 0;
  if (file && !isBinary)
    os << file.getLine() << ':' << file.getColumn() << ':';
  os << (file ? " " : "") << getSeverity(severity) << ": ";
  if (NameLoc name = isBinary ? findNameLoc(loc) : NameLoc())
    os << name.getName().getValue() << ": ";
  os << text << "\n";
}

mlir::posenc::DiagnosticPrinter::DiagnosticPrinter(MLIRContext &context)
    : handler(
          &context,
          [](Diagnostic &diagnostic) {
            print(diagnostic.getLocation(), diagnostic.getSeverity(),
                  diagnostic.str());
            // Skips the note with the whole operation that MLIR attaches to
            // verifier errors: the location already identifies the operation.
            for (Diagnostic &note : diagnostic.getNotes())
              if (!StringRef(note.str()).starts_with("see current operation"))
                print(note.getLocation(), DiagnosticSeverity::Note, note.str());
            return success();
          }),
      context(context) {
  context.printOpOnDiagnostic(false);
}

void mlir::posenc::DiagnosticPrinter::printRemarks() {
  remark::RemarkCategories categories;
  categories.passed = categories.missed = categories.analysis = "posenc";
  // This fails for an invalid regular expression only.
  LogicalResult result = remark::enableOptimizationRemarks(
      context, nullptr, std::make_unique<remark::RemarkEmittingPolicyAll>(),
      categories, /*printAsEmitRemarks=*/true);
  assert(succeeded(result) && "expected a valid regular expression");
  (void)result;
}
