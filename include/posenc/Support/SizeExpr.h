//===- SizeExpr.h - sizes as polynomials of symbols -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_SUPPORT_SIZEEXPR_H
#define POSENC_SUPPORT_SIZEEXPR_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace posenc {

/// A polynomial of symbols with integer coefficients, in canonical form: two
/// expressions that are equal for all values of the symbols compare equal. One
/// whose coefficients overflow 64 bits, or that has too many terms, is invalid,
/// and so is the result of arithmetic on it.
class SizeExpr {
public:
  /// The symbols of a product, sorted. A power repeats its symbol.
  using Monomial = std::vector<unsigned>;

  SizeExpr(int64_t constant = 0);
  static SizeExpr symbol(unsigned symbol);
  static SizeExpr invalid();

  /// The coefficients, none of which is 0.
  const std::map<Monomial, int64_t> &getTerms() const { return terms; }
  bool isValid() const { return valid; }
  /// Returns the value of an expression without symbols.
  std::optional<int64_t> getConstant() const;
  bool isConstant(int64_t value) const { return getConstant() == value; }
  /// Returns the symbol if the expression is a single symbol.
  std::optional<unsigned> getSymbol() const;
  llvm::SmallVector<unsigned> getSymbols() const;
  /// Returns the max common divisor of all coefficients; 0 if there are
  /// none.
  int64_t getDivisor() const;
  /// Returns the quotient if the division has no remainder for all symbols.
  std::optional<SizeExpr> divideExactly(const SizeExpr &divisor) const;
  /// Whether no coefficient is negative, and no symbol by `isNonNegative`.
  bool hasNoNegative(llvm::function_ref<bool(unsigned)> isNonNegative) const;

  SizeExpr operator+(const SizeExpr &other) const;
  SizeExpr operator-(const SizeExpr &other) const;
  SizeExpr operator*(const SizeExpr &other) const;
  /// An invalid expression is equal to none.
  bool operator==(const SizeExpr &other) const {
    return valid && other.valid && terms == other.terms;
  }
  bool operator!=(const SizeExpr &other) const { return !(*this == other); }
  /// An order for maps. Invalid expressions are equivalent to each other.
  bool operator<(const SizeExpr &other) const {
    return std::tie(valid, terms) < std::tie(other.valid, other.terms);
  }

private:
  void add(const Monomial &monomial, int64_t coefficient);

  std::map<Monomial, int64_t> terms;
  bool valid = true;
};

} // namespace posenc

#endif // POSENC_SUPPORT_SIZEEXPR_H
