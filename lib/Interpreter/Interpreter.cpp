//===- Interpreter.cpp - reference evaluation of functions ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluator.h"

#include "posenc/Support/Memory.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::posenc;
namespace reference = ::posenc::reference;
using reference::DType;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::optional<DType> mlir::posenc::getReferenceType(Type elementType) {
  if (elementType.isF64())
    return DType::F64;
  if (elementType.isF32())
    return DType::F32;
  if (elementType.isF16())
    return DType::F16;
  if (elementType.isBF16())
    return DType::BF16;
  if (isa<Float8E4M3FNType>(elementType))
    return DType::F8E4M3;
  if (isa<Float8E5M2Type>(elementType))
    return DType::F8E5M2;
  if (elementType.isSignlessInteger(8))
    return DType::I8;
  if (elementType.isIndex() || elementType.isSignlessInteger(64))
    return DType::I64;
  // An i1 is an I32: every number except 0 is true.
  if (elementType.isSignlessInteger(32) || elementType.isSignlessInteger(1))
    return DType::I32;
  return std::nullopt;
}

const ReferenceValue &Evaluator::get(Value value) {
  const ReferenceValue &found = getExact(value);
  // Only computed values have more precision than their type.
  if (found.array.magnitude.empty())
    return found;
  auto [it, isNew] = rounded.try_emplace(value.getAsOpaquePointer());
  if (!isNew)
    return it->second;
  it->second = found;
  it->second.array.magnitude.clear();
  for (long double &element : it->second.array.values)
    element = reference::roundTo(found.type, element);
  return it->second;
}

int64_t Evaluator::getInteger(OpFoldResult value) {
  if (auto attribute = dyn_cast<Attribute>(value))
    return cast<IntegerAttr>(attribute).getInt();
  return mlir::posenc::getInteger(getExact(cast<Value>(value)), 0);
}

SmallVector<int64_t> Evaluator::getIntegers(ArrayRef<OpFoldResult> list) {
  return llvm::map_to_vector(
      list, [&](OpFoldResult value) { return getInteger(value); });
}

std::vector<int64_t> Evaluator::getElements(Value value) {
  const auto &elements = getExact(value).array.values;
  return std::vector<int64_t>(elements.begin(), elements.end());
}

reference::Positions Evaluator::getPositions(Value value) {
  const auto &elements = get(value).array.values;
  reference::Positions positions(elements.begin(), elements.end());
  if (isa<FloatType>(getElementTypeOrSelf(value.getType())))
    for (long double &position : positions)
      if (!(std::fabs(position) < 0x1p63L))
        position = std::numeric_limits<long double>::quiet_NaN();
  return positions;
}

LogicalResult mlir::posenc::checkShape(Operation *op, const Shape &shape) {
  int64_t count = 1;
  constexpr int64_t maxCount = int64_t(1) << 31;
  bool empty = llvm::is_contained(shape, 0);
  for (int64_t size : shape) {
    if (size < 0)
      return op->emitError() << "expected a non-negative size, got " << size;
    if (!empty && size > maxCount / count)
      return op->emitError("the reference supports at most 2^31 elements");
    count *= empty ? 1 : size;
  }
  // A value and its magnitude, twice, since an operation has an operand and a
  // result of this size.
  uint64_t bytes = empty ? 0 : uint64_t(count) * 4 * sizeof(long double);
  if (bytes > (uint64_t(1) << 24) && bytes > ::posenc::getAvailableMemory())
    return op->emitError() << "the reference needs " << (bytes >> 20)
                           << " MiB of memory for " << count << " elements";
  return success();
}

LogicalResult mlir::posenc::checkShape(Operation *op, const Shape &shape,
                                       Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (shaped && !shaped.hasRank())
    return op->emitError() << "the reference does not support " << type;
  ArrayRef<int64_t> expected = shaped ? shaped.getShape() : ArrayRef<int64_t>();
  bool fits = expected.size() == shape.size();
  for (size_t dim = 0; fits && dim < shape.size(); ++dim)
    fits = ShapedType::isDynamic(expected[dim]) || expected[dim] == shape[dim];
  if (fits)
    return checkShape(op, shape);
  InFlightDiagnostic error = op->emitError("sizes ");
  llvm::interleave(
      shape, [&](int64_t size) { error << size; }, [&] { error << "x"; });
  return error << " do not match " << type;
}

LogicalResult mlir::posenc::reject(Operation *op, const std::string &reason) {
  if (reason.empty())
    return success();
  return op->emitError() << "rejected by the reference: " << reason;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Checks that the function has a single block and works on tensors.
static LogicalResult checkFunction(FunctionOpInterface function) {
  for (Type type : function.getArgumentTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!getReferenceType(tensor ? tensor.getElementType() : type))
      return function.emitError()
             << "the reference supports only tensors and numbers, got " << type;
  }
  if (function.isExternal() ||
      !llvm::hasSingleElement(function.getFunctionBody()))
    return function.emitError(
        "the reference supports only functions with a single block");
  return success();
}

static LogicalResult bindArguments(FunctionOpInterface function,
                                   std::vector<ReferenceValue> arguments,
                                   Evaluator &values) {
  if (arguments.size() != function.getNumArguments())
    return function.emitError() << "expected " << function.getNumArguments()
                                << " arguments, got " << arguments.size();
  for (auto [argument, value] :
       llvm::zip_equal(function.getArguments(), arguments)) {
    Type type = argument.getType();
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (getReferenceType(tensor ? tensor.getElementType() : type) != value.type)
      return function.emitError() << "expected argument #"
                                  << argument.getArgNumber() << " of " << type;
    if (failed(checkShape(function, value.array.shape, type)))
      return failure();
    values.set(argument, std::move(value));
  }
  return success();
}

/// Checks that the errors of the operands can be propagated. Structured
/// operations propagate any error of each element. Other operations need errors
/// in units of their operands, which attention results do not have: their error
/// depends on the values of the attention.
static LogicalResult checkOperands(Operation *op, Evaluator &values) {
  if (isa<linalg::LinalgOp>(op))
    return success();
  for (Value operand : op->getOperands())
    if (values.getExact(operand).isAttention)
      return op->emitError("the reference has no error bound for values "
                           "computed from an attention result");
  for (Value operand : op->getOperands()) {
    const ReferenceValue &value = values.getExact(operand);
    bool isUncertain = !reference::isFloat(value.type) && value.limitUlp != 0;
    if (isUncertain ||
        llvm::is_contained(value.array.magnitude, reference::kUnknownMagnitude))
      return op->emitError(
          "the reference has no error bound for values computed from numbers "
          "that rounding may change");
  }
  return success();
}

static LogicalResult evaluate(Operation *op, Evaluator &values) {
  // The call of the kernel has checked it.
  if (isa<cf::AssertOp>(op))
    return success();
  // Operations that only move elements propagate all errors.
  for (auto kind : {evaluateTensor, evaluateRelayout, evaluateMoves})
    if (std::optional<LogicalResult> result = kind(op, values))
      return *result;
  if (failed(checkOperands(op, values)))
    return failure();
  for (auto kind : {evaluatePosenc, evaluateAttention, evaluateArith,
                    evaluateLinalg, evaluateStructured})
    if (std::optional<LogicalResult> result = kind(op, values))
      return *result;
  return op->emitError() << "the reference does not evaluate '" << op->getName()
                         << "'";
}

FailureOr<std::vector<ReferenceValue>>
mlir::posenc::interpret(FunctionOpInterface function,
                        std::vector<ReferenceValue> arguments) {
  if (failed(checkFunction(function)))
    return failure();
  Evaluator values;
  if (failed(bindArguments(function, std::move(arguments), values)))
    return failure();
  std::vector<ReferenceValue> results;
  for (Operation &op : function.getFunctionBody().front()) {
    if (!isa<func::ReturnOp>(op)) {
      if (failed(evaluate(&op, values)))
        return failure();
      continue;
    }
    for (Value operand : op.getOperands()) {
      ReferenceValue result = values.getExact(operand);
      if (!result.initialized)
        return op.emitError("returns an uninitialized tensor");
      if (result.array.magnitude.empty())
        result.array.magnitude.assign(result.array.values.size(), -1.0L);
      results.push_back(std::move(result));
    }
  }
  return results;
}
