//===- ScalarBounds.h - scalars and how far they may be off -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel rounds where the reference does not, so that beside each number
// stands how far the kernel's may be off: what the errors of the operands
// change at the most, and the operation's own rounding.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_INTERPRETER_SCALARBOUNDS_H
#define POSENC_LIB_INTERPRETER_SCALARBOUNDS_H

#include "ScalarProgram.h"

namespace mlir::posenc {

enum class Propagation;

struct BoundedScalar {
  Scalar value = Scalar::of(int64_t(0));
  /// Infinite if nothing is known of the kernel's number.
  double error = 0;
};

/// How often an operation rounds its result: not at all, once, or as a function
/// does that is within 4 units.
enum class Rounding { None, Once, Function };

/// Rounds a real number to a float type, that is adds to its error, and makes
/// an infinity of what overflows.
BoundedScalar roundBounded(Type type, double value, double error,
                           Rounding rounding);

/// The product before it is rounded.
BoundedScalar multiplyBounded(const BoundedScalar &a, const BoundedScalar &b);

/// Runs a program that does not round. The arguments stand in the first
/// registers.
class BoundedRun {
public:
  explicit BoundedRun(const ScalarProgram &program);

  BoundedScalar &getArgument(unsigned number) { return registers[number]; }
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
