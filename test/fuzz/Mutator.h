//===- Mutator.h - mutations of texts and bytes -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_FUZZ_MUTATOR_H
#define POSENC_TEST_FUZZ_MUTATOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace posenc::fuzz {

/// The generator SplitMix64, which gives the same numbers with every standard
/// library.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next();
  /// Returns a number in [0, bound), or 0 for a bound of 0.
  size_t below(size_t bound) { return bound ? next() % bound : 0; }
  /// Returns true with a probability of 1/outOf.
  bool chance(unsigned outOf) { return below(outOf) == 0; }
  template <typename T> const T &pick(llvm::ArrayRef<T> from) {
    return from[below(from.size())];
  }

private:
  uint64_t state;
};

/// Replacements for tokens: numbers and words of a language.
struct Dictionary {
  llvm::ArrayRef<llvm::StringLiteral> numbers, words;
};
extern const Dictionary jsonDictionary, mlirDictionary;

/// Changes a few bytes, tokens or lines of one of the texts, or splices in
/// parts of the others.
std::string mutateText(Random &random, llvm::ArrayRef<std::string> texts,
                       const Dictionary &dictionary);

/// The same, but most changes leave the form of the text as it is, so that more
/// of them get beyond the parser. Sometimes repeats a token many times.
std::string mutateGraph(Random &random, llvm::ArrayRef<std::string> texts,
                        const Dictionary &dictionary);

/// Changes, removes or duplicates a few bytes of one of the files.
std::string mutateBytes(Random &random, llvm::ArrayRef<std::string> files);

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_MUTATOR_H
