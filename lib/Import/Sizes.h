//===- Sizes.h - symbolic sizes of tensors ----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A size is a polynomial over symbols: dynamic sizes of arguments, and terms
// such as quotients and minima. Equal polynomials are equal sizes, so that
// shape arithmetic of a model needs no code to be understood.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IMPORT_SIZES_H
#define POSENC_LIB_IMPORT_SIZES_H

#include "posenc/Support/SizeExpr.h"

#include "mlir/IR/Builders.h"

#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace mlir::posenc {

using Size = ::posenc::SizeExpr;

/// The symbols of a function, and their values.
class SizeTable {
public:
  enum class Term { Quotient, Remainder, Min, Max, Wrap, IsEqual, IsAtLeast };

  /// Creates a symbol of a value of type index.
  Size createSymbol(Value value, bool isNonNegative);

  /// Records that a size is not negative. Helps if it is one symbol, scaled and
  /// shifted.
  void assumeNonNegative(const Size &size);
  /// Records that two sizes are equal: `resolve` replaces a symbol of a value
  /// that is one of them, or one of which the other is a multiple.
  void assumeEqual(const Size &left, const Size &right);
  /// Returns the size without symbols that are equal to other sizes.
  Size resolve(const Size &size) const;

  /// The operands of a symbol that stands for a term.
  struct TermView {
    Term kind;
    Size left, right;
  };
  /// Returns the term if the size is a single one.
  std::optional<TermView> getTerm(const Size &size) const;

  /// Quotient rounded down, remainder of it, minimum, maximum; for Wrap, the
  /// left operand, to which the right one is added if it is negative. Divisors
  /// are positive. Invalid if a constant divisor is not. Comparisons are 1 or
  /// 0; IsAtLeast is whether the left operand is the right one or more.
  Size createTerm(Term kind, const Size &left, const Size &right);

  /// Whether the size is known not to be negative.
  bool isNonNegative(const Size &size) const;
  /// Returns a constant that the size does not exceed, or nullopt.
  std::optional<int64_t> getMax(const Size &size) const;
  /// Whether `left <= right` is known.
  bool isAtMost(const Size &left, const Size &right) const;
  /// Whether the sizes are known to differ: dynamic sizes are not negative.
  bool areDifferent(const Size &left, const Size &right) const;

  /// Returns a value of type index, which is created where the builder stands
  /// unless it exists already.
  Value materialize(ImplicitLocOpBuilder &b, const Size &size);
  OpFoldResult getMixed(ImplicitLocOpBuilder &b, const Size &size);
  SmallVector<OpFoldResult> getMixed(ImplicitLocOpBuilder &b,
                                     ArrayRef<Size> sizes);

private:
  struct Symbol {
    Value value;
    bool isNonNegative;
    Term kind;
    Size left, right;
    /// How deeply terms are nested in it.
    unsigned depth;
    bool isTerm;
    /// The symbol is at least this, if it is not negative.
    int64_t min = 0;
    std::optional<int64_t> max = std::nullopt;
    std::optional<Size> replacement = std::nullopt;
  };
  bool dependsOn(const Size &size, unsigned symbol) const;
  unsigned getDepth(const Size &size) const;
  std::optional<int64_t> getTermMax(Term kind, const Size &left,
                                    const Size &right) const;
  Value materializeTerm(ImplicitLocOpBuilder &b, const Symbol &term);

  std::vector<Symbol> symbols;
  std::map<std::tuple<Term, Size, Size>, unsigned> numbers;
  std::map<Size, Value> values;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_IMPORT_SIZES_H
