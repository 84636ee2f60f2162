//===- MathFunctions.h - the functions of math, exactly ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_NUMERICS_MATHFUNCTIONS_H
#define POSENC_TEST_NUMERICS_MATHFUNCTIONS_H

#include "Harness.h"

#include <ostream>

namespace posenc::test {

/// A function of one or two numbers, `math.<name>`.
struct MathFunction {
  const char *name;
  int arity;
  /// What f(-x) is: -f(x), f(x), or something else.
  enum Symmetry { Odd, Even, None } symmetry;
  /// In f64, within a unit or two in the last place.
  double (*ofLibm)(double x, double y);
  /// `result` is an mpfr_ptr, and `x` and `y` are mpfr_srcptr.
  void (*ofMpfr)(void *result, const void *x, const void *y);
};
void PrintTo(const MathFunction &function, std::ostream *os);

/// All that kernels have, other than what is one instruction.
const std::vector<MathFunction> &getMathFunctions();

/// The function of exactly these numbers, rounded once to 64 bits.
long double evaluate(const MathFunction &function, double x, double y = 0);

/// `func.func @<name>` for each function, from vectors of the type.
std::string makeMathModule(posenc_dtype dtype);

/// Numbers of f32 or f64: every exponent with some mantissas and both signs,
/// those nearest to multiples of pi/2, and those around each point where a
/// function is computed in another way, overflows or has a zero.
std::vector<double> makeHardArguments(bool isF32);

/// As an array of the type, to which the numbers are rounded.
runtime::Array toArray(posenc_dtype dtype, const std::vector<double> &numbers);

} // namespace posenc::test

#endif // POSENC_TEST_NUMERICS_MATHFUNCTIONS_H
