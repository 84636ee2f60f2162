//===- SizeCodeProofs.cpp - the size code of kernels ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C code that entry points evaluate is run on all combinations of numbers
// around 0 and at both ends of 64 bits, and compared with integers of 128 bits.
//
//===----------------------------------------------------------------------===//

#include "Proofs.h"

#include "posenc/IR/Posenc.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::proofs;

extern "C" {
int posencProofPolynomial(const int64_t *code, int64_t *words, int64_t *result);
int posencProofPolynomialWraps(const int64_t *code, int64_t *words,
                               int64_t *result);
int posencProofTerm(int64_t kind, const int64_t *values, int64_t *result);
int posencProofRelation(int64_t kind, int64_t left, int64_t right);
extern const int64_t posencProofCodes[];
}

using Wide = __int128;

static bool fits(Wide value) {
  return value == static_cast<Wide>(static_cast<int64_t>(value));
}

/// Numbers around 0 and at both ends.
static std::vector<int64_t> getNumbers(const Report &report) {
  std::vector<int64_t> numbers;
  int64_t near = report.options.isQuick ? 3 : 6;
  for (int64_t i = -near; i <= near; ++i)
    numbers.push_back(i);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t number : {INT64_MAX - i, INT64_MIN + i, (int64_t{1} << 32) - i,
                           -(int64_t{1} << 31) + i})
      numbers.push_back(number);
  return numbers;
}

/// The value of a term; nullopt without a positive divisor.
static std::optional<int64_t> evaluate(TermKind kind, const int64_t *x) {
  switch (kind) {
  case TermKind::Value:
    return x[0];
  case TermKind::Quotient:
  case TermKind::Remainder: {
    if (x[1] <= 0)
      return std::nullopt;
    Wide floor = Wide(x[0]) / x[1];
    while (floor * x[1] > x[0])
      --floor;
    return kind == TermKind::Quotient
               ? static_cast<int64_t>(floor)
               : static_cast<int64_t>(x[0] - floor * x[1]);
  }
  case TermKind::Min:
    return x[0] <= x[1] ? x[0] : x[1];
  case TermKind::Max:
    return x[0] <= x[1] ? x[1] : x[0];
  case TermKind::IfLess:
    return x[0] < x[1] ? x[2] : x[3];
  case TermKind::IfEqual:
    return x[0] == x[1] ? x[2] : x[3];
  }
  return std::nullopt;
}

static void proveTerms(Report &report) {
  std::vector<int64_t> numbers = getNumbers(report);
  Fault fault = report.options.fault;
  for (unsigned i = 0; i <= getMaxEnumValForTermKind(); ++i) {
    TermKind kind = static_cast<TermKind>(i);
    std::string rule = "term " + stringifyTermKind(kind).str();
    report.require(rule);
    for (int64_t a : numbers)
      for (int64_t c : numbers) {
        int64_t values[4] = {a, c, 1234567, -INT64_MAX};
        int64_t result = 0, run = i;
        if (fault == Fault::MinMax && kind == TermKind::Min)
          run = static_cast<int64_t>(TermKind::Max);
        bool isDefined = posencProofTerm(run, values, &result);
        std::optional<int64_t> expected = evaluate(kind, values);
        if (fault == Fault::OffByOne && isDefined)
          result ^= 1;
        report.check(rule,
                     isDefined == expected.has_value() &&
                         (!expected || *expected == result),
                     [&] {
                       return "of " + std::to_string(a) + " and " +
                              std::to_string(c) + " is " +
                              std::to_string(result);
                     });
      }
  }
}

static void provePolynomials(Report &report) {
  std::vector<int64_t> numbers = getNumbers(report);
  auto run = report.options.fault == Fault::Check ? posencProofPolynomialWraps
                                                  : posencProofPolynomial;
  const int64_t *codes = posencProofCodes;
  enum { End, Constant, Word, Element, Add, Multiply };
  for (bool isSum : {true, false}) {
    std::string rule = isSum ? "polynomial sum" : "polynomial product";
    for (int64_t a : numbers)
      for (int64_t c : numbers)
        for (int64_t d : {int64_t{-1}, int64_t{0}, int64_t{1}, INT64_MAX}) {
          // (a op c) + d, with one word and two constants.
          int64_t words[8] = {a};
          const int64_t code[] = {codes[Word],
                                  0,
                                  codes[Constant],
                                  c,
                                  codes[isSum ? Add : Multiply],
                                  0,
                                  codes[Constant],
                                  d,
                                  codes[Add],
                                  0,
                                  codes[End],
                                  0};
          Wide inner = isSum ? Wide(a) + c : Wide(a) * c;
          bool isDefined = fits(inner) && fits(inner + d);
          int64_t result = 0;
          bool hasResult = run(code, words, &result);
          report.check(
              rule,
              hasResult == isDefined && (!isDefined || inner + d == result),
              [&] {
                return "of " + std::to_string(a) + ", " + std::to_string(c) +
                       " and " + std::to_string(d) + " is " +
                       std::to_string(result);
              });
        }
  }
}

static void proveRelations(Report &report) {
  std::vector<int64_t> numbers = getNumbers(report);
  for (unsigned i = 0; i <= getMaxEnumValForRelationKind(); ++i) {
    RelationKind kind = static_cast<RelationKind>(i);
    std::string rule = "relation " + stringifyRelationKind(kind).str();
    report.require(rule);
    for (int64_t a : numbers)
      for (int64_t c : numbers)
        report.check(rule,
                     posencProofRelation(i, a, c) ==
                         (kind == RelationKind::Equal ? a == c : a <= c),
                     [&] {
                       return "of " + std::to_string(a) + " and " +
                              std::to_string(c);
                     });
  }
}

void mlir::posenc::proofs::proveSizeCode(MLIRContext &, Report &report) {
  proveTerms(report);
  provePolynomials(report);
  proveRelations(report);
}
