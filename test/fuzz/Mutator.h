//===- Mutator.h - seeded damage to texts and bytes -------------*- C++ -*-===//
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

/// SplitMix64: the same numbers with every standard library.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next();
  /// A number in [0, bound); 0 for a bound of 0.
  size_t below(size_t bound) { return bound ? next() % bound : 0; }
  bool chance(unsigned outOf) { return below(outOf) == 0; }
  template <typename T> const T &pick(llvm::ArrayRef<T> from) {
    return from[below(from.size())];
  }

private:
  uint64_t state;
};

/// What replaces a token: the words of a language and its numbers.
struct Dictionary {
  llvm::ArrayRef<llvm::StringLiteral> numbers, words;
};
extern const Dictionary jsonDictionary, mlirDictionary;

/// A few changes to one of the texts, of bytes, tokens or lines; parts of the
/// others may be spliced in.
std::string mutateText(Random &random, llvm::ArrayRef<std::string> texts,
                       const Dictionary &dictionary);

/// A few changed, lost or doubled bytes of one of the files.
std::string mutateBytes(Random &random, llvm::ArrayRef<std::string> files);

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_MUTATOR_H
