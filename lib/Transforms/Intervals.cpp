//===- Intervals.cpp - interval arithmetic as IR --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Intervals.h"

#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::posenc;
using arith::CmpIPredicate;

unsigned mlir::posenc::getIntegerWidth(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value IntervalBuilder::createConstant(int64_t value) {
  return arith::ConstantIntOp::create(b, value, 64);
}

Value IntervalBuilder::conjoin(Value x, Value y) {
  return x && y ? b.createOrFold<arith::AndIOp>(x, y) : Value();
}

Value IntervalBuilder::disjoin(Value x, Value y) {
  return x && y ? b.createOrFold<arith::OrIOp>(x, y) : Value();
}

Value IntervalBuilder::negate(Value x) {
  if (!x)
    return nullptr;
  Value isTrue = arith::ConstantIntOp::create(b, 1, 1);
  return b.createOrFold<arith::XOrIOp>(x, isTrue);
}

Value IntervalBuilder::compare(CmpIPredicate predicate, Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(predicate, x, y);
}

Value IntervalBuilder::isAtLeast(Value x, int64_t min) {
  return compare(CmpIPredicate::sge, x, createConstant(min));
}

Value IntervalBuilder::choose(Value condition, Value x, Value y) {
  return b.createOrFold<arith::SelectOp>(condition, x, y);
}

//===----------------------------------------------------------------------===//
// Intervals
//===----------------------------------------------------------------------===//

Interval IntervalBuilder::fromScalar(Value scalar, unsigned bits) {
  Type type = scalar.getType();
  APInt constant;
  if (matchPattern(scalar, m_ConstantInt(&constant))) {
    Value value = createConstant(constant.getSExtValue());
    return {value, value, constant.getSignificantBits() - 1};
  }
  bits = std::min(bits, getIntegerWidth(type) - 1);
  Type i64 = b.getI64Type();
  if (type.isIndex())
    scalar = b.createOrFold<arith::IndexCastOp>(i64, scalar);
  else if (type != i64)
    scalar = b.createOrFold<arith::ExtSIOp>(i64, scalar);
  return {scalar, scalar, bits};
}

Interval IntervalBuilder::holdIf(Value isExact, Interval x, unsigned width) {
  assert(x && width >= 1 && width <= 64 && "bounds of an integer in an i64");
  int64_t min = llvm::minIntN(width), max = llvm::maxIntN(width);
  if (x.bits >= width) {
    Value fits =
        conjoin(isAtLeast(x.low, min),
                compare(CmpIPredicate::sle, x.high, createConstant(max)));
    isExact = isExact ? conjoin(isExact, fits) : fits;
  }
  if (!isExact)
    return x;
  return {choose(isExact, x.low, createConstant(min)),
          choose(isExact, x.high, createConstant(max)), width - 1};
}

Interval IntervalBuilder::emitSum(Interval x, Interval y, bool subtracts,
                                  unsigned width) {
  if (subtracts)
    std::swap(y.low, y.high);
  auto combine = [&](Value a, Value c) -> Value {
    return subtracts ? b.createOrFold<arith::SubIOp>(a, c)
                     : b.createOrFold<arith::AddIOp>(a, c);
  };
  Interval sum{combine(x.low, y.low), combine(x.high, y.high),
               std::max(x.bits, y.bits) + 1};
  if (sum.bits <= 63)
    return holdIf(nullptr, sum, width);
  // A sum that does not wrap is at least `a` if and only if `c` is not
  // negative; a difference is then at most `a`.
  auto isExact = [&](Value a, Value c, Value result) {
    return compare(CmpIPredicate::eq, isAtLeast(c, 0),
                   compare(subtracts ? CmpIPredicate::sle : CmpIPredicate::sge,
                           result, a));
  };
  sum.bits = 63;
  return holdIf(conjoin(isExact(x.low, y.low, sum.low),
                        isExact(x.high, y.high, sum.high)),
                sum, width);
}

Interval IntervalBuilder::multiply(Interval x, int64_t factor, unsigned width) {
  unsigned bits = x.bits + APInt(64, factor, true).getSignificantBits();
  if (bits > 63)
    return {};
  Interval product = map<arith::MulIOp>(x, factor);
  product.bits = bits;
  if (factor < 0)
    std::swap(product.low, product.high);
  return holdIf(nullptr, product, width);
}

Interval IntervalBuilder::getRemainder(Interval x, int64_t divisor,
                                       bool isUnsigned) {
  assert(divisor > 0 && "a divisor is positive");
  Interval quotient = map<arith::DivSIOp>(x, divisor);
  Value isPositive = isAtLeast(x.low, 0);
  Value isOnePeriod = conjoin(
      isPositive, compare(CmpIPredicate::eq, quotient.low, quotient.high));
  Interval remainder = map<arith::RemSIOp>(x, divisor);
  Value zero = createConstant(0);
  Value min =
      isUnsigned ? zero : choose(isPositive, zero, createConstant(1 - divisor));
  return {choose(isOnePeriod, remainder.low, min),
          choose(isOnePeriod, remainder.high, createConstant(divisor - 1)),
          APInt(64, divisor).getActiveBits()};
}

Interval IntervalBuilder::getAbs(Interval x, unsigned width) {
  Value zero = createConstant(0);
  // The smallest integer has no absolute value.
  Value isExact = x.bits >= width - 1
                      ? compare(CmpIPredicate::ne, x.low,
                                createConstant(llvm::minIntN(width)))
                      : Value();
  Value negativeLow = b.createOrFold<arith::SubIOp>(zero, x.low);
  Value negativeHigh = b.createOrFold<arith::SubIOp>(zero, x.high);
  // One of x.low and -x.high is positive if 0 is not between the bounds.
  Value low = b.createOrFold<arith::MaxSIOp>(
      zero, b.createOrFold<arith::MaxSIOp>(x.low, negativeHigh));
  Value high = b.createOrFold<arith::MaxSIOp>(x.high, negativeLow);
  return holdIf(isExact, {low, high, std::min(x.bits + 1, width - 1)}, width);
}

Interval IntervalBuilder::unite(Interval x, Interval y) {
  return {getMin(x, y).low, getMax(x, y).high, std::max(x.bits, y.bits)};
}

Interval IntervalBuilder::select(Value condition, Interval x, Interval y) {
  return {choose(condition, x.low, y.low), choose(condition, x.high, y.high),
          std::max(x.bits, y.bits)};
}

Interval IntervalBuilder::truncate(Interval x, unsigned width) {
  return holdIf(nullptr, x, width);
}

Interval IntervalBuilder::extendUnsigned(Interval x, unsigned fromWidth) {
  Value isPositive = isAtLeast(x.low, 0);
  if (fromWidth >= 64)
    return holdIf(isPositive, x, 64);
  int64_t max = fromWidth == 63 ? std::numeric_limits<int64_t>::max()
                                : (int64_t{1} << fromWidth) - 1;
  return {choose(isPositive, x.low, createConstant(0)),
          choose(isPositive, x.high, createConstant(max)), fromWidth};
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

Interval IntervalBuilder::toUnsigned(Interval x) {
  // Numbers of one sign have the same order as unsigned numbers; those of both
  // signs are between 0 and the largest number.
  Value isOneSign =
      compare(CmpIPredicate::eq, isAtLeast(x.low, 0), isAtLeast(x.high, 0));
  return {choose(isOneSign, x.low, createConstant(0)),
          choose(isOneSign, x.high, createConstant(-1)), 63};
}

Truth IntervalBuilder::compare(CmpIPredicate predicate, Interval x,
                               Interval y) {
  CmpIPredicate order = CmpIPredicate::slt;
  switch (predicate) {
  case CmpIPredicate::eq:
    // If all numbers are equal, both intervals are the same number.
    return {conjoin(compare(CmpIPredicate::sle, x.low, y.high),
                    compare(CmpIPredicate::sle, y.low, x.high)),
            conjoin(compare(CmpIPredicate::eq, x.low, y.high),
                    compare(CmpIPredicate::eq, x.high, y.low))};
  case CmpIPredicate::ne:
    return negate(compare(CmpIPredicate::eq, x, y));
  case CmpIPredicate::sgt:
    return compare(CmpIPredicate::slt, y, x);
  case CmpIPredicate::sge:
    return compare(CmpIPredicate::sle, y, x);
  case CmpIPredicate::ugt:
    return compare(CmpIPredicate::ult, y, x);
  case CmpIPredicate::uge:
    return compare(CmpIPredicate::ule, y, x);
  case CmpIPredicate::ult:
  case CmpIPredicate::ule:
    x = toUnsigned(x);
    y = toUnsigned(y);
    [[fallthrough]];
  case CmpIPredicate::slt:
  case CmpIPredicate::sle:
    order = predicate;
  }
  return {compare(order, x.low, y.high), compare(order, x.high, y.low)};
}

Truth IntervalBuilder::both(Truth x, Truth y) {
  // Nothing is known about a null `isAny`, so the other one decides.
  Value isAny = !x.isAny  ? y.isAny
                : y.isAny ? conjoin(x.isAny, y.isAny)
                          : x.isAny;
  return {isAny, conjoin(x.isAll, y.isAll)};
}

Truth IntervalBuilder::either(Truth x, Truth y) {
  return negate(both(negate(x), negate(y)));
}

Truth IntervalBuilder::negate(Truth x) {
  return {negate(x.isAll), negate(x.isAny)};
}

Truth IntervalBuilder::differ(Truth x, Truth y) {
  return either(both(x, negate(y)), both(negate(x), y));
}
