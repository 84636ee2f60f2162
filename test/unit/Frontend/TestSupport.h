//===- TestSupport.h - configs for tests ------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_UNIT_FRONTEND_TESTSUPPORT_H
#define POSENC_TEST_UNIT_FRONTEND_TESTSUPPORT_H

#include "posenc/Frontend/ModelConfig.h"

#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

namespace posenc::frontend::test {

struct Outcome {
  std::optional<ModelConfig> config;
  llvm::SmallVector<Diagnostic> diags;

  unsigned count(Severity severity) const {
    return llvm::count_if(
        diags, [&](const Diagnostic &d) { return d.severity == severity; });
  }
  std::string printed() const {
    std::string text;
    llvm::raw_string_ostream os(text);
    printDiagnostics(os, diags);
    return text;
  }
};

/// Returns the context of the attributes of all configs.
inline mlir::MLIRContext &getContext() {
  static mlir::MLIRContext context;
  return context;
}

inline Outcome read(llvm::StringRef text, const ReadOptions &options = {}) {
  Outcome result;
  result.config =
      readModelConfig(getContext(), text, "config.json", result.diags, options);
  return result;
}

/// Returns the attribute as text without `#posenc.`, or an empty string for
/// none.
inline std::string print(Scaling scaling) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (scaling)
    scaling.print(os);
  return llvm::StringRef(text).split('.').second.str();
}

/// A text with one position marked by a caret, which is removed.
struct Marked {
  std::string text;
  unsigned line = 1, col = 1;

  explicit Marked(llvm::StringRef marked) {
    auto [before, after] = marked.split('^');
    text = before.str() + after.str();
    line = 1 + before.count('\n');
    col = 1 + before.size() - (before.rfind('\n') + 1);
  }
};

/// Returns a minimal config of a Llama model with additional members.
inline std::string llama(llvm::StringRef members) {
  std::string text = "{\n"
                     "  \"model_type\": \"llama\",\n"
                     "  \"hidden_size\": 4096,\n"
                     "  \"num_attention_heads\": 32";
  if (!members.empty())
    text += ",\n  " + members.str();
  return text + "\n}\n";
}

/// Succeeds if there is a diagnostic at the mark that quotes `key`.
inline testing::AssertionResult hasDiagnostic(const Outcome &outcome,
                                              Severity severity,
                                              const Marked &marked,
                                              llvm::StringRef key) {
  for (const Diagnostic &diag : outcome.diags)
    if (diag.severity == severity && diag.line == marked.line &&
        diag.col == marked.col &&
        llvm::StringRef(diag.message).contains("'" + key.str() + "'"))
      return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "no diagnostic at " << marked.line << ":" << marked.col
         << " mentions '" << key.str() << "' in\n"
         << outcome.printed() << "for\n"
         << marked.text;
}

} // namespace posenc::frontend::test

#endif // POSENC_TEST_UNIT_FRONTEND_TESTSUPPORT_H
