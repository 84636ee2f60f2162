//===- SizeExpr.cpp - sizes as polynomials of symbols ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Support/SizeExpr.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

#include <functional>
#include <numeric>

using namespace posenc;

/// Sizes of models have few terms; this bounds those of malformed files.
static constexpr size_t kMaxTerms = 64;
static constexpr size_t kMaxDegree = 16;

SizeExpr::SizeExpr(int64_t constant) {
  if (constant)
    terms[{}] = constant;
}

SizeExpr SizeExpr::symbol(unsigned symbol) {
  SizeExpr result;
  result.terms[{symbol}] = 1;
  return result;
}

SizeExpr SizeExpr::invalid() {
  SizeExpr result;
  result.valid = false;
  return result;
}

std::optional<int64_t> SizeExpr::getConstant() const {
  if (!valid || terms.size() > 1)
    return std::nullopt;
  if (terms.empty())
    return 0;
  if (!terms.begin()->first.empty())
    return std::nullopt;
  return terms.begin()->second;
}

std::optional<unsigned> SizeExpr::getSymbol() const {
  if (!valid || terms.size() != 1)
    return std::nullopt;
  const auto &[monomial, coefficient] = *terms.begin();
  if (monomial.size() != 1 || coefficient != 1)
    return std::nullopt;
  return monomial.front();
}

llvm::SmallVector<unsigned> SizeExpr::getSymbols() const {
  llvm::SmallVector<unsigned> result;
  for (const auto &[monomial, coefficient] : terms)
    for (unsigned symbol : monomial)
      if (!llvm::is_contained(result, symbol))
        result.push_back(symbol);
  return result;
}

int64_t SizeExpr::getDivisor() const {
  uint64_t divisor = 0;
  for (const auto &[monomial, coefficient] : terms)
    divisor = std::gcd(divisor, llvm::AbsoluteValue(coefficient));
  return divisor > INT64_MAX ? 1 : static_cast<int64_t>(divisor);
}

/// Returns the term of the highest degree, and of these the last one. The order
/// is kept by products, so that the leading term of a product is the product of
/// the leading terms. The order of the map is not: 1 comes before x, and x*y
/// before y.
static const std::pair<const SizeExpr::Monomial, int64_t> &
getLeadingTerm(const std::map<SizeExpr::Monomial, int64_t> &terms) {
  return *llvm::max_element(terms, [](const auto &a, const auto &b) {
    return std::make_tuple(a.first.size(), std::cref(a.first)) <
           std::make_tuple(b.first.size(), std::cref(b.first));
  });
}

std::optional<SizeExpr> SizeExpr::divideExactly(const SizeExpr &divisor) const {
  if (!valid || !divisor.valid || divisor.terms.empty())
    return std::nullopt;
  // Divides by the leading term, repeatedly.
  const auto &[leading, factor] = getLeadingTerm(divisor.terms);
  SizeExpr rest = *this, quotient;
  for (size_t step = 0; !rest.terms.empty(); ++step) {
    const auto &[monomial, coefficient] = getLeadingTerm(rest.terms);
    if (step > kMaxTerms || (coefficient == INT64_MIN && factor == -1) ||
        coefficient % factor ||
        !std::includes(monomial.begin(), monomial.end(), leading.begin(),
                       leading.end()))
      return std::nullopt;
    Monomial left;
    std::set_difference(monomial.begin(), monomial.end(), leading.begin(),
                        leading.end(), std::back_inserter(left));
    SizeExpr term;
    term.terms[left] = coefficient / factor;
    quotient = quotient + term;
    rest = rest - term * divisor;
    if (!rest.valid || !quotient.valid)
      return std::nullopt;
  }
  return quotient;
}

bool SizeExpr::hasNoNegative(
    llvm::function_ref<bool(unsigned)> isNonNegative) const {
  return valid && llvm::all_of(terms, [&](const auto &term) {
           return term.second >= 0 && llvm::all_of(term.first, isNonNegative);
         });
}

void SizeExpr::add(const Monomial &monomial, int64_t coefficient) {
  auto [term, isNew] = terms.try_emplace(monomial, 0);
  std::optional<int64_t> sum = llvm::checkedAdd(term->second, coefficient);
  if (!sum || terms.size() > kMaxTerms || monomial.size() > kMaxDegree) {
    *this = invalid();
    return;
  }
  term->second = *sum;
  if (*sum == 0)
    terms.erase(term);
}

SizeExpr SizeExpr::operator+(const SizeExpr &other) const {
  if (!valid || !other.valid)
    return invalid();
  SizeExpr result = *this;
  for (const auto &[monomial, coefficient] : other.terms)
    if (result.valid)
      result.add(monomial, coefficient);
  return result;
}

SizeExpr SizeExpr::operator-(const SizeExpr &other) const {
  return *this + other * SizeExpr(-1);
}

SizeExpr SizeExpr::operator*(const SizeExpr &other) const {
  if (!valid || !other.valid)
    return invalid();
  SizeExpr result;
  for (const auto &[left, a] : terms)
    for (const auto &[right, b] : other.terms) {
      std::optional<int64_t> product = llvm::checkedMul(a, b);
      if (!product || !result.valid)
        return invalid();
      Monomial both(left.size() + right.size());
      std::merge(left.begin(), left.end(), right.begin(), right.end(),
                 both.begin());
      result.add(both, *product);
    }
  return result;
}
