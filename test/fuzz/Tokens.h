//===- Tokens.h - damage to the tokens of a text ----------------*- C++ -*-===//
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

/// Removes, doubles, swaps or replaces a token, also by one of `other`.
std::string mutateToken(Random &random, llvm::StringRef text,
                        llvm::StringRef other, const Dictionary &dictionary);

/// Replaces a number or a word wherever it stands, so that what has to agree
/// still does and the input gets behind the first check.
std::string mutateEverywhere(Random &random, llvm::StringRef text);

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_TOKENS_H
