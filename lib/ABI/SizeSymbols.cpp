//===- SizeSymbols.cpp - symbols of sizes, and what is known of them ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/ABI/SizeSymbols.h"

#include "llvm/ADT/SetOperations.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::posenc;

/// The max size of expanded expressions. Larger ones are invalid.
static constexpr unsigned kMaxWeight = 256;
/// Larger expressions that depend on elements of tensors are not in signatures.
static constexpr unsigned kMaxUnknownWeight = 1 << 16;
/// The largest number of replacements in a proof.
static constexpr unsigned kMaxSteps = 12;

unsigned SizeSymbols::create(SizeSymbol symbol) {
  unsigned number = symbols.size();
  symbols.push_back(std::move(symbol));
  classes.insert(number);
  return number;
}

SizeExpr SizeSymbols::createSize(unsigned input, int64_t dim) {
  SizeSymbol symbol;
  symbol.kind = SizeSymbol::Kind::Size;
  symbol.input = input;
  symbol.dim = dim;
  symbol.isNonNegative = true;
  return SizeExpr::symbol(create(std::move(symbol)));
}

SizeExpr SizeSymbols::createScalar(unsigned input) {
  SizeSymbol symbol;
  symbol.kind = SizeSymbol::Kind::Scalar;
  symbol.input = input;
  return SizeExpr::symbol(create(std::move(symbol)));
}

SizeExpr SizeSymbols::createElement(unsigned input) {
  SizeSymbol symbol;
  symbol.kind = SizeSymbol::Kind::Element;
  symbol.input = input;
  symbol.isUnknown = true;
  return SizeExpr::symbol(create(std::move(symbol)));
}

SizeExpr SizeSymbols::createUnknown() {
  SizeSymbol symbol;
  symbol.isUnknown = true;
  return SizeExpr::symbol(create(std::move(symbol)));
}

SizeExpr SizeSymbols::createLoop(SizeExpr min, SizeExpr max) {
  SizeSymbol symbol;
  symbol.kind = SizeSymbol::Kind::Loop;
  symbol.isUnknown = true;
  symbol.isNonNegative = isNonNegative(min);
  symbol.range = {std::move(min), std::move(max)};
  return SizeExpr::symbol(create(std::move(symbol)));
}

bool SizeSymbols::isNonNegative(const SizeExpr &expr) const {
  return expr.hasNoNegative(
      [&](unsigned symbol) { return symbols[symbol].isNonNegative; });
}

/// Folds a term of constants; nullopt if it is undefined.
static std::optional<int64_t> fold(TermKind kind, ArrayRef<int64_t> values) {
  switch (kind) {
  case TermKind::Value:
    return values[0];
  case TermKind::Quotient:
    if (values[1] == 0 || (values[0] == INT64_MIN && values[1] == -1))
      return std::nullopt;
    return llvm::divideFloorSigned(values[0], values[1]);
  case TermKind::Remainder:
    if (values[1] <= 0)
      return std::nullopt;
    return llvm::mod(values[0], values[1]);
  case TermKind::Min:
    return std::min(values[0], values[1]);
  case TermKind::Max:
    return std::max(values[0], values[1]);
  case TermKind::IfLess:
    return values[0] < values[1] ? values[2] : values[3];
  case TermKind::IfEqual:
    return values[0] == values[1] ? values[2] : values[3];
  }
  llvm_unreachable("an unknown kind of term");
}

SizeExpr SizeSymbols::createTerm(TermKind kind,
                                 std::vector<SizeExpr> operands) {
  for (const SizeExpr &operand : operands)
    if (!operand.isValid())
      return operand;
  if (kind == TermKind::Value)
    return operands.front();
  SmallVector<int64_t> constants;
  for (const SizeExpr &operand : operands)
    if (std::optional<int64_t> constant = operand.getConstant())
      constants.push_back(*constant);
  if (constants.size() == operands.size())
    if (std::optional<int64_t> value = fold(kind, constants))
      return SizeExpr(*value);
  SizeExpr first = operands[0], second = operands[1];
  std::optional<int64_t> divisor = second.getConstant();
  bool isExact = divisor && *divisor > 0 && first.getDivisor() % *divisor == 0;
  bool isOrdered = isNonNegative(second - first);
  if (kind == TermKind::Quotient && isExact)
    return *first.divideExactly(*divisor);
  // Divisors are positive.
  if (kind == TermKind::Quotient && !divisor)
    if (std::optional<SizeExpr> quotient = first.divideExactly(second))
      return *quotient;
  if (kind == TermKind::Remainder && isExact)
    return SizeExpr(0);
  if (kind == TermKind::Min || kind == TermKind::Max) {
    if (isOrdered)
      return kind == TermKind::Min ? first : second;
    if (isNonNegative(first - second))
      return kind == TermKind::Min ? second : first;
    if (second < first)
      std::swap(operands[0], operands[1]);
  }
  if (kind == TermKind::IfLess && isNonNegative(first - second))
    return operands[3];
  if (kind == TermKind::IfLess && isNonNegative(second - first - SizeExpr(1)))
    return operands[2];
  if (kind == TermKind::IfEqual && first == second)
    return operands[2];
  if (kind == TermKind::IfEqual &&
      (isNonNegative(first - second - SizeExpr(1)) ||
       isNonNegative(second - first - SizeExpr(1))))
    return operands[3];
  if ((kind == TermKind::IfLess || kind == TermKind::IfEqual) &&
      operands[2] == operands[3])
    return operands[2];

  auto known = terms.find({kind, operands});
  if (known != terms.end())
    return SizeExpr::symbol(known->second);
  SizeSymbol symbol;
  symbol.kind = SizeSymbol::Kind::Term;
  symbol.term = kind;
  symbol.operands = operands;
  auto nonNegative = [&](unsigned number) {
    return isNonNegative(operands[number]);
  };
  switch (kind) {
  case TermKind::Value:
  case TermKind::Remainder:
    symbol.isNonNegative = kind == TermKind::Remainder;
    break;
  case TermKind::Quotient:
  case TermKind::Min:
    symbol.isNonNegative = nonNegative(0) && nonNegative(1);
    break;
  case TermKind::Max:
    symbol.isNonNegative = nonNegative(0) || nonNegative(1);
    break;
  case TermKind::IfLess:
  case TermKind::IfEqual:
    symbol.isNonNegative = nonNegative(2) && nonNegative(3);
    break;
  }
  bool varies = false;
  for (const SizeExpr &operand : operands) {
    symbol.isUnknown |= !isKnown(operand);
    varies |= findVarying(operand).has_value();
    for (unsigned number : operand.getSymbols())
      symbol.weight += symbols[number].weight;
  }
  if (symbol.weight > (symbol.isUnknown ? kMaxUnknownWeight : kMaxWeight))
    return SizeExpr::invalid();
  if (varies)
    symbol.range = getTermRange(kind, operands);
  unsigned number = create(std::move(symbol));
  terms.insert({{kind, std::move(operands)}, number});
  return SizeExpr::symbol(number);
}

std::optional<std::pair<SizeExpr, SizeExpr>>
SizeSymbols::getTermRange(TermKind kind, ArrayRef<SizeExpr> operands) {
  auto first = getRange(operands[0]), second = getRange(operands[1]);
  if (!first || !second)
    return std::nullopt;
  std::optional<int64_t> divisor = operands[1].getConstant();
  bool dividesByPositive = divisor && *divisor > 0;
  auto both = [&](const SizeExpr &a, const SizeExpr &b) {
    return createTerm(kind, {a, b});
  };
  switch (kind) {
  case TermKind::Remainder:
    if (!dividesByPositive)
      return std::nullopt;
    return std::pair(SizeExpr(0), SizeExpr(*divisor - 1));
  case TermKind::Quotient:
    if (!dividesByPositive)
      return std::nullopt;
    [[fallthrough]];
  case TermKind::Min:
  case TermKind::Max:
    return std::pair(both(first->first, second->first),
                     both(first->second, second->second));
  case TermKind::IfLess:
  case TermKind::IfEqual: {
    auto yes = getRange(operands[2]), no = getRange(operands[3]);
    if (!yes || !no)
      return std::nullopt;
    return std::pair(createTerm(TermKind::Min, {yes->first, no->first}),
                     createTerm(TermKind::Max, {yes->second, no->second}));
  }
  case TermKind::Value:
    break;
  }
  return std::nullopt;
}

/// Returns the last symbol that varies within a call. It is replaced first,
/// since its range may depend on earlier ones.
std::optional<unsigned> SizeSymbols::findVarying(const SizeExpr &expr) const {
  std::optional<unsigned> last;
  for (unsigned symbol : expr.getSymbols())
    if (symbols[symbol].range && (!last || symbol > *last))
      last = symbol;
  return last;
}

/// Splits a polynomial into the factor of a symbol and the rest; nullopt if it
/// contains a higher power of the symbol.
static std::optional<std::pair<SizeExpr, SizeExpr>>
splitAt(const SizeExpr &expr, unsigned symbol) {
  SizeExpr factor, rest;
  for (const auto &[monomial, coefficient] : expr.getTerms()) {
    unsigned power = llvm::count(monomial, symbol);
    if (power > 1)
      return std::nullopt;
    SizeExpr product(coefficient);
    for (unsigned other : monomial)
      if (other != symbol)
        product = product * SizeExpr::symbol(other);
    (power ? factor : rest) = (power ? factor : rest) + product;
  }
  return std::pair(factor, rest);
}

std::optional<SizeExpr> SizeSymbols::maximize(SizeExpr expr) const {
  while (std::optional<unsigned> symbol = findVarying(expr)) {
    auto parts = splitAt(expr, *symbol);
    if (!parts)
      return std::nullopt;
    const auto &[factor, rest] = *parts;
    const auto &[min, max] = *symbols[*symbol].range;
    if (isNonNegative(factor))
      expr = factor * max + rest;
    else if (isNonNegative(SizeExpr(0) - factor))
      expr = factor * min + rest;
    else
      return std::nullopt;
  }
  if (!expr.isValid())
    return std::nullopt;
  return expr;
}

std::optional<SizeSymbols::Replacement>
SizeSymbols::replace(const SizeExpr &expr, unsigned number) const {
  auto parts = splitAt(expr, number);
  if (!parts)
    return std::nullopt;
  const auto &[factor, rest] = *parts;
  bool isPositive = isNonNegative(factor);
  if (!isPositive && !isNonNegative(SizeExpr(0) - factor))
    return std::nullopt;
  const SizeSymbol &symbol = symbols[number];
  Replacement result;
  if (symbol.kind == SizeSymbol::Kind::Loop && symbol.range) {
    const auto &[min, max] = *symbol.range;
    result.exprs = {rest + factor * (isPositive ? max : min)};
    return result;
  }
  if (symbol.kind != SizeSymbol::Kind::Term)
    return std::nullopt;
  ArrayRef<SizeExpr> operands = symbol.operands;
  switch (symbol.term) {
  case TermKind::Value:
    return std::nullopt;
  case TermKind::Quotient: {
    // a - (d - 1) <= d * floor(a / d) <= a
    std::optional<int64_t> divisor = operands[1].getConstant();
    if (!divisor || *divisor <= 0)
      return std::nullopt;
    std::optional<SizeExpr> quotient = factor.divideExactly(*divisor);
    if (!quotient)
      return std::nullopt;
    SizeExpr dividend = operands[0] - SizeExpr(isPositive ? 0 : *divisor - 1);
    result.exprs = {rest + *quotient * dividend};
    return result;
  }
  case TermKind::Remainder:
    // Divisors are required to be positive.
    result.exprs = {rest +
                    factor * (isPositive ? operands[1] - 1 : SizeExpr(0))};
    return result;
  case TermKind::Min:
  case TermKind::Max:
    result.needsAll = (symbol.term == TermKind::Max) == isPositive;
    break;
  case TermKind::IfLess:
  case TermKind::IfEqual:
    operands = operands.drop_front(2);
    result.needsAll = true;
    break;
  }
  for (const SizeExpr &operand : operands)
    result.exprs.push_back(rest + factor * operand);
  return result;
}

/// Returns the last unknown symbol. It is replaced first: terms have larger
/// numbers than their operands, so an unknown can only cancel with later terms.
std::optional<unsigned> SizeSymbols::findUnknown(const SizeExpr &expr,
                                                 bool usesElements) const {
  std::optional<unsigned> last;
  for (unsigned symbol : expr.getSymbols())
    if (symbols[symbol].isUnknown && (!last || symbol > *last) &&
        !(usesElements && isComputable(SizeExpr::symbol(symbol))))
      last = symbol;
  return last;
}

bool SizeSymbols::isAtMostZero(const SizeExpr &expr) const {
  return isAtMostZero(expr, kMaxSteps);
}

bool SizeSymbols::isAtMostZero(const SizeExpr &expr, unsigned depth) const {
  if (!expr.isValid())
    return false;
  std::optional<SizeExpr> max = maximize(expr);
  if (max && isNonNegative(SizeExpr(0) - *max))
    return true;
  if (depth == 0)
    return false;
  auto holdsWithout = [&](unsigned symbol) {
    std::optional<Replacement> bounds = replace(expr, symbol);
    if (!bounds)
      return false;
    auto holds = [&](const SizeExpr &bound) {
      return isAtMostZero(bound, depth - 1);
    };
    return bounds->needsAll ? llvm::all_of(bounds->exprs, holds)
                            : llvm::any_of(bounds->exprs, holds);
  };
  if (std::optional<unsigned> unknown = findUnknown(expr))
    return holdsWithout(*unknown);
  return llvm::any_of(expr.getSymbols(), holdsWithout);
}

SmallVector<SizeExpr> SizeSymbols::splitCases(const SizeExpr &expr) const {
  if (!expr.isValid())
    return {};
  std::optional<unsigned> last;
  for (unsigned number : expr.getSymbols()) {
    const SizeSymbol &symbol = symbols[number];
    if (symbol.kind != SizeSymbol::Kind::Term ||
        (symbol.term != TermKind::Min && symbol.term != TermKind::Max))
      continue;
    std::optional<Replacement> bounds = replace(expr, number);
    if (bounds && bounds->needsAll && (!last || number > *last))
      last = number;
  }
  if (!last)
    return {};
  return replace(expr, *last)->exprs;
}

std::set<SizeExpr> SizeSymbols::getConditions(const SizeExpr &expr,
                                              bool usesElements,
                                              unsigned depth) const {
  auto isUsable = [&](const SizeExpr &one) {
    return usesElements ? isComputable(one) : isKnown(one);
  };
  if (isUsable(expr))
    return {expr};
  std::optional<unsigned> unknown = findUnknown(expr, usesElements);
  if (!expr.isValid() || depth == 0 || !unknown)
    return {};
  std::set<SizeExpr> conditions;
  if (std::optional<SizeExpr> max = maximize(expr); max && isUsable(*max))
    conditions.insert(*max);
  std::optional<Replacement> bounds = replace(expr, *unknown);
  if (!bounds)
    return conditions;
  // Conditions that prove one of the bounds, or all of them.
  std::optional<std::set<SizeExpr>> found;
  for (const SizeExpr &bound : bounds->exprs) {
    if (bounds->needsAll && isAtMostZero(bound, depth - 1))
      continue;
    std::set<SizeExpr> more = getConditions(bound, usesElements, depth - 1);
    if (!found)
      found = std::move(more);
    else if (bounds->needsAll)
      llvm::set_intersect(*found, more);
    else
      found->insert(more.begin(), more.end());
  }
  if (found)
    conditions.insert(found->begin(), found->end());
  return conditions;
}

std::optional<SizeExpr> SizeSymbols::findCondition(ArrayRef<SizeExpr> exprs,
                                                   bool usesElements) const {
  auto getWeight = [&](const SizeExpr &condition) {
    size_t weight = condition.getTerms().size();
    for (unsigned symbol : condition.getSymbols())
      weight += symbols[symbol].weight;
    return weight;
  };
  std::optional<SizeExpr> best;
  for (const SizeExpr &expr : exprs)
    for (const SizeExpr &condition :
         getConditions(expr, usesElements, kMaxSteps)) {
      bool neverHolds = isNonNegative(condition - 1);
      bool isStronger = best && isNonNegative(condition - *best);
      bool isWeaker = best && isNonNegative(*best - condition);
      if (!neverHolds && !isStronger &&
          (!best || isWeaker || getWeight(condition) < getWeight(*best)))
        best = condition;
    }
  return best;
}

std::optional<std::pair<SizeExpr, SizeExpr>>
SizeSymbols::getRange(const SizeExpr &expr) const {
  std::optional<SizeExpr> max = maximize(expr);
  std::optional<SizeExpr> min = maximize(SizeExpr(0) - expr);
  if (!max || !min)
    return std::nullopt;
  return std::pair(SizeExpr(0) - *min, *max);
}

unsigned SizeSymbols::getLeader(unsigned symbol) const {
  unsigned leader = symbol;
  for (unsigned member : classes.members(symbol))
    leader = std::min(leader, member);
  return leader;
}

void SizeSymbols::unite(unsigned a, unsigned b) {
  classes.unionSets(a, b);
  resolved[0].clear();
  resolved[1].clear();
}

void SizeSymbols::setConstant(unsigned symbol, int64_t value) {
  constants.insert({symbol, value});
  resolved[1].clear();
}

SizeExpr SizeSymbols::resolve(const SizeExpr &expr, bool useConstants) {
  auto resolveSymbol = [&](unsigned symbol) {
    unsigned leader = getLeader(symbol);
    // Copies the symbol, since new terms reallocate the list.
    SizeSymbol it = symbols[leader];
    if (it.kind == SizeSymbol::Kind::Term) {
      auto known = resolved[useConstants].find(leader);
      if (known != resolved[useConstants].end())
        return known->second;
      for (SizeExpr &operand : it.operands)
        operand = resolve(operand, useConstants);
      SizeExpr result = createTerm(it.term, std::move(it.operands));
      resolved[useConstants][leader] = result;
      return result;
    }
    if (useConstants)
      for (unsigned member : classes.members(leader))
        if (auto known = constants.find(member); known != constants.end())
          return SizeExpr(known->second);
    return SizeExpr::symbol(leader);
  };
  if (!expr.isValid())
    return expr;
  SizeExpr result;
  for (const auto &[monomial, coefficient] : expr.getTerms()) {
    SizeExpr product(coefficient);
    for (unsigned symbol : monomial)
      product = product * resolveSymbol(symbol);
    result = result + product;
  }
  return result;
}

bool SizeSymbols::isKnown(const SizeExpr &expr) const {
  return expr.isValid() &&
         llvm::none_of(expr.getSymbols(), [&](unsigned symbol) {
           return symbols[symbol].isUnknown;
         });
}

bool SizeSymbols::isComputable(const SizeExpr &expr) const {
  return expr.isValid() &&
         llvm::all_of(expr.getSymbols(), [&](unsigned number) {
           const SizeSymbol &symbol = symbols[number];
           if (!symbol.isUnknown || symbol.kind == SizeSymbol::Kind::Element)
             return true;
           return symbol.kind == SizeSymbol::Kind::Term &&
                  symbol.weight <= kMaxWeight &&
                  llvm::all_of(symbol.operands, [&](const SizeExpr &operand) {
                    return isComputable(operand);
                  });
         });
}

bool SizeSymbols::dependsOnElements(const SizeExpr &expr) const {
  return !expr.isValid() ||
         llvm::any_of(expr.getSymbols(), [&](unsigned number) {
           const SizeSymbol &symbol = symbols[number];
           return symbol.kind == SizeSymbol::Kind::Unknown ||
                  symbol.kind == SizeSymbol::Kind::Element ||
                  llvm::any_of(symbol.operands, [&](const SizeExpr &operand) {
                    return dependsOnElements(operand);
                  });
         });
}
