//===- ScalarProgram.h - a region of scalars, to be run often ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_INTERPRETER_SCALARPROGRAM_H
#define POSENC_LIB_INTERPRETER_SCALARPROGRAM_H

#include "Evaluator.h"

#include "mlir/IR/Region.h"
#include "llvm/ADT/DenseMap.h"

#include <atomic>
#include <functional>

namespace mlir::posenc {

/// A scalar: which member counts, its type says. Integers are sign-extended.
union Scalar {
  double real;
  int64_t integer;

  static Scalar of(double value) { return {value}; }
  static Scalar of(int64_t value) {
    Scalar scalar;
    scalar.integer = value;
    return scalar;
  }
};

/// A score or where region as a list of steps. Floats are computed in f64 and
/// rounded to no type but those of 16 bits, which models choose on purpose.
class ScalarProgram {
public:
  /// Null after an error at an operation that is not known. What the region
  /// captures must have been evaluated; it is copied or must not change.
  static std::unique_ptr<ScalarProgram> create(Region &region,
                                               Evaluator &values);

  /// What the region yields. Any number of threads may call it.
  Scalar run(llvm::ArrayRef<Scalar> arguments) const;

  /// An error, at its operation, if some run did what has no meaning.
  LogicalResult checkRuns() const;

private:
  using Step = std::function<void(Scalar *registers)>;
  struct Fault {
    Operation *op;
    const char *message;
  };

  ScalarProgram() = default;
  LogicalResult add(Operation *op, Evaluator &values);
  bool addReals(Operation *op);
  bool addIntegers(Operation *op);
  bool addConversion(Operation *op);
  LogicalResult addCapture(Value value, Evaluator &values);
  LogicalResult addExtract(Operation *op, Evaluator &values);
  void addBias(Operation *op);
  /// A new register, or the one that a value has.
  unsigned define(Value value, Scalar initial = Scalar::of(int64_t(0)));
  unsigned get(Value value) const { return registers.lookup(value); }
  /// The number of a reason for checkRuns().
  int addFault(Operation *op, const char *message);
  void fail(int number) const;

  llvm::DenseMap<Value, unsigned> registers;
  std::vector<Scalar> initial;
  std::vector<Step> steps;
  std::vector<Fault> faults;
  unsigned yielded = 0;
  mutable std::atomic<int> fault{-1};
};

} // namespace mlir::posenc

#endif // POSENC_LIB_INTERPRETER_SCALARPROGRAM_H
