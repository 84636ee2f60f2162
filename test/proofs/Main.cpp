//===- Main.cpp - the program of make prove -------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PosencProofs [--quick] [--fault=NAME] [--jobs=N] SOURCES [GROUP...]
//
// Prints a table of the rules of each group and their proofs, and exits with 1
// if one is false or has none. With a fault, the code of the rules is wrong, so
// that each group must fail; exits with 1 if one does not.
//
//===----------------------------------------------------------------------===//

#include "Proofs.h"

#include "posenc/Registration/Registration.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <regex>

using namespace mlir::posenc::proofs;
using llvm::outs;
using llvm::StringRef;

bool Report::finish(const std::string &group, const std::string &folder) {
  std::vector<Answer> answers =
      decide(claims, options.jobs, folder, options.fault != Fault::None);
  for (auto [claim, answer] : llvm::zip_equal(claims, answers)) {
    Rule &rule = rules[claim.rule];
    rule.solved += !claim.hasSolution();
    if (!answer.empty() && !rule.failed++)
      rule.example = answer;
  }
  bool holds = !rules.empty();
  size_t cases = 0;
  outs() << "| " << group
         << " | solved | computed | result |\n|---|---|---|---|\n";
  for (const auto &[name, rule] : rules) {
    bool isProved = rule.computed + rule.solved && !rule.failed;
    holds &= isProved;
    cases += rule.computed + rule.solved;
    outs() << "| " << name << " | " << rule.solved << " | " << rule.computed
           << " | "
           << (isProved      ? "proved"
               : rule.failed ? "FALSE"
                             : "NO PROOF")
           << " |\n";
  }
  for (const auto &[name, rule] : rules)
    if (rule.failed)
      outs() << name << ": " << rule.failed << " cases, the first one "
             << rule.example << "\n";
  outs() << group << ": " << rules.size() << " rules, " << cases << " cases\n";
  return holds;
}

mlir::OwningOpRef<mlir::ModuleOp>
mlir::posenc::proofs::parse(mlir::MLIRContext &context,
                            const std::string &text) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module) {
    llvm::errs() << "a proof has a wrong module:\n" << text;
    std::exit(2);
  }
  return module;
}

std::string mlir::posenc::proofs::readSource(const Options &options,
                                             StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(options.source + "/" + path.str());
  if (!buffer) {
    llvm::errs() << "no file " << path << " in " << options.source << "\n";
    std::exit(2);
  }
  return (*buffer)->getBuffer().str();
}

void mlir::posenc::proofs::requireOperations(mlir::MLIRContext &context,
                                             Report &report, StringRef path,
                                             StringRef from, StringRef to,
                                             const std::string &prefix) {
  std::string source = readSource(report.options, path);
  size_t begin = source.find(from.str()), end = source.find(to.str(), begin);
  if (begin == std::string::npos || end == std::string::npos) {
    report.require(path.str() + " has no " + from.str());
    return;
  }
  // The name of the class, without the case of letters, is that of the
  // operation.
  std::map<std::string, std::string> names;
  for (mlir::RegisteredOperationName name : context.getRegisteredOperations()) {
    std::string plain = name.getStringRef().split('.').second.str() + "op";
    llvm::erase(plain, '_');
    if (llvm::is_contained({"arith", "math"}, name.getDialectNamespace()))
      names[plain] = name.getStringRef().str();
  }
  std::string text = source.substr(begin, end - begin);
  std::regex operation("(?:arith|math)::(\\w+Op)\\b");
  for (std::sregex_iterator it(text.begin(), text.end(), operation), last;
       it != last; ++it) {
    std::string type = (*it)[1].str(), name = names[StringRef(type).lower()];
    // Comparisons have a rule for each predicate.
    if (name != "arith.cmpi")
      report.require(prefix + (name.empty() ? type : name));
  }
}

using Prover = void (*)(mlir::MLIRContext &, Report &);
static const std::pair<StringRef, Prover> kGroups[] = {
    {"intervals", proveIntervals},
    {"mask-bounds", proveMaskBounds},
    {"visible-keys", proveVisibleKeys},
    {"mask-folds", proveMaskFolds},
    {"sizes", proveSizes},
    {"size-code", proveSizeCode},
    {"folds", proveFolds},
};

namespace {
struct TemporaryFolder {
  TemporaryFolder() {
    if (llvm::sys::fs::createUniqueDirectory("posenc-proofs", path))
      path.clear();
  }
  ~TemporaryFolder() {
    if (!path.empty())
      llvm::sys::fs::remove_directories(path);
  }
  llvm::SmallString<64> path;
};
} // namespace

int main(int argc, char **argv) {
  Options options;
  std::vector<StringRef> names;
  bool isUsed = true;
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (argument == "--quick")
      options.isQuick = true;
    else if (argument == "--fault=off-by-one")
      options.fault = Fault::OffByOne;
    else if (argument == "--fault=min-max")
      options.fault = Fault::MinMax;
    else if (argument == "--fault=check")
      options.fault = Fault::Check;
    else if (argument == "--fault=premises")
      options.fault = Fault::Premises;
    else if (argument.consume_front("--jobs="))
      isUsed &= !argument.getAsInteger(10, options.jobs) && options.jobs;
    else if (options.source.empty() && !argument.starts_with("-"))
      options.source = argument.str();
    else if (llvm::is_contained(llvm::make_first_range(kGroups), argument))
      names.push_back(argument);
    else
      isUsed = false;
  }
  if (!isUsed || options.source.empty()) {
    llvm::errs() << "usage: " << argv[0]
                 << " [--quick] [--fault=off-by-one|min-max|check|premises] "
                    "[--jobs=N] SOURCES [GROUP...]\n";
    return 2;
  }
  // Its destructor runs when a proof exits, too.
  static TemporaryFolder temporary;
  const llvm::SmallString<64> &folder = temporary.path;
  if (folder.empty()) {
    llvm::errs() << "no temporary folder\n";
    return 2;
  }
  mlir::DialectRegistry registry;
  mlir::posenc::registerAllDialects(registry);
  mlir::posenc::registerPosencPasses();
  int status = 0;
  for (const auto &[name, prove] : kGroups) {
    if (!names.empty() && !llvm::is_contained(names, name))
      continue;
    auto start = std::chrono::steady_clock::now();
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    // Rules refuse what they cannot do, and operations that are tried may be
    // wrong.
    mlir::ScopedDiagnosticHandler silence(
        &context, [](mlir::Diagnostic &) { return mlir::success(); });
    Report report(options);
    prove(context, report);
    bool holds = report.finish(name.str(), folder.str().str());
    std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    bool isRight = holds == (options.fault == Fault::None);
    outs() << name << ": " << (holds ? "all proved" : "not proved") << ", "
           << llvm::format("%.1f", seconds.count()) << " seconds\n\n";
    outs().flush();
    if (!isRight)
      status = 1;
  }
  outs() << (status                         ? "prove: failed\n"
             : options.fault == Fault::None ? "prove: every rule holds\n"
                                            : "prove: the fault is found in "
                                              "every group\n");
  return status;
}
