//===- Sizes.cpp - symbolic sizes of tensors ------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sizes.h"

#include "Arithmetic.h"

#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::posenc;

/// Limits the nesting of terms in malformed files.
static constexpr unsigned kMaxDepth = 64;

Size SizeTable::createSymbol(Value value, bool isNonNegative) {
  symbols.push_back(
      {value, isNonNegative, Term::Min, Size(), Size(), 0, /*isTerm=*/false});
  return Size::symbol(symbols.size() - 1);
}

/// Computes a term of constants; nullopt if the divisor is not positive.
static std::optional<int64_t> compute(SizeTable::Term kind, int64_t left,
                                      int64_t right) {
  switch (kind) {
  case SizeTable::Term::Min:
    return std::min(left, right);
  case SizeTable::Term::Max:
    return std::max(left, right);
  case SizeTable::Term::Wrap:
    return left < 0 ? llvm::checkedAdd(left, right) : left;
  case SizeTable::Term::IsEqual:
    return left == right;
  case SizeTable::Term::IsAtLeast:
    return left >= right;
  case SizeTable::Term::Quotient:
  case SizeTable::Term::Remainder:
    break;
  }
  if (right <= 0)
    return std::nullopt;
  int64_t quotient = llvm::divideFloorSigned(left, right);
  return kind == SizeTable::Term::Quotient ? quotient : left - quotient * right;
}

Size SizeTable::createTerm(Term kind, const Size &left, const Size &right) {
  if (!left.isValid() || !right.isValid())
    return Size::invalid();
  if (left.getConstant() && right.getConstant()) {
    std::optional<int64_t> value =
        compute(kind, *left.getConstant(), *right.getConstant());
    return value ? Size(*value) : Size::invalid();
  }
  bool isDivision = kind == Term::Quotient || kind == Term::Remainder;
  if (isDivision && right.getConstant() && *right.getConstant() <= 0)
    return Size::invalid();
  if (isDivision)
    if (std::optional<Size> exact = left.divideExactly(right))
      return kind == Term::Quotient ? *exact : Size(0);
  if (kind == Term::IsEqual && (left == right || areDifferent(left, right)))
    return left == right ? 1 : 0;
  if (kind == Term::IsAtLeast && isAtMost(right, left))
    return 1;
  if (kind == Term::IsAtLeast && isNonNegative(right - left - 1))
    return 0;
  if (kind == Term::Wrap && isNonNegative(left))
    return left;
  if (kind == Term::Wrap && isNonNegative(Size(-1) - left))
    return left + right;
  if (kind == Term::Min || kind == Term::Max) {
    if (isAtMost(left, right))
      return kind == Term::Min ? left : right;
    if (isAtMost(right, left))
      return kind == Term::Min ? right : left;
  }
  unsigned depth = 1 + std::max(getDepth(left), getDepth(right));
  if (depth > kMaxDepth)
    return Size::invalid();
  auto [it, isNew] = numbers.try_emplace({kind, left, right}, symbols.size());
  if (isNew) {
    bool first = isNonNegative(left), second = isNonNegative(right);
    bool isNatural = kind == Term::Remainder || kind == Term::IsEqual ||
                     kind == Term::IsAtLeast ||
                     (kind == Term::Quotient && first) ||
                     (kind == Term::Min && first && second) ||
                     (kind == Term::Max && (first || second));
    symbols.push_back(
        {Value(), isNatural, kind, left, right, depth, /*isTerm=*/true});
    symbols.back().max = getTermMax(kind, left, right);
  }
  return Size::symbol(it->second);
}

unsigned SizeTable::getDepth(const Size &size) const {
  unsigned depth = 0;
  for (const auto &term : size.getTerms())
    for (unsigned symbol : term.first)
      depth = std::max(depth, symbols[symbol].depth);
  return depth;
}

bool SizeTable::isNonNegative(const Size &size) const {
  if (!size.isValid())
    return false;
  // Each symbol is replaced by the sum of its minimum and the rest, unless the
  // maxima of symbols suffice.
  if (std::optional<int64_t> max = getMax(Size(0) - size); max && *max <= 0)
    return true;
  Size shifted;
  for (const auto &[monomial, coefficient] : size.getTerms()) {
    Size product(coefficient);
    for (unsigned symbol : monomial) {
      if (!symbols[symbol].isNonNegative)
        return false;
      product = product * (Size::symbol(symbol) + symbols[symbol].min);
    }
    shifted = shifted + product;
  }
  return shifted.isValid() &&
         llvm::all_of(shifted.getTerms(),
                      [](const auto &term) { return term.second > 0; });
}

std::optional<int64_t> SizeTable::getMax(const Size &size) const {
  if (!size.isValid())
    return std::nullopt;
  Size sum;
  for (const auto &[monomial, coefficient] : size.getTerms()) {
    // A product is the largest where all factors are, unless one is negative.
    Size product(coefficient);
    for (unsigned number : monomial) {
      const Symbol &symbol = symbols[number];
      bool isBounded = coefficient > 0
                           ? symbol.max.has_value() &&
                                 (monomial.size() == 1 || symbol.isNonNegative)
                           : symbol.isNonNegative;
      if (!isBounded)
        return std::nullopt;
      product = product * (coefficient > 0 ? *symbol.max : symbol.min);
    }
    sum = sum + product;
  }
  return sum.isValid() ? sum.getConstant() : std::nullopt;
}

/// Returns a constant that a term does not exceed, or nullopt.
std::optional<int64_t> SizeTable::getTermMax(Term kind, const Size &left,
                                             const Size &right) const {
  std::optional<int64_t> first = getMax(left), second = getMax(right);
  switch (kind) {
  case Term::IsEqual:
  case Term::IsAtLeast:
    return 1;
  case Term::Min:
    return first && second ? std::min(*first, *second) : first ? first : second;
  case Term::Max:
    return first && second ? std::optional(std::max(*first, *second))
                           : std::nullopt;
  case Term::Remainder:
    return second ? std::optional(*second - 1) : std::nullopt;
  case Term::Quotient:
    return first && right.getConstant()
               ? compute(kind, *first, *right.getConstant())
               : std::nullopt;
  case Term::Wrap:
    return std::nullopt;
  }
  llvm_unreachable("an unknown kind of term");
}

std::optional<SizeTable::TermView> SizeTable::getTerm(const Size &size) const {
  std::optional<unsigned> number = size.getSymbol();
  if (!number || !symbols[*number].isTerm)
    return std::nullopt;
  const Symbol &symbol = symbols[*number];
  return TermView{symbol.kind, symbol.left, symbol.right};
}

void SizeTable::assumeNonNegative(const Size &size) {
  int64_t shift = 0, factor = 0;
  std::optional<unsigned> symbol;
  if (!size.isValid())
    return;
  for (const auto &[monomial, coefficient] : size.getTerms()) {
    if (monomial.empty()) {
      shift = coefficient;
      continue;
    }
    if (symbol || monomial.size() != 1 || coefficient <= 0)
      return;
    symbol = monomial.front();
    factor = coefficient;
  }
  if (!symbol || shift > 0 || shift < -(int64_t(1) << 40))
    return;
  Symbol &known = symbols[*symbol];
  known.isNonNegative = true;
  known.min = std::max(known.min, (-shift + factor - 1) / factor);
}

bool SizeTable::dependsOn(const Size &size, unsigned symbol) const {
  SmallVector<Size> pending{size};
  std::vector<bool> isVisited(symbols.size());
  while (!pending.empty()) {
    Size next = pending.pop_back_val();
    for (const auto &term : next.getTerms())
      for (unsigned number : term.first) {
        if (number == symbol)
          return true;
        if (isVisited[number] || !symbols[number].isTerm)
          continue;
        isVisited[number] = true;
        pending.push_back(symbols[number].left);
        pending.push_back(symbols[number].right);
      }
  }
  return false;
}

void SizeTable::assumeEqual(const Size &left, const Size &right) {
  Size first = resolve(left), second = resolve(right);
  // The remainder of a division is zero, so the dividend is a multiple.
  if (std::optional<TermView> term = getTerm(first);
      term && term->kind == Term::Remainder && second.isConstant(0)) {
    std::optional<unsigned> symbol = term->left.getSymbol();
    if (symbol && !symbols[*symbol].isTerm && !symbols[*symbol].replacement &&
        term->right.getConstant())
      symbols[*symbol].replacement =
          createTerm(Term::Quotient, term->left, term->right) * term->right;
    return;
  }
  // Later arguments get the sizes of earlier ones.
  for (bool isSwapped : {false, true}) {
    Size &from = isSwapped ? second : first, &to = isSwapped ? first : second;
    std::optional<unsigned> symbol = from.getSymbol(), other = to.getSymbol();
    if (!symbol || symbols[*symbol].isTerm || symbols[*symbol].replacement ||
        !to.isValid() ||
        (other && *other > *symbol && !symbols[*other].isTerm) ||
        dependsOn(to, *symbol))
      continue;
    symbols[*symbol].replacement = to;
    return;
  }
}

Size SizeTable::resolve(const Size &size) const {
  bool isResolved = llvm::none_of(size.getTerms(), [&](const auto &term) {
    return llvm::any_of(term.first, [&](unsigned symbol) {
      return symbols[symbol].replacement.has_value();
    });
  });
  if (isResolved || !size.isValid())
    return size;
  Size sum;
  for (const auto &[monomial, coefficient] : size.getTerms()) {
    Size product(coefficient);
    // Replacements have replacements only if those came later, which are of
    // other symbols, so this ends.
    for (unsigned symbol : monomial)
      product = product * (symbols[symbol].replacement
                               ? resolve(*symbols[symbol].replacement)
                               : Size::symbol(symbol));
    sum = sum + product;
  }
  return sum;
}

bool SizeTable::isAtMost(const Size &left, const Size &right) const {
  // Differences of constants may overflow.
  std::optional<int64_t> a = left.getConstant(), b = right.getConstant();
  return a && b ? *a <= *b : isNonNegative(right - left);
}

bool SizeTable::areDifferent(const Size &left, const Size &right) const {
  if (left.getConstant() && right.getConstant())
    return left != right;
  return isNonNegative(left - right - 1) || isNonNegative(right - left - 1);
}

/// Creates the value of a term. Its operands have smaller numbers, so this
/// ends.
Value SizeTable::materializeTerm(ImplicitLocOpBuilder &b, const Symbol &term) {
  Value left = materialize(b, term.left), right = materialize(b, term.right);
  bool isNatural = isNonNegative(term.left);
  auto select = [&](arith::CmpIPredicate predicate) -> Value {
    Value holds = arith::CmpIOp::create(b, predicate, left, right);
    Value one = arith::ConstantIndexOp::create(b, 1);
    Value zero = arith::ConstantIndexOp::create(b, 0);
    return arith::SelectOp::create(b, holds, one, zero);
  };
  switch (term.kind) {
  case Term::Quotient:
    if (isNatural)
      return arith::DivSIOp::create(b, left, right);
    return arith::FloorDivSIOp::create(b, left, right);
  case Term::Remainder: {
    if (isNatural)
      return arith::RemSIOp::create(b, left, right);
    Value quotient = arith::FloorDivSIOp::create(b, left, right);
    Value whole = arith::MulIOp::create(b, quotient, right);
    return arith::SubIOp::create(b, left, whole);
  }
  case Term::Min:
    return arith::MinSIOp::create(b, left, right);
  case Term::Max:
    return arith::MaxSIOp::create(b, left, right);
  case Term::IsEqual:
    return select(arith::CmpIPredicate::eq);
  case Term::IsAtLeast:
    return select(arith::CmpIPredicate::sge);
  case Term::Wrap:
    return wrapIndex(b, left, right);
  }
  llvm_unreachable("an unknown kind of term");
}

Value SizeTable::materialize(ImplicitLocOpBuilder &b, const Size &size) {
  if (auto it = values.find(size); it != values.end())
    return it->second;
  Value sum;
  for (const auto &[monomial, coefficient] : size.getTerms()) {
    Value product;
    if (coefficient != 1 || monomial.empty())
      product = arith::ConstantIndexOp::create(b, coefficient);
    for (unsigned number : monomial) {
      if (!symbols[number].value)
        symbols[number].value = materializeTerm(b, symbols[number]);
      Value factor = symbols[number].value;
      product =
          product ? Value(arith::MulIOp::create(b, product, factor)) : factor;
    }
    sum = sum ? Value(arith::AddIOp::create(b, sum, product)) : product;
  }
  if (!sum)
    sum = arith::ConstantIndexOp::create(b, 0);
  values[size] = sum;
  return sum;
}

OpFoldResult SizeTable::getMixed(ImplicitLocOpBuilder &b, const Size &size) {
  if (std::optional<int64_t> constant = size.getConstant())
    return b.getIndexAttr(*constant);
  return materialize(b, size);
}

SmallVector<OpFoldResult> SizeTable::getMixed(ImplicitLocOpBuilder &b,
                                              ArrayRef<Size> sizes) {
  return llvm::map_to_vector(
      sizes, [&](const Size &size) { return getMixed(b, size); });
}
