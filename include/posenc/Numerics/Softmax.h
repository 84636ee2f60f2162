//===- Softmax.h - online softmax -------------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formulas of online softmax, which all kernels of attention share. The
// state of a row after some keys with scores s_j and values v_j is its running
// max m, its running sum l = sum_j e^(s_j - m), and its accumulator
// acc = sum_j e^(s_j - m) v_j.
//
//   step:   m' = max(m, max_j s_j),  r = e^(m - m'),  p_j = e^(s_j - m'),
//           l' = r l + sum_j p_j,    acc' = r acc + sum_j p_j v_j
//   merge:  m = max_i m_i,           r_i = e^(m_i - m),
//           l = sum_i r_i l_i,       acc = sum_i r_i acc_i
//   end:    acc / l,                 m + ln l
//
// A sink is a key whose value is 0: the row starts with m = sink and l = 1.
//
// The order in which weights are summed depends on registers and threads. It
// belongs to the kernels, which add the weights themselves.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_SOFTMAX_H
#define POSENC_NUMERICS_SOFTMAX_H

#include "posenc/Numerics/ElementwiseBuilder.h"

namespace mlir::posenc {

/// Emits 2^x in f32 with a relative error of 2e-7, for x <= 127; 0 for
/// x <= -127, and NaN for NaN.
Value emitExp2(ElementwiseBuilder &b, Value x);
/// Emits the natural logarithm of normal f32 numbers, with an error of 2e-7 or
/// that part of it. A NaN is taken for a number.
Value emitLog(ElementwiseBuilder &b, Value x);

/// The arithmetic of softmax, on scalars or vectors of a float type. A
/// derived class says what the maximum, the exponential and the logarithm are
/// on its target.
class SoftmaxBuilder : public ElementwiseBuilder {
public:
  virtual ~SoftmaxBuilder() = default;

  /// Returns the larger number. If one of them is NaN, the result is either
  /// one: the weight of a NaN score is NaN in any case. By default it is `y`,
  /// which is one instruction of x86-64, unlike `maximumf`.
  virtual Value max(Value x, Value y);
  /// Returns e^(x * unit), for the difference `x` of a score and a running max.
  virtual Value exp(Value x) = 0;
  /// Returns the natural logarithm of a running sum.
  virtual Value log(Value x) = 0;

  Value number(double value) {
    return constant(builder.getFloatAttr(element, value));
  }
  bool isNatural() const { return unit == 1; }
  /// Whether running maxes are finite, so that their difference is a number.
  bool hasFiniteStart() const;

  /// The element type of scores and sums.
  const FloatType element;
  /// The natural exponent of a score of 1: 1, or ln 2 if scores are exponents
  /// of base 2.
  const double unit;
  /// The running max of a row without a visible key: minus infinity, or
  /// the lowest finite number.
  const double start;

protected:
  SoftmaxBuilder(OpBuilder &builder, Location loc, Type type, double unit,
                 double start);
};

/// Softmax in f32 of the vector kernels of CPUs. Scores are exponents of base
/// 2, and the running max starts at the lowest finite number.
class Base2Softmax : public SoftmaxBuilder {
public:
  Base2Softmax(OpBuilder &builder, Location loc, Type type);
  Value exp(Value x) override { return emitExp2(*this, x); }
  Value log(Value x) override { return emitLog(*this, x); }
};

/// Softmax by functions of the math dialect, in any float type. The running max
/// starts at minus infinity.
class MathSoftmax : public SoftmaxBuilder {
public:
  MathSoftmax(OpBuilder &builder, Location loc, Type type);
  Value exp(Value x) override { return math::ExpOp::create(builder, loc, x); }
  Value log(Value x) override { return math::LogOp::create(builder, loc, x); }
};

/// The running max m and the running sum l of a row.
struct SoftmaxState {
  Value max, sum;
};

/// Returns the state of a row without a visible key.
SoftmaxState emitEmptyState(SoftmaxBuilder &b);
/// Returns the state of a row without a visible key, but with a sink, for
/// `Base2Softmax`. The max is finite for any sink.
SoftmaxState emitSinkState(SoftmaxBuilder &b, Value sink);

/// The base of the scores of a row.
struct SoftmaxBase {
  /// The number that is subtracted from scores: the running max, or 0 if that
  /// is minus infinity.
  Value value;
  /// i1: whether the running max is minus infinity. Null if it is always
  /// finite.
  Value isEmpty;
};
SoftmaxBase emitBase(SoftmaxBuilder &b, Value max);

/// Returns e^(x - base): the weight of a key with the score `x`, or the factor
/// of a state with the running max `x`. Both are 0 for minus infinity.
Value emitExp(SoftmaxBuilder &b, Value x, Value base);

/// Returns `before`, or `max` if that exceeds `before` by more than a factor of
/// 2^8. With this for the running max, weights are at most 2^8, and the factor
/// of a step is nearly always 1.
Value emitLazyMax(SoftmaxBuilder &b, Value before, Value max);

/// The step from a running max to the next one.
struct SoftmaxStep {
  SoftmaxBase base;
  /// The factor of the running sum and of the accumulator.
  Value factor;
};
/// Emits the step from the running max `before` to `max`, the maximum of it and
/// of the new scores.
SoftmaxStep emitStep(SoftmaxBuilder &b, Value before, Value max);

/// The merge of states of one row, each of some of its keys.
struct SoftmaxMerge {
  Value max;
  /// The factor of each state, for its running sum and its accumulator.
  SmallVector<Value> factors;
};
SoftmaxMerge emitMerge(SoftmaxBuilder &b, ValueRange maxes);
/// Returns the sum of products, the first one rounded, the others fused, in the
/// order of the lists.
Value emitMergedSum(SoftmaxBuilder &b, ValueRange sums, ValueRange factors);

/// A row with its sink, and the share of the keys in the running sum.
struct SinkMerge {
  SoftmaxState state;
  Value share;
};
/// Adds the sink to the state of a row that has not counted it, for
/// `Base2Softmax`.
SinkMerge emitSinkMerge(SoftmaxBuilder &b, const SoftmaxState &keys,
                        Value sink);

/// Returns acc / l, and 0 for a row without keys. With 1 for `acc`, the factor
/// that normalizes accumulators.
Value emitQuotient(SoftmaxBuilder &b, Value acc, Value sum);
/// Returns the log-sum-exp of a row. Without a visible key, it is the sink bit
/// for bit, or minus infinity if there is none. Where scores are exponents of
/// base 2, `sink` is the row's sink in natural units, or null; otherwise the
/// running max is the sink.
Value emitLogSum(SoftmaxBuilder &b, const SoftmaxState &state,
                 Value sink = nullptr);

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_SOFTMAX_H
