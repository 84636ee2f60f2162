//===- TableErrors.h - errors of tables of all positions --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_NUMERICS_TABLEERRORS_H
#define POSENC_TEST_NUMERICS_TABLEERRORS_H

#include "posenc/Reference/Frequencies.h"

#include <cstdint>
#include <vector>

namespace posenc::test {

/// The number to which an error is relative: the element of a table, or the
/// length of the pair (1, 0), whose rotation results in cos and sin.
enum class ErrorUnit { Element, Pair };

/// The largest error of a table, in units in the last place of f32.
struct TableError {
  double ulp = -1;
  int64_t position = 0;
  int64_t pair = 0;
  bool isSine = false;
};

/// Measures f32 tables of consecutive positions from 0 to 2^20.
///
/// MPFR needs microseconds for an angle. Here the angle of a position is a
/// product of integers: the frequency is rounded to 2^-128 turns, so that the
/// error of an angle is at most 2^-108 turns, and whole turns overflow. What is
/// left of an eighth of a turn, in two doubles, goes to libm's sine and cosine.
/// A result has a relative error of some 2^-52, or 2^-28 units in the last
/// place of f32.
class TableErrors {
public:
  /// `spec` is valid and has a list, or frequencies b^(-2i/d).
  explicit TableErrors(const reference::FrequencySpec &spec);

  int64_t numPairs() const { return pairs.size(); }

  /// Returns the error of the elements of `count` rows, of which the first is
  /// that of the position `first`. `cos` and `sin` have a column for each pair.
  TableError findLargest(int64_t first, int64_t count, const float *cos,
                         const float *sin,
                         ErrorUnit unit = ErrorUnit::Element) const;

  /// Returns the error of the element at `where`, of which MPFR computes the
  /// exact value.
  double measureByMpfr(const TableError &where, float element,
                       ErrorUnit unit = ErrorUnit::Element) const;

  /// Returns by how much the two references differ at most, at these positions
  /// and all pairs, in units in the last place of f32.
  double compareWithMpfr(const std::vector<int64_t> &positions) const;

private:
  struct Pair {
    unsigned __int128 turns; // 2^-128 of a turn for each position, mod 1
    float rounded;           // the frequency, if angles are rounded
    reference::Real frequency;
  };
  struct Exact {
    double cos, sin;
  };
  Exact evaluate(const Pair &pair, int64_t position) const;
  Exact evaluateByMpfr(const Pair &pair, int64_t position) const;

  std::vector<Pair> pairs;
  bool roundsAngles;
  double factor;
  reference::Real exactFactor;
};

} // namespace posenc::test

#endif // POSENC_TEST_NUMERICS_TABLEERRORS_H
