//===- ScalarProgram.h - compiled regions of scalars ------------*- C++ -*-===//
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

/// A scalar. Its type determines the active member. Integers are sign-extended.
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

/// Returns the bits of a scalar; an index has 64.
unsigned getScalarWidth(Type type);

/// Converts an element of an array of the oracle, where a true bit is any
/// number except 0.
Scalar loadScalar(Type type, long double element);

/// One operation of a program.
struct ScalarStep {
  Operation *op;
  /// The registers of the operands (without tensors) and of the result.
  llvm::SmallVector<unsigned, 3> from;
  unsigned to;
  std::function<Scalar(const Scalar *operands)> compute;
  /// Returns the error of the result for exact operands. Empty if the operation
  /// adds no error except its rounding.
  std::function<double(const Scalar *operands)> error;
};

/// A region of scalars as a list of steps. Floats are computed in f64. Only
/// 16-bit types are rounded to, because models choose these deliberately.
class ScalarProgram {
public:
  /// Creates a program for a score or where region. Returns null after an error
  /// at an unsupported operation. Captured values must be set in `values`.
  /// Captured scalars are copied; captured tensors must outlive the program.
  static std::unique_ptr<ScalarProgram> create(Region &region,
                                               Evaluator &values);
  /// Creates a program that computes `results`, values of the region. `rounds`
  /// tells whether results of 16-bit floats are rounded.
  static std::unique_ptr<ScalarProgram> create(Region &region,
                                               ArrayRef<Value> results,
                                               Evaluator &values, bool rounds);
  /// Creates a program for one operation outside of a region.
  static std::unique_ptr<ScalarProgram> create(Operation *op,
                                               Evaluator &values);

  /// Runs the program and returns its first result. Thread-safe.
  Scalar run(llvm::ArrayRef<Scalar> arguments) const;

  /// Reports an error if a run has executed an undefined operation, such as a
  /// division by zero.
  LogicalResult checkRuns() const;

  ArrayRef<ScalarStep> getSteps() const { return steps; }
  /// The registers before a run, beginning with those of the arguments, and the
  /// error of each: captured values may be inexact.
  ArrayRef<Scalar> getInitial() const { return initial; }
  ArrayRef<double> getInitialErrors() const { return initialErrors; }
  /// The registers of the results.
  ArrayRef<unsigned> getResults() const { return yielded; }
  /// The registers of loop indices, each with the number of its loop.
  ArrayRef<std::pair<unsigned, int64_t>> getIndices() const { return indices; }

private:
  struct Fault {
    Operation *op;
    const char *message;
  };

  explicit ScalarProgram(bool rounds) : rounds(rounds) {}
  LogicalResult add(Operation *op, Evaluator &values);
  /// Adds a step for an operation. `compute` gets the operands without tensors.
  void push(Operation *op, std::function<Scalar(const Scalar *)> compute);
  double round(Type type, double value) const;
  bool addReals(Operation *op);
  bool addIntegers(Operation *op);
  bool addConversion(Operation *op);
  LogicalResult addCapture(Value value, Evaluator &values);
  LogicalResult addExtract(Operation *op, Evaluator &values);
  void addBias(Operation *op);
  /// Returns the register of a value, creating it if needed.
  unsigned define(Value value, Scalar initial = Scalar::of(int64_t(0)),
                  double error = 0);
  /// Registers an error for checkRuns() and returns its number.
  int addFault(Operation *op, const char *message);
  void fail(int number) const;

  llvm::DenseMap<Value, unsigned> registers;
  std::vector<Scalar> initial;
  std::vector<double> initialErrors;
  std::vector<ScalarStep> steps;
  std::vector<Fault> faults;
  SmallVector<unsigned, 1> yielded;
  SmallVector<std::pair<unsigned, int64_t>, 1> indices;
  const bool rounds;
  mutable std::atomic<int> fault{-1};
};

} // namespace mlir::posenc

#endif // POSENC_LIB_INTERPRETER_SCALARPROGRAM_H
