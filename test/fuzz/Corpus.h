//===- Corpus.h - the inputs that the fuzzer damages ------------*- C++ -*-===//
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

/// Seeds in each of the forms that the tools read.
struct Corpus {
  /// Configs of published models.
  std::vector<std::string> configs;
  /// Modules as written in Inputs, and as the printer writes them.
  std::vector<std::string> texts, generic, bytecode;
  /// Modules after each stage of the lowering, printed.
  std::vector<std::string> stages;
};

/// Made once. The folders of POSENC_FUZZ_INPUTS, separated by colons, are
/// read besides Inputs.
const Corpus &getCorpus();

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_CORPUS_H
