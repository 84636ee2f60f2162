//===- SizeSignature.cpp - the sizes of a C signature ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/ABI/SizeSignature.h"

using namespace mlir;
using namespace mlir::posenc;

int64_t SizeSignature::addInputSize(Value tensor, int64_t dim) {
  assert(sizeOfExpr.empty() && "inputs are added before results");
  std::optional<unsigned> symbol = analysis.getSize(tensor, dim).getSymbol();
  assert(symbol && "a dynamic size of an input is a symbol");
  auto [entry, isNew] = sizeOfSymbol.try_emplace(*symbol, sizes.size());
  if (isNew)
    sizes.push_back(-1);
  return entry->second;
}

/// Returns the number of a size that equals the expression, directly or by a
/// relation.
std::optional<int64_t> SizeSignature::findSize(const SizeExpr &expr) {
  auto find = [&](const SizeExpr &size) -> std::optional<int64_t> {
    std::optional<unsigned> symbol = size.getSymbol();
    auto known = symbol ? sizeOfSymbol.find(*symbol) : sizeOfSymbol.end();
    if (known == sizeOfSymbol.end())
      return std::nullopt;
    return known->second;
  };
  if (std::optional<int64_t> size = find(expr))
    return size;
  for (const SizeRelation &relation : analysis.getRelations()) {
    if (relation.kind != RelationKind::Equal)
      continue;
    std::optional<int64_t> size = relation.right == expr  ? find(relation.left)
                                  : relation.left == expr ? find(relation.right)
                                                          : std::nullopt;
    if (size)
      return size;
  }
  return std::nullopt;
}

std::optional<int64_t> SizeSignature::addResultSize(Value tensor, int64_t dim) {
  SizeSymbols &symbols = analysis.getSymbols();
  SizeExpr expr = analysis.getSize(tensor, dim);
  if (std::optional<int64_t> size = findSize(expr))
    return size;
  if (!symbols.isComputable(expr))
    return std::nullopt;
  auto [entry, isNew] = sizeOfExpr.try_emplace(expr, sizes.size());
  if (isNew) {
    std::optional<unsigned> symbol = expr.getSymbol();
    bool isScalar =
        symbol && symbols.get(*symbol).kind == SizeSymbol::Kind::Scalar;
    sizes.push_back(isScalar ? int64_t{symbols.get(*symbol).input} : -2);
  }
  return entry->second;
}

int64_t SizeSignature::addTerm(TermKind kind, ArrayRef<SizeExpr> operands) {
  // Converts the operands first, so that their terms have smaller numbers.
  SmallVector<AffineExpr> exprs;
  for (const SizeExpr &operand : operands)
    exprs.push_back(convert(operand));
  unsigned numSymbols = sizes.size() + numInputs + terms.size();
  terms.push_back(TermAttr::get(context, kind,
                                AffineMap::get(0, numSymbols, exprs, context)));
  return terms.size() - 1;
}

/// Returns the number of a symbol in the attributes of the signature.
int64_t SizeSignature::getSymbol(unsigned symbol) {
  // Copies the symbol, since conversions may reallocate the list.
  SizeSymbol it = analysis.getSymbols().get(symbol);
  switch (it.kind) {
  case SizeSymbol::Kind::Size:
    assert(sizeOfSymbol.contains(symbol) && "a size of an input was not added");
    return sizeOfSymbol.lookup(symbol);
  case SizeSymbol::Kind::Scalar:
  case SizeSymbol::Kind::Element:
    return sizes.size() + it.input;
  case SizeSymbol::Kind::Term:
    break;
  case SizeSymbol::Kind::Loop:
  case SizeSymbol::Kind::Unknown:
    llvm_unreachable("not a size of a signature");
  }
  auto known = termOfSymbol.find(symbol);
  int64_t term = known != termOfSymbol.end() ? known->second
                                             : addTerm(it.term, it.operands);
  termOfSymbol[symbol] = term;
  return sizes.size() + numInputs + term;
}

AffineExpr SizeSignature::convert(const SizeExpr &expr) {
  AffineExpr sum;
  for (const auto &[monomial, coefficient] : expr.getTerms()) {
    AffineExpr product;
    for (unsigned symbol : monomial) {
      AffineExpr factor = getAffineSymbolExpr(getSymbol(symbol), context);
      product = product ? product * factor : factor;
    }
    if (!product)
      product = getAffineConstantExpr(coefficient, context);
    else if (coefficient != 1)
      product = product * coefficient;
    sum = sum ? sum + product : product;
  }
  return sum ? sum : getAffineConstantExpr(0, context);
}

AffineMap SizeSignature::convertAll(ArrayRef<SizeExpr> exprs) {
  SmallVector<AffineExpr> results;
  for (const SizeExpr &expr : exprs)
    results.push_back(convert(expr));
  return AffineMap::get(0, sizes.size() + numInputs + terms.size(), results,
                        context);
}

/// Returns a factor of a bound: a constant, or -1 minus the number of a symbol.
int64_t SizeSignature::getFactor(const SizeExpr &expr) {
  SizeSymbols &symbols = analysis.getSymbols();
  SizeExpr size = symbols.resolve(expr, /*useConstants=*/false);
  if (std::optional<int64_t> constant = size.getConstant();
      constant && *constant >= 0)
    return *constant;
  // Elements have no words.
  if (std::optional<unsigned> symbol = size.getSymbol();
      symbol && symbols.get(*symbol).kind != SizeSymbol::Kind::Element)
    return -1 - getSymbol(*symbol);
  auto known = sizeOfExpr.find(size);
  if (known != sizeOfExpr.end() && sizes[known->second] <= -2)
    return -1 - static_cast<int64_t>(sizes.size() + numInputs - 2 -
                                     sizes[known->second]);
  return -1 - static_cast<int64_t>(sizes.size() + numInputs +
                                   addTerm(TermKind::Value, size));
}

void SizeSignature::finish(int64_t inputs) {
  numInputs = inputs;
  for (const auto &[expr, number] : sizeOfExpr) {
    if (sizes[number] != -2)
      continue;
    std::optional<unsigned> symbol = expr.getSymbol();
    bool isTerm = symbol && analysis.getSymbols().get(*symbol).kind ==
                                SizeSymbol::Kind::Term;
    int64_t term = isTerm ? getSymbol(*symbol) - numInputs -
                                static_cast<int64_t>(sizes.size())
                          : addTerm(TermKind::Value, expr);
    sizes[number] = -2 - term;
  }
  for (const IndexBound &bound : analysis.getBounds()) {
    SmallVector<int64_t> limit, each;
    for (const SizeExpr &factor : bound.limit)
      limit.push_back(getFactor(factor));
    if (bound.each)
      each.push_back(getFactor(*bound.each));
    auto attribute = BoundAttr::get(context, bound.kind, bound.input, limit,
                                    each, bound.lengths);
    if (!llvm::is_contained(bounds, attribute))
      bounds.push_back(attribute);
  }
  for (const SizeRelation &relation : analysis.getRelations())
    relations.push_back(RelationAttr::get(
        context, relation.kind, convertAll({relation.left, relation.right})));
}
