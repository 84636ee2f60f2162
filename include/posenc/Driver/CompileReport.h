//===- CompileReport.h - report of a compilation as HTML --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_DRIVER_COMPILEREPORT_H
#define POSENC_DRIVER_COMPILEREPORT_H

#include "posenc/Driver/Diagnostics.h"
#include "posenc/Driver/Input.h"
#include "posenc/Target/KernelCode.h"

#include "llvm/ADT/StringMap.h"

#include <map>

namespace mlir::posenc {

/// A remark of a pass, with all that the report shows of it.
struct ReportRemark {
  /// passed, missed, failure or analysis.
  std::string kind;
  std::string pass, function, text;
  /// `file:line:column` or `file: node`; empty if it is not known.
  std::string location;
  /// The line of the input, if the location is one of its text; otherwise 0.
  unsigned sourceLine = 0;
  /// The CPU whose code the remark is about; empty for all.
  std::string target;
};

/// The text of a module at one stage.
struct ReportStage {
  /// The name, in ids and links.
  std::string name;
  std::string title, text;
  /// The first line, from 1, of an operation at each location.
  llvm::StringMap<unsigned> lines;
};

/// A function of the compiled module.
struct ReportFunction {
  std::string type;
  /// The description of its memory on each CPU.
  std::vector<std::string> memory;
  /// Bytes of machine code without that which all functions share; 0 if there
  /// is none.
  uint64_t codeBytes = 0;
  /// Bytes of stack that a call needs.
  std::optional<int64_t> stackBytes;
};

/// The estimated time of an operation, relative to that of others.
struct ReportTime {
  std::string function;
  /// The operator of a node, or the name of an operation.
  std::string kind;
  /// As in a remark.
  std::string location;
  /// Whether it becomes a loop that is not vectorized.
  bool isScalar = false;
  double time = 0;
};

/// Records a compilation and writes an HTML file about it: the command, what
/// was found and what was left alone, remarks, messages, the functions, and the
/// module at each stage. The file refers to no other, and has no scripts.
class CompileReport {
public:
  /// `input` is the path of the input, and `command` the command line.
  CompileReport(StringRef input, StringRef command);

  /// Records the remarks of a context, and also prints them if `print` is set.
  /// The report must outlive the context.
  void watch(MLIRContext &context, DiagnosticPrinter &diagnostics, bool print);
  /// Returns the hooks that record the loading of the input.
  LoadHooks getLoadHooks();

  /// Names the kind of the output and the CPUs and GPUs it is for.
  void setOutput(StringRef kind, const CodeOptions &options);
  /// Records a loaded module, and the stages up to `last` of a copy of it for
  /// each CPU. Errors of a stage are left to the compilation, which has them
  /// as well.
  void addStages(ModuleOp module, Stage last, const CodeOptions &options);
  /// Records the text of an output that is none of these stages.
  void addOutput(StringRef text);
  /// Records an object file: the bytes of its functions, and their stack.
  void addObject(StringRef object);
  /// Records the metadata of a library: the stack of its functions.
  void addMetadata(StringRef json);

  /// Returns the HTML. `messages` are the errors, warnings and remarks that
  /// were printed.
  std::string write(StringRef messages, bool isCompiled) const;
  /// Writes the HTML to a file. Prints an error if that fails.
  LogicalResult save(StringRef path, StringRef messages, bool isCompiled) const;

private:
  void addStage(StringRef name, const Twine &title, ModuleOp module);
  void addFunctions(ModuleOp module);
  void addMemory(ModuleOp module, StringRef target);
  ReportFunction *findOwner(StringRef symbol);
  void record(const remark::detail::Remark &remark);

  std::string input, command, inputKind, outputKind;
  std::vector<std::string> targets;
  std::vector<ReportRemark> remarks;
  std::vector<ReportStage> stages;
  std::map<std::string, ReportFunction> functions;
  std::vector<ReportTime> times;
  /// The numbers of posenc operations by name, in the module as it was
  /// imported and as it was raised.
  std::map<std::string, std::pair<unsigned, unsigned>> numOps;
  /// The remarks that are recorded: all, those that are not there yet, or none.
  enum class Recording { All, New, None };
  Recording recording = Recording::All;
  std::string currentTarget;
};

} // namespace mlir::posenc

#endif // POSENC_DRIVER_COMPILEREPORT_H
