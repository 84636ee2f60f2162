//===- ScalarBounds.h - scalars with error bounds ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel rounds where the reference does not. Each scalar therefore carries a
// bound on the error of the kernel's value: the largest effect of the operands'
// errors plus the rounding of the operation itself.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_INTERPRETER_SCALARBOUNDS_H
#define POSENC_LIB_INTERPRETER_SCALARBOUNDS_H

#include "ScalarProgram.h"

#include <cassert>

namespace mlir::posenc {

enum class Propagation;

/// A value of the reference and a bound on its difference from the kernel's.
struct BoundedScalar {
  Scalar value = Scalar::of(int64_t(0));
  /// Infinite if there is no bound.
  double error = 0;
};

/// The rounding of an operation's result: none, to nearest, or that of a
/// function with an error of up to 4 ulp.
enum class Rounding { None, Once, Function };

/// Rounds a value to a float type: adds the rounding error to its bound, and
/// replaces a value that certainly overflows by an infinity.
BoundedScalar roundBounded(Type type, double value, double error,
                           Rounding rounding);

/// Returns the product without rounding.
BoundedScalar multiplyBounded(const BoundedScalar &a, const BoundedScalar &b);

/// Runs a program, which must not round itself, with error bounds. Set the
/// arguments before each run.
class BoundedRun {
public:
  explicit BoundedRun(const ScalarProgram &program);

  BoundedScalar &getArgument(unsigned number) {
    assert(number < registers.size() && "there is no such argument");
    return registers[number];
  }
  const BoundedScalar &getResult(unsigned number) const {
    return registers[program.getResults()[number]];
  }
  void run(ArrayRef<int64_t> loopIndices);

private:
  struct Step {
    const ScalarStep *step;
    Propagation propagation;
    Rounding rounding;
  };

  BoundedScalar compute(const Step &step, ArrayRef<BoundedScalar> operands);

  const ScalarProgram &program;
  std::vector<BoundedScalar> registers;
  std::vector<Step> steps;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_INTERPRETER_SCALARBOUNDS_H
