//===- MathFunctions.h - exact math functions -------------------*- C++ -*-===//
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
  /// f(-x) is -f(x), f(x), or neither.
  enum Symmetry { Odd, Even, None } symmetry;
  /// The f64 result of libm, within 1 or 2 units in the last place.
  double (*ofLibm)(double x, double y);
  /// The correctly rounded result. `result` is an mpfr_ptr, `x` and `y` are
  /// mpfr_srcptr.
  void (*ofMpfr)(void *result, const void *x, const void *y);
};
void PrintTo(const MathFunction &function, std::ostream *os);

/// Returns the functions of the math dialect that kernels support, except for
/// those that are a single instruction.
const std::vector<MathFunction> &getMathFunctions();

/// Evaluates the function and rounds the exact result once to 64 bits.
long double evaluate(const MathFunction &function, double x, double y = 0);

/// Returns MLIR with a `func.func @<name>` for each function, of tensors
/// `tensor<?xdtype>`.
std::string makeMathModule(posenc_dtype dtype);

/// Returns numbers of f32 or f64: every exponent with some mantissas and both
/// signs, the numbers nearest to multiples of pi/2, and those around each point
/// where a function changes its formula, overflows or has a zero.
std::vector<double> makeHardArguments(bool isF32);

/// Makes an array of `dtype` and rounds the numbers to it.
runtime::Array toArray(posenc_dtype dtype, const std::vector<double> &numbers);

} // namespace posenc::test

#endif // POSENC_TEST_NUMERICS_MATHFUNCTIONS_H
