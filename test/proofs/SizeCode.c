//===- SizeCode.c - the size code of kernels, for proofs ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled twice: with POSENC_WRAPS, sums and products wrap around, as they
// would without the check of overflow.

#include <stddef.h>
#include <stdint.h>

#ifdef POSENC_WRAPS
#define __builtin_add_overflow(a, b, result)                                   \
  (*(result) = (int64_t)((uint64_t)(a) + (uint64_t)(b)), 0)
#define __builtin_mul_overflow(a, b, result)                                   \
  (*(result) = (int64_t)((uint64_t)(a) * (uint64_t)(b)), 0)
#define NAME(name) name##Wraps
#else
#define NAME(name) name
#endif

#pragma clang diagnostic ignored "-Wunused-function"
#include "Sizes.h"

#define NUM_WORDS 8

/* Evaluates a polynomial: an instruction and a value each. */
int NAME(posencProofPolynomial)(const int64_t *code, int64_t *words,
                                int64_t *result) {
  struct Description description = {0};
  struct Call call = {.description = &description, .words = words};
  description.code = code;
  return evaluate(&call, 0, result) == kHasValue;
}

/* Evaluates a term of the words, which is the word behind them. */
int NAME(posencProofTerm)(int64_t kind, const int64_t values[4],
                          int64_t *result) {
  int64_t words[NUM_WORDS] = {values[0], values[1], values[2], values[3]};
  struct Code code[8];
  struct Term term = {kind, {0, 4, 8, 12}};
  for (int64_t i = 0; i < 4; ++i) {
    code[2 * i] = (struct Code){kSizeWord, i};
    code[2 * i + 1] = (struct Code){kSizeEnd, 0};
  }
  struct Description description = {0};
  struct Call call = {.description = &description, .words = words};
  description.code = (const int64_t *)code;
  description.terms = &term;
  description.numTerms = 1;
  description.numSizes = 4;
  int isGood = evaluateTerms(&call);
  *result = words[4];
  return isGood;
}

/* Returns whether a call passes the check of a relation of two words. */
int NAME(posencProofRelation)(int64_t kind, int64_t left, int64_t right) {
  int64_t words[NUM_WORDS] = {left, right};
  const int64_t code[] = {kSizeWord, 0, kSizeEnd, 0, kSizeWord, 1, kSizeEnd, 0};
  struct Relation relation = {kind, 0, 4, 0, 0};
  struct Description description = {0};
  struct Call call = {.description = &description, .words = words};
  description.code = code;
  description.relations = &relation;
  description.numRelations = 1;
  description.numSizes = 2;
  description.names = "";
  return checkSizes(&call) == kEntryOk;
}

/* The instructions, which tests of C++ do not see. */
const int64_t NAME(posencProofCodes)[] = {
    kSizeEnd, kSizeConstant, kSizeWord, kSizeElement, kSizeAdd, kSizeMultiply};
