//===- Proofs.h - rules of the compiler and their proofs --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rule is proved by running the compiler's own code, on symbols whose claims
// a solver decides, or on all values of a small domain. A rule that is found in
// the code and has no case fails, and so does a rule that is false.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PROOFS_PROOFS_H
#define POSENC_TEST_PROOFS_PROOFS_H

#include "Smt.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MathExtras.h"

#include <map>
#include <set>

namespace mlir::posenc::proofs {

using Fault = Encoder::Fault;

struct Options {
  /// Leaves out most widths and constants, so that all rules take seconds.
  bool isQuick = false;
  /// A fault of the code, which must be found.
  Fault fault = Fault::None;
  unsigned jobs = 1;
  /// The root of the sources.
  std::string source;
};

/// Collects the cases of rules.
class Report {
public:
  explicit Report(const Options &options) : options(options) {}

  /// A rule of the code, which needs a case.
  void require(const std::string &rule) { rules.try_emplace(rule); }
  /// A case that the solver decides later. In a quick run, some of the first
  /// of each rule are left out, and most of the others. The premises of some,
  /// of the first case only if others may be `impossible`, must have a
  /// solution, so that the claim says something.
  void add(Claim claim, bool impossible = false) {
    Rule &rule = rules[claim.rule];
    bool isSome = llvm::isPowerOf2_64(++rule.added);
    bool isWrong = options.fault == Fault::Premises;
    if (isWrong)
      claim.premises += "(assert false)\n";
    // Any claim that is false shows another fault.
    bool isFirst = options.isQuick || impossible;
    if ((isFirst ? rule.added == 1 : isSome) &&
        (isWrong || options.fault == Fault::None))
      claims.push_back({claim.rule, claim.premises, /*denial=*/""});
    if (isSome || !options.isQuick)
      claims.push_back(std::move(claim));
  }
  /// A case that was computed. `explain` describes it if it fails.
  void check(const std::string &rule, bool holds,
             llvm::function_ref<std::string()> explain) {
    Rule &entry = rules[rule];
    ++entry.computed;
    if (!holds && !entry.failed++)
      entry.example = explain();
  }
  /// Decides all claims and prints the table of the group. Returns whether all
  /// rules hold.
  bool finish(const std::string &group, const std::string &folder);

  const Options &options;

private:
  struct Rule {
    size_t added = 0, computed = 0, solved = 0, failed = 0;
    std::string example;
  };
  std::map<std::string, Rule> rules;
  std::vector<Claim> claims;
};

/// Parses a module of text that is right.
mlir::OwningOpRef<mlir::ModuleOp> parse(mlir::MLIRContext &context,
                                        const std::string &text);
/// Returns the text of a file of the sources.
std::string readSource(const Options &options, llvm::StringRef path);

/// Requires a rule for each operation of arith and math that a part of a file
/// of the sources names, from the text `from` to the text `to`. The name of a
/// rule is that of the operation after `prefix`.
void requireOperations(mlir::MLIRContext &context, Report &report,
                       llvm::StringRef path, llvm::StringRef from,
                       llvm::StringRef to, const std::string &prefix = "");

// Each proves the rules of a part of the compiler.

void proveIntervals(mlir::MLIRContext &context, Report &report);
void proveMaskBounds(mlir::MLIRContext &context, Report &report);
void proveVisibleKeys(mlir::MLIRContext &context, Report &report);
void proveMaskFolds(mlir::MLIRContext &context, Report &report);
void proveSizes(mlir::MLIRContext &context, Report &report);
void proveSizeCode(mlir::MLIRContext &context, Report &report);
void proveFolds(mlir::MLIRContext &context, Report &report);

} // namespace mlir::posenc::proofs

#endif // POSENC_TEST_PROOFS_PROOFS_H
