//===- Sizes.h - terms and relations of sizes ---------------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_SIZES_H
#define POSENC_KERNEL_SIZES_H

#include "Report.h"

/* The values of TermKind and RelationKind in dialect/posenc/IR/AbiAttrs.td. */
enum { kValue, kQuotient, kRemainder, kMin, kMax, kIfLess, kIfEqual };
enum { kEqual, kAtMost };

/* Whether a polynomial or term has a value. */
enum Known { kNoValue, kHasValue, kUnknownValue };

/* Returns the index of the word of dynamic size `number`. */
static int64_t getSizeWord(const struct Description *description,
                           int64_t number) {
  return getNumArguments(description) + number;
}

/* Reads the only element of an input of i32 or i64. */
static enum Known readElement(const struct Call *call, int64_t number,
                              int64_t *result) {
  const char *data = (const char *)call->words[number];
  int32_t narrow;
  if (call->known && !call->known[number])
    return kUnknownValue;
  if (!data)
    return kNoValue;
  if (call->description->arguments[number].bits == 64) {
    __builtin_memcpy(result, data, sizeof(*result));
    return kHasValue;
  }
  __builtin_memcpy(&narrow, data, sizeof(narrow));
  *result = narrow;
  return kHasValue;
}

/* Evaluates a polynomial of words and elements. It has no value if an
 * intermediate one overflows 64 bits. */
static enum Known evaluate(const struct Call *call, int64_t offset,
                           int64_t *result) {
  /* The compiler limits the depth of polynomials. */
  int64_t stack[102];
  int depth = 0;
  const struct Code *code =
      (const struct Code *)(call->description->code + offset);
  for (; code->action != kSizeEnd; ++code) {
    if (code->action == kSizeConstant) {
      stack[depth++] = code->value;
      continue;
    }
    if (code->action == kSizeWord) {
      if (call->known && !call->known[code->value])
        return kUnknownValue;
      stack[depth++] = call->words[code->value];
      continue;
    }
    if (code->action == kSizeElement) {
      enum Known known = readElement(call, code->value, &stack[depth++]);
      if (known != kHasValue)
        return known;
      continue;
    }
    int64_t right = stack[--depth], *left = &stack[depth - 1];
    if (code->action == kSizeAdd ? __builtin_add_overflow(*left, right, left)
                                 : __builtin_mul_overflow(*left, right, left))
      return kNoValue;
  }
  *result = stack[0];
  return kHasValue;
}

/* Evaluates a term. It has no value if one of its polynomials overflows or a
 * divisor is not positive. */
static enum Known evaluateTerm(const struct Call *call, const struct Term *term,
                               int64_t *result) {
  int64_t values[4];
  int64_t count = term->kind == kValue ? 1 : term->kind >= kIfLess ? 4 : 2;
  for (int64_t i = 0; i < count; ++i) {
    enum Known known = evaluate(call, term->operands[i], &values[i]);
    if (known != kHasValue)
      return known;
  }
  int64_t a = values[0], b = values[1];
  switch (term->kind) {
  case kValue:
    *result = a;
    return kHasValue;
  case kQuotient:
  case kRemainder:
    if (b <= 0)
      return kNoValue;
    if (term->kind == kQuotient)
      *result = a / b - (a % b < 0);
    else
      *result = a % b + (a % b < 0 ? b : 0);
    return kHasValue;
  case kMin:
    *result = a < b ? a : b;
    return kHasValue;
  case kMax:
    *result = a > b ? a : b;
    return kHasValue;
  case kIfLess:
    *result = values[a < b ? 2 : 3];
    return kHasValue;
  default:
    *result = values[a == b ? 2 : 3];
    return kHasValue;
  }
}

/* Sets the words of the terms. Returns 0 if one of them has no value. */
static int evaluateTerms(const struct Call *call) {
  const struct Description *description = call->description;
  int64_t terms = getSizeWord(description, description->numSizes);
  int isGood = 1;
  for (int64_t i = 0; i < description->numTerms; ++i) {
    int64_t *term = &call->words[terms + i];
    enum Known known = evaluateTerm(call, &description->terms[i], term);
    if (known != kHasValue)
      *term = 0;
    if (call->known)
      call->known[terms + i] = known != kUnknownValue;
    isGood &= known != kNoValue;
  }
  return isGood;
}

/* Sets the words of the terms and checks the relations that are known. */
static int32_t checkSizes(struct Call *call) {
  const struct Description *description = call->description;
  for (int64_t i = 0; i < description->numInputs; ++i)
    if (description->arguments[i].isSize && !call->words[i] && !call->known)
      return fail(call, kEntryNull, "the data of %n is NULL", VALUES(i));
  /* Reported after the relations, whose messages may explain the reason. */
  int hasTerms = evaluateTerms(call);
  for (int64_t i = 0; i < description->numRelations; ++i) {
    const struct Relation *relation = &description->relations[i];
    int64_t left, right;
    enum Known isLeft = evaluate(call, relation->left, &left);
    enum Known isRight = evaluate(call, relation->right, &right);
    if (isLeft == kNoValue || isRight == kNoValue)
      return fail(call, kEntrySize, "sizes multiply beyond 63 bits", NULL);
    if (isLeft == kUnknownValue || isRight == kUnknownValue ||
        (relation->kind == kEqual ? left == right : left <= right))
      continue;
    int isSwapped = relation->isSwapped != 0;
    return fail(call, kEntryShape, description->names + relation->message,
                VALUES(isSwapped ? right : left, isSwapped ? left : right));
  }
  if (!hasTerms)
    return fail(call, kEntrySize, "sizes multiply beyond 63 bits", NULL);
  return kEntryOk;
}

#endif
