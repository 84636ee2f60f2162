//===- SizeSymbols.h - symbols of sizes -------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_ABI_SIZESYMBOLS_H
#define POSENC_ABI_SIZESYMBOLS_H

#include "posenc/IR/Posenc.h"
#include "posenc/Support/SizeExpr.h"

#include "llvm/ADT/EquivalenceClasses.h"

#include <cassert>
#include <map>
#include <set>
#include <vector>

namespace mlir::posenc {

using ::posenc::SizeExpr;

/// A number that sizes depend on.
struct SizeSymbol {
  enum class Kind {
    Size,    ///< dimension `dim` of input `input`
    Scalar,  ///< the scalar input `input`
    Element, ///< the only element of the tensor `input`
    Term,    ///< derived from the operands
    Loop,    ///< a loop's variable
    Unknown, ///< depends on the elements of tensors
  };
  Kind kind = Kind::Unknown;
  unsigned input = 0;
  int64_t dim = 0;
  TermKind term = TermKind::Value;
  std::vector<SizeExpr> operands;
  bool isNonNegative = false;
  /// Whether the value is not a number of one call, because it does not depend
  /// on the arguments alone or varies in a loop. Elements count as unknown,
  /// too: only what cannot do without them makes entry points read them.
  bool isUnknown = false;
  /// The number of symbols in its expansion.
  unsigned weight = 1;
  /// The minimum and maximum of a symbol that varies within one call.
  std::optional<std::pair<SizeExpr, SizeExpr>> range;
};

/// The symbols of a function and their equalities.
class SizeSymbols {
public:
  SizeExpr createSize(unsigned input, int64_t dim);
  SizeExpr createScalar(unsigned input);
  SizeExpr createElement(unsigned input);
  SizeExpr createUnknown();
  SizeExpr createLoop(SizeExpr min, SizeExpr max);
  /// Creates a term, or a simpler equal expression if there is one.
  SizeExpr createTerm(TermKind kind, std::vector<SizeExpr> operands);

  const SizeSymbol &get(unsigned symbol) const {
    assert(symbol < symbols.size() && "a symbol of other symbols");
    return symbols[symbol];
  }
  void setNonNegative(unsigned symbol) {
    assert(symbol < symbols.size() && "a symbol of other symbols");
    symbols[symbol].isNonNegative = true;
  }
  /// Whether the expression is known to be non-negative.
  bool isNonNegative(const SizeExpr &expr) const;

  void unite(unsigned a, unsigned b);
  /// Returns the representative of all equal symbols, which is the first one.
  unsigned getLeader(unsigned symbol) const;
  /// Records that the symbol equals a constant.
  void setConstant(unsigned symbol, int64_t value);
  /// Replaces symbols by their leaders, and by constants if `useConstants`.
  SizeExpr resolve(const SizeExpr &expr, bool useConstants);
  /// Returns an upper bound of the expression that does not vary within a call;
  /// nullopt if none is found.
  std::optional<SizeExpr> maximize(SizeExpr expr) const;
  /// Whether the expression is at most 0 wherever its loops run. Minima,
  /// maxima, quotients and induction variables are replaced by their bounds one
  /// at a time, which proves `i + min(32, n - i) - n <= 0`. False if no short
  /// proof is found.
  bool isAtMostZero(const SizeExpr &expr) const;
  /// Splits the last minimum or maximum whose operands must all be considered:
  /// `expr` is at most 0 if all the returned expressions are. Empty if there is
  /// no such term.
  SmallVector<SizeExpr> splitCases(const SizeExpr &expr) const;
  /// Returns an expression of sizes and scalars only that is sufficient: if it
  /// is at most 0, so is one of `exprs`. It is found by the same steps; the
  /// weakest or simplest candidate is returned, nullopt if there is none. With
  /// `usesElements` it may depend on all that entry points can compute.
  std::optional<SizeExpr> findCondition(ArrayRef<SizeExpr> exprs,
                                        bool usesElements) const;
  /// Whether the expression depends on sizes and scalars only.
  bool isKnown(const SizeExpr &expr) const;
  /// Whether entry points can compute the expression: it is known, or depends
  /// on the elements of inputs with one element besides.
  bool isComputable(const SizeExpr &expr) const;
  /// Whether the expression depends on elements, so that an entry point cannot
  /// bound it.
  bool dependsOnElements(const SizeExpr &expr) const;

private:
  unsigned create(SizeSymbol symbol);
  /// Upper bounds of an expression: it is at most 0 if one of them is, or, if
  /// `all`, only if all are.
  struct Replacement {
    SmallVector<SizeExpr> exprs;
    bool needsAll = false;
  };
  /// Replaces a symbol of an expression by its bounds.
  std::optional<Replacement> replace(const SizeExpr &expr,
                                     unsigned number) const;
  std::optional<unsigned> findUnknown(const SizeExpr &expr,
                                      bool usesElements = false) const;
  bool isAtMostZero(const SizeExpr &expr, unsigned depth) const;
  std::set<SizeExpr> getConditions(const SizeExpr &expr, bool usesElements,
                                   unsigned depth) const;
  std::optional<std::pair<SizeExpr, SizeExpr>>
  getTermRange(TermKind kind, ArrayRef<SizeExpr> operands);
  std::optional<std::pair<SizeExpr, SizeExpr>>
  getRange(const SizeExpr &expr) const;
  std::optional<unsigned> findVarying(const SizeExpr &expr) const;

  std::vector<SizeSymbol> symbols;
  std::map<std::pair<TermKind, std::vector<SizeExpr>>, unsigned> terms;
  llvm::EquivalenceClasses<unsigned> classes;
  DenseMap<unsigned, int64_t> constants;
  /// Resolved terms, without and with constants.
  DenseMap<unsigned, SizeExpr> resolved[2];
};

} // namespace mlir::posenc

#endif // POSENC_ABI_SIZESYMBOLS_H
