//===- Corpus.h - seeds of the fuzzer ---------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_FUZZ_CORPUS_H
#define POSENC_TEST_FUZZ_CORPUS_H

#include <string>
#include <vector>

namespace posenc::fuzz {

/// Seed inputs in each form that the tools read.
struct Corpus {
  /// config.json of published models.
  std::vector<std::string> configs;
  /// Modules as written in Inputs, printed in generic form, and as bytecode.
  std::vector<std::string> texts, generic, bytecode;
  /// Modules printed after each stage of the lowering.
  std::vector<std::string> stages;
  /// Modules of other compilers, from the tests of Import and Raise.
  std::vector<std::string> graphs;
};

/// Returns the config.json files of examples/configs.
std::vector<std::string> readConfigs();

/// Returns the corpus, which is created once from Inputs, examples/configs and
/// the colon-separated folders of POSENC_FUZZ_INPUTS.
const Corpus &getCorpus();

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_CORPUS_H
