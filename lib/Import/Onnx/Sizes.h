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

#ifndef POSENC_LIB_IMPORT_ONNX_SIZES_H
#define POSENC_LIB_IMPORT_ONNX_SIZES_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallVector.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mlir::posenc::onnx {

/// A polynomial with integer coefficients. One that overflows, or has too many
/// terms, is invalid, and so is the result of arithmetic on it.
class Size {
public:
  Size() : Size(0) {}
  Size(int64_t constant);
  static Size getSymbol(unsigned number);
  static Size getInvalid();

  bool isValid() const { return valid; }
  /// Returns the value of a size without symbols.
  std::optional<int64_t> getConstant() const;
  bool isConstant(int64_t value) const { return getConstant() == value; }

  Size operator+(const Size &other) const;
  Size operator-(const Size &other) const;
  Size operator*(const Size &other) const;
  bool operator==(const Size &other) const;
  bool operator!=(const Size &other) const { return !(*this == other); }

  /// Returns the quotient if the division has no remainder for all symbols.
  std::optional<Size> divideExactly(const Size &divisor) const;

  /// A product of symbols, in ascending order.
  using Monomial = std::vector<unsigned>;
  /// Coefficients, none of which is 0.
  const std::map<Monomial, int64_t> &getTerms() const { return terms; }

private:
  void add(const Monomial &monomial, int64_t coefficient);

  std::map<Monomial, int64_t> terms;
  bool valid = true;
};

/// The symbols of a function, and their values.
class SizeTable {
public:
  enum class Term { Quotient, Remainder, Min, Max, Wrap };

  /// Creates a symbol of a value of type index.
  Size createSymbol(Value value, bool isNonNegative);

  /// Quotient rounded down, remainder of it, minimum, maximum; for Wrap, the
  /// left operand, to which the right one is added if it is negative. Divisors
  /// are positive. Invalid if a constant divisor is not.
  Size createTerm(Term kind, const Size &left, const Size &right);

  /// Whether the size is known not to be negative.
  bool isNonNegative(const Size &size) const;
  /// Whether `left <= right` is known.
  bool isAtMost(const Size &left, const Size &right) const {
    return isNonNegative(right - left);
  }
  /// Whether the sizes are known to differ: dynamic sizes are not negative.
  bool areDifferent(const Size &left, const Size &right) const;

  /// Returns a value of type index, which is created where `builder` stands
  /// unless it exists already.
  Value materialize(OpBuilder &builder, Location loc, const Size &size);
  OpFoldResult getMixed(OpBuilder &builder, Location loc, const Size &size);
  SmallVector<OpFoldResult> getMixed(OpBuilder &builder, Location loc,
                                     ArrayRef<Size> sizes);

private:
  struct Symbol {
    Value value;
    bool isNonNegative;
    Term kind;
    Size left, right;
    /// How deeply terms are nested in it.
    unsigned depth;
  };
  unsigned getDepth(const Size &size) const;

  std::vector<Symbol> symbols;
  std::map<std::string, unsigned> numbers;
  std::map<std::string, Value> values;
};

} // namespace mlir::posenc::onnx

#endif // POSENC_LIB_IMPORT_ONNX_SIZES_H
