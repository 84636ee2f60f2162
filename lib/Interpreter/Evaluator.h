//===- Evaluator.h - the values of one evaluation ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_INTERPRETER_EVALUATOR_H
#define POSENC_LIB_INTERPRETER_EVALUATOR_H

#include "posenc/Interpreter/Interpreter.h"

#include "mlir/IR/Operation.h"

#include <unordered_map>

namespace mlir::posenc {

using Shape = std::vector<int64_t>;

/// The values of a function's SSA values so far.
class Evaluator {
public:
  /// Rounded to its type, as an operation reads it.
  const ReferenceValue &get(Value value);
  /// As it was computed.
  const ReferenceValue &getExact(Value value) const {
    return values.find(value.getAsOpaquePointer())->second;
  }
  void set(Value value, ReferenceValue result) {
    values[value.getAsOpaquePointer()] = std::move(result);
  }

  const Shape &getShape(Value value) const {
    return getExact(value).array.shape;
  }
  /// The integer of a scalar value or attribute.
  int64_t getInteger(OpFoldResult value);
  SmallVector<int64_t> getIntegers(ArrayRef<OpFoldResult> values);
  /// All elements of an integer tensor or scalar.
  std::vector<int64_t> getElements(Value value);

private:
  // References to values stay valid while others are added.
  std::unordered_map<void *, ReferenceValue> values, rounded;
};

/// Refuses a negative size, and values that do not fit in memory.
LogicalResult checkShape(Operation *op, const Shape &shape);
/// Checks it against the static sizes of a type, too.
LogicalResult checkShape(Operation *op, const Shape &shape, Type type);

/// An error for a reason that the oracle gives, which is empty if there is
/// none.
LogicalResult reject(Operation *op, const std::string &reason);

/// The integer in an array at `index`: exact, a long double holds every i64.
inline int64_t getInteger(const ReferenceValue &value, int64_t index) {
  return static_cast<int64_t>(value.array.values[index]);
}

/// Each evaluates the operations of its kind: failure after an error, and
/// nothing if `op` is none of them.
std::optional<LogicalResult> evaluatePosenc(Operation *op, Evaluator &values);
std::optional<LogicalResult> evaluateAttention(Operation *op,
                                               Evaluator &values);
std::optional<LogicalResult> evaluateTensor(Operation *op, Evaluator &values);
std::optional<LogicalResult> evaluateArith(Operation *op, Evaluator &values);
std::optional<LogicalResult> evaluateLinalg(Operation *op, Evaluator &values);
/// Those that pad, concatenate and pack.
std::optional<LogicalResult> evaluateRelayout(Operation *op, Evaluator &values);
/// Structured operations that only move elements, and all of them.
std::optional<LogicalResult> evaluateMoves(Operation *op, Evaluator &values);
std::optional<LogicalResult> evaluateStructured(Operation *op,
                                                Evaluator &values);

} // namespace mlir::posenc

#endif // POSENC_LIB_INTERPRETER_EVALUATOR_H
