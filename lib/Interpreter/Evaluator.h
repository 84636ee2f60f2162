//===- Evaluator.h - values of one evaluation -------------------*- C++ -*-===//
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

#include <cassert>
#include <unordered_map>

namespace mlir::posenc {

using Shape = std::vector<int64_t>;

/// The values of the SSA values evaluated so far. A value must be set before it
/// is read. References stay valid while other values are added.
class Evaluator {
public:
  /// Returns the value rounded to its type, as an operation reads it.
  const ReferenceValue &get(Value value);
  /// Returns the value as computed, without rounding.
  const ReferenceValue &getExact(Value value) const {
    auto found = values.find(value.getAsOpaquePointer());
    assert(found != values.end() && "a value is read before it is set");
    return found->second;
  }
  void set(Value value, ReferenceValue result) {
    values[value.getAsOpaquePointer()] = std::move(result);
  }

  const Shape &getShape(Value value) const {
    return getExact(value).array.shape;
  }
  /// Returns the integer of a scalar value or attribute.
  int64_t getInteger(OpFoldResult value);
  SmallVector<int64_t> getIntegers(ArrayRef<OpFoldResult> values);
  /// Returns all elements of an integer tensor or scalar.
  std::vector<int64_t> getElements(Value value);
  /// Returns positions as operations read them: floats are rounded to their
  /// type, and NaN where the operations define no angle.
  ::posenc::reference::Positions getPositions(Value value);

private:
  // A std::unordered_map keeps references valid while it grows.
  std::unordered_map<void *, ReferenceValue> values, rounded;
};

/// Reports an error at `op` for negative sizes, and for values that do not fit
/// in memory.
LogicalResult checkShape(Operation *op, const Shape &shape);
/// Also checks the shape against the rank and static sizes of a type.
LogicalResult checkShape(Operation *op, const Shape &shape, Type type);

/// Reports the reason that a check of the oracle returned. Returns success if
/// the reason is empty.
LogicalResult reject(Operation *op, const std::string &reason);

/// Returns the integer at `index` of an array. Every i64 is exact in a long
/// double.
inline int64_t getInteger(const ReferenceValue &value, int64_t index) {
  return static_cast<int64_t>(value.array.values[index]);
}

// Each function evaluates operations of one kind. It returns nullopt if `op` is
// not one of them, and failure after a diagnostic.

std::optional<LogicalResult> evaluatePosenc(Operation *op, Evaluator &values);
std::optional<LogicalResult> evaluateAttention(Operation *op,
                                               Evaluator &values);
std::optional<LogicalResult> evaluateTensor(Operation *op, Evaluator &values);
std::optional<LogicalResult> evaluateArith(Operation *op, Evaluator &values);
std::optional<LogicalResult> evaluateLinalg(Operation *op, Evaluator &values);
/// Evaluates tensor.pad, tensor.concat, linalg.pack and linalg.unpack.
std::optional<LogicalResult> evaluateRelayout(Operation *op, Evaluator &values);
/// Evaluates structured operations that only move elements.
std::optional<LogicalResult> evaluateMoves(Operation *op, Evaluator &values);
/// Evaluates all structured operations.
std::optional<LogicalResult> evaluateStructured(Operation *op,
                                                Evaluator &values);

} // namespace mlir::posenc

#endif // POSENC_LIB_INTERPRETER_EVALUATOR_H
