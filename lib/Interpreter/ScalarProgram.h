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

/// A number of the oracle, which keeps a bit as any number but 0.
Scalar loadScalar(Type type, long double element);

/// One operation of a program.
struct ScalarStep {
  Operation *op;
  /// The registers of the operands and of the result.
  llvm::SmallVector<unsigned, 3> from;
  unsigned to;
  std::function<Scalar(const Scalar *operands)> compute;
  /// How far the result may be off for operands that are exact, if that does
  /// not follow from the operation.
  std::function<double(const Scalar *operands)> error;
};

/// A region of scalars as a list of steps. Floats are computed in f64 and
/// rounded to no type but those of 16 bits, which models choose on purpose.
class ScalarProgram {
public:
  /// Of a score or where region. Null after an error at an operation that is
  /// not known. What the region captures must have been evaluated; it is copied
  /// or must not change.
  static std::unique_ptr<ScalarProgram> create(Region &region,
                                               Evaluator &values);
  /// Of a region whose `results` are wanted, whatever it yields. `rounds` tells
  /// whether floats of 16 bits are rounded.
  static std::unique_ptr<ScalarProgram> create(Region &region,
                                               ArrayRef<Value> results,
                                               Evaluator &values, bool rounds);
  /// Of one operation outside of any region.
  static std::unique_ptr<ScalarProgram> create(Operation *op,
                                               Evaluator &values);

  /// What the region yields. Any number of threads may call it.
  Scalar run(llvm::ArrayRef<Scalar> arguments) const;

  /// An error, at its operation, if some run did what has no meaning.
  LogicalResult checkRuns() const;

  ArrayRef<ScalarStep> getSteps() const { return steps; }
  /// The registers before a run, whose first ones are the arguments, and how
  /// far what the region captures may be off.
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
  /// Adds a step, whose operands are those of the operation but for tensors.
  void push(Operation *op, std::function<Scalar(const Scalar *)> compute);
  double round(Type type, double value) const;
  bool addReals(Operation *op);
  bool addIntegers(Operation *op);
  bool addConversion(Operation *op);
  LogicalResult addCapture(Value value, Evaluator &values);
  LogicalResult addExtract(Operation *op, Evaluator &values);
  void addBias(Operation *op);
  /// A new register, or the one that a value has.
  unsigned define(Value value, Scalar initial = Scalar::of(int64_t(0)),
                  double error = 0);
  /// The number of a reason for checkRuns().
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
