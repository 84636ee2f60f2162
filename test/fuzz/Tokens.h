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

/// Replaces a number or a word wherever it occurs. Sizes and types that must
/// agree still do, so more inputs pass the first checks.
std::string mutateEverywhere(Random &random, llvm::StringRef text);

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_TOKENS_H
