//===- Tokens.h - mutations of tokens ---------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_FUZZ_TOKENS_H
#define POSENC_TEST_FUZZ_TOKENS_H

#include "Mutator.h"

namespace posenc::fuzz {

/// Removes, duplicates, swaps or replaces a token, possibly with one of
/// `other`.
std::string mutateToken(Random &random, llvm::StringRef text,
                        llvm::StringRef other, const Dictionary &dictionary);

/// Replaces an operation, a predicate or a loop by another one of the same
/// form, or a value by another value of the text.
std::string mutateAlike(Random &random, llvm::StringRef text);

/// Repeats a token up to 500 times: deep nesting, high ranks and long lists.
std::string repeatToken(Random &random, llvm::StringRef text);

/// Replaces a number or a word wherever it occurs. Sizes and types that must
/// agree still do, so more inputs pass the first checks.
std::string mutateEverywhere(Random &random, llvm::StringRef text);

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_TOKENS_H
