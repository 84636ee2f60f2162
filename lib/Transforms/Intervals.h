//===- Intervals.h - interval arithmetic as IR ------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bounds of integers that are computed at run time, as SSA values. Operations
// take the width of their integers and never lose a value: where a result may
// wrap, the bounds become those of the type.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_TRANSFORMS_INTERVALS_H
#define POSENC_LIB_TRANSFORMS_INTERVALS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::posenc {

/// Inclusive bounds of signed integers, as i64. Null if nothing is known.
struct Interval {
  Value low, high;
  /// All values are at least -2^bits and less than 2^bits.
  unsigned bits = 63;

  explicit operator bool() const { return static_cast<bool>(low); }
};

/// Bounds the i1 values of a tile.
struct Truth {
  /// i1: false if no value is true. Null if nothing is known.
  Value isAny;
  /// i1: true if all values are true. Null if nothing is known.
  Value isAll;
};

/// Returns the number of bits of an integer or index.
unsigned getIntegerWidth(Type type);

/// Emits operations on intervals. `width` is the number of bits, at most 64, of
/// the integers that the intervals bound.
class IntervalBuilder {
public:
  explicit IntervalBuilder(ImplicitLocOpBuilder &builder) : b(builder) {}

  Value createConstant(int64_t value);
  /// Returns the interval of a single integer or index of at most 64 bits.
  /// `bits` limits its magnitude as in `Interval`.
  Interval fromScalar(Value scalar, unsigned bits = 63);

  Interval add(Interval x, Interval y, unsigned width) {
    return emitSum(x, y, /*subtracts=*/false, width);
  }
  Interval subtract(Interval x, Interval y, unsigned width) {
    return emitSum(x, y, /*subtracts=*/true, width);
  }
  Interval multiply(Interval x, int64_t factor, unsigned width);
  /// Applies a monotonic operation of i64 that never wraps, such as `divsi` by
  /// a positive constant, to both bounds.
  template <typename OpTy> Interval map(Interval x, int64_t operand) {
    Value constant = createConstant(operand);
    return {b.createOrFold<OpTy>(x.low, constant),
            b.createOrFold<OpTy>(x.high, constant), x.bits};
  }
  /// Like `map`, for operations on unsigned numbers.
  template <typename OpTy>
  Interval mapUnsigned(Interval x, int64_t operand, unsigned width) {
    return holdIf(isAtLeast(x.low, 0), map<OpTy>(x, operand), width);
  }
  /// The remainder of a division by a positive divisor.
  Interval getRemainder(Interval x, int64_t divisor, bool isUnsigned);
  Interval getMin(Interval x, Interval y) {
    return mapBoth<arith::MinSIOp>(x, y);
  }
  Interval getMax(Interval x, Interval y) {
    return mapBoth<arith::MaxSIOp>(x, y);
  }
  Interval getAbs(Interval x, unsigned width);
  /// Returns the bounds of both intervals together.
  Interval unite(Interval x, Interval y);
  Interval select(Value condition, Interval x, Interval y);
  /// Bounds of integers that are truncated to `width` bits, and of integers
  /// of `fromWidth` bits that are zero-extended.
  Interval truncate(Interval x, unsigned width);
  Interval extendUnsigned(Interval x, unsigned fromWidth);

  Truth compare(arith::CmpIPredicate predicate, Interval x, Interval y);
  Truth both(Truth x, Truth y);
  Truth either(Truth x, Truth y);
  Truth negate(Truth x);
  Truth differ(Truth x, Truth y);

  // Operations on i1 and i64 values. Those on i1 return null if one is null.
  Value conjoin(Value x, Value y);
  Value disjoin(Value x, Value y);
  Value negate(Value x);
  Value isAtLeast(Value x, int64_t min);
  Value compare(arith::CmpIPredicate predicate, Value x, Value y);
  Value choose(Value condition, Value x, Value y);

private:
  /// Returns the bounds of `x + y`, or `x - y` if `subtracts`.
  Interval emitSum(Interval x, Interval y, bool subtracts, unsigned width);
  /// Applies an operation that is monotonic in both operands to the bounds.
  template <typename OpTy> Interval mapBoth(Interval x, Interval y) {
    return {b.createOrFold<OpTy>(x.low, y.low),
            b.createOrFold<OpTy>(x.high, y.high), std::max(x.bits, y.bits)};
  }
  /// Returns `x` if `isExact`, which may be null, and the bounds fit in
  /// `width` bits; else the bounds of all integers of this width.
  Interval holdIf(Value isExact, Interval x, unsigned width);
  /// Maps bounds to those of the same bits as unsigned numbers.
  Interval toUnsigned(Interval x);

  ImplicitLocOpBuilder &b;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_TRANSFORMS_INTERVALS_H
