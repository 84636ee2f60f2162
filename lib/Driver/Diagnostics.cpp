//===- Diagnostics.cpp - printing of MLIR diagnostics ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Driver/Diagnostics.h"

#include "posenc/kernel/Text.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

static thread_local raw_ostream *redirected = nullptr;

void mlir::posenc::printEscaped(raw_ostream &os, StringRef text) {
  while (!text.empty()) {
    bool isSpace = text.front() == '\n' || text.front() == '\t';
    size_t length = isSpace ? 1 : posencGetPrintable(text.data(), text.size());
    if (length > 0)
      os << text.take_front(length);
    else
      os << "\\x" << llvm::toHex(text.take_front());
    text = text.drop_front(std::max<size_t>(length, 1));
  }
}

namespace {
/// Prints the messages of a thread.
class ErrorStream final : public raw_ostream {
public:
  ErrorStream() : raw_ostream(/*unbuffered=*/true) {}

private:
  void write_impl(const char *data, size_t size) override {
    mlir::posenc::printEscaped(redirected ? *redirected : llvm::errs(),
                               StringRef(data, size));
  }
  uint64_t current_pos() const override { return 0; }
};
} // namespace

raw_ostream &mlir::posenc::getErrorStream() {
  // Threads may share it, because it has no state.
  static ErrorStream stream;
  return stream;
}

namespace {
/// Appends what is printed to a string, and passes it on to another stream
/// unless that is null.
class CopyingStream final : public raw_ostream {
public:
  CopyingStream(std::string &text, raw_ostream *next)
      : raw_ostream(/*unbuffered=*/true), text(text), next(next) {}

private:
  void write_impl(const char *data, size_t size) override {
    text.append(data, size);
    if (next)
      next->write(data, size);
  }
  uint64_t current_pos() const override { return text.size(); }

  std::string &text;
  raw_ostream *next;
};
} // namespace

mlir::posenc::RedirectErrors::RedirectErrors(std::string &text, bool alsoPrint)
    : stream(std::make_unique<CopyingStream>(text, !alsoPrint ? nullptr
                                                   : redirected
                                                       ? redirected
                                                       : &llvm::errs())),
      previous(redirected) {
  redirected = stream.get();
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

std::string mlir::posenc::describeLocation(Location loc) {
  FileLineColLoc file = findFileLoc(loc);
  if (!file)
    return "";
  std::string text;
  llvm::raw_string_ostream os(text);
  os << file.getFilename().getValue();
  if (file.getLine() != 0)
    os << ':' << file.getLine() << ':' << file.getColumn();
  else if (NameLoc name = findNameLoc(loc))
    os << ": " << name.getName().getValue();
  return text;
}

static void print(Location loc, DiagnosticSeverity severity,
                  const std::string &text) {
  std::string message;
  llvm::raw_string_ostream os(message);
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
  os << StringRef(text).rtrim('\n');
  // A name with an end of line cannot start what looks like another message.
  auto lines = llvm::split(message, '\n');
  llvm::interleave(lines, mlir::posenc::getErrorStream(), "\n  ");
  mlir::posenc::getErrorStream() << '\n';
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

namespace {
/// Passes remarks to a function.
class RemarkStreamer final : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit RemarkStreamer(
      mlir::posenc::DiagnosticPrinter::RemarkRecorder record)
      : record(std::move(record)) {}
  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    record(remark);
  }

private:
  mlir::posenc::DiagnosticPrinter::RemarkRecorder record;
};
} // namespace

void mlir::posenc::DiagnosticPrinter::handleRemarks(RemarkRecorder record,
                                                    bool print) {
  remark::RemarkCategories categories;
  categories.passed = categories.missed = categories.analysis = "posenc";
  std::unique_ptr<RemarkStreamer> streamer;
  if (record)
    streamer = std::make_unique<RemarkStreamer>(std::move(record));
  // This fails for an invalid regular expression only.
  LogicalResult result = remark::enableOptimizationRemarks(
      context, std::move(streamer),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), categories,
      /*printAsEmitRemarks=*/print);
  assert(succeeded(result) && "expected a valid regular expression");
  (void)result;
}
