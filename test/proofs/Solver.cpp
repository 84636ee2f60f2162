//===- Solver.cpp - claims that z3 decides --------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Smt.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <thread>

using namespace mlir::posenc::proofs;
using llvm::StringRef;

/// Claims of one process, so that its start is shared.
static constexpr size_t kBatch = 50;
/// Milliseconds for one claim. Most take less than 100; a busy machine needs
/// more.
static constexpr unsigned kTimeout = 300000;

/// Runs z3 on a text. Returns what it prints.
static std::string solve(const std::string &text, const std::string &file) {
  static const llvm::ErrorOr<std::string> program =
      llvm::sys::findProgramByName("z3");
  if (!program)
    return "error: no program z3 (the Debian package z3)";
  std::string output = file + ".txt";
  {
    std::error_code code;
    llvm::raw_fd_ostream stream(file, code);
    stream << text;
  }
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(output),
                                          StringRef(output)};
  // The limit of each claim does not hold while z3 reads. `SecondsToWait` is
  // one alarm of the whole process, which jobs would share.
  std::string limit = "-T:" + std::to_string((kBatch + 1) * kTimeout / 1000);
  llvm::sys::ExecuteAndWait(*program, {*program, "-smt2", limit, file},
                            std::nullopt, redirects);
  auto buffer = llvm::MemoryBuffer::getFile(output);
  std::string printed =
      buffer ? (*buffer)->getBuffer().str() : "error: z3 printed nothing";
  llvm::sys::fs::remove(output);
  llvm::sys::fs::remove(file);
  return printed;
}

static std::string getText(const Claim &claim) {
  return "(reset)\n(set-option :timeout " + std::to_string(kTimeout) + ")\n" +
         claim.premises + claim.denial + "(check-sat)\n";
}

/// Returns the numbers of a counterexample, without those that are derived.
static Answer explain(const Claim &claim, const std::string &file) {
  std::string model =
      solve("(set-option :pp.single_line true)\n" + claim.premises +
                claim.denial + "(check-sat)\n(get-model)\n",
            file);
  std::string text = "false for";
  llvm::SmallVector<StringRef> lines;
  StringRef(model).split(lines, '\n');
  for (StringRef line : lines) {
    line = line.trim();
    if (!line.consume_front("(define-fun ") || line.starts_with("v") ||
        line.starts_with("fold-rec"))
      continue;
    text += " " + line.rtrim(')').str() + ";";
  }
  return text;
}

std::vector<Answer> mlir::posenc::proofs::decide(llvm::ArrayRef<Claim> claims,
                                                 unsigned jobs,
                                                 const std::string &folder,
                                                 bool untilFalse) {
  std::vector<Answer> answers(claims.size(), untilFalse ? "" : "not decided");
  std::atomic<size_t> next{0};
  std::atomic<bool> isDone{false};
  auto work = [&](unsigned worker) {
    std::string file = folder + "/claims-" + std::to_string(worker) + ".smt2";
    for (size_t first;
         !isDone && (first = next.fetch_add(kBatch)) < claims.size();) {
      llvm::ArrayRef<Claim> batch =
          claims.slice(first, std::min(kBatch, claims.size() - first));
      std::string text;
      for (const Claim &claim : batch)
        text += getText(claim);
      std::string printed = solve(text, file);
      llvm::SmallVector<StringRef> lines;
      StringRef(printed).split(lines, '\n', -1, /*KeepEmpty=*/false);
      for (auto [i, claim] : llvm::enumerate(batch)) {
        StringRef line = i < lines.size() ? lines[i] : "no answer";
        // An error has lines of its own, so each claim is tried alone.
        std::string alone;
        if (lines.size() != batch.size()) {
          alone = solve(getText(claim), file);
          line = StringRef(alone).trim();
        }
        if (line == (claim.hasSolution() ? "sat" : "unsat")) {
          answers[first + i].clear();
        } else if (line == "unsat") {
          answers[first + i] = "has premises without a solution";
        } else if (line == "sat" && untilFalse) {
          answers[first + i] = "false";
          isDone = true;
        } else if (line == "sat") {
          answers[first + i] = explain(claim, file);
        } else {
          answers[first + i] = "not decided: " + line.str();
        }
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < jobs; ++i)
    threads.emplace_back(work, i);
  for (std::thread &thread : threads)
    thread.join();
  return answers;
}
