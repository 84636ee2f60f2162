//===- ArithOps.cpp - reference evaluation of constants and scalars -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Limits.h"
#include "ScalarBounds.h"

#include "posenc/IR/Weights.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::reference::DType;

static long double toLongDouble(const APFloat &value) {
  // All supported float types convert to double without loss.
  APFloat wide = value;
  bool losesInfo;
  wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return wide.convertToDouble();
}

/// Returns the elements of a constant, copied if they are a resource; null if
/// they are neither.
static DenseElementsAttr getDense(Attribute value) {
  auto resource = dyn_cast<DenseResourceElementsAttr>(value);
  std::optional<ArrayRef<char>> bytes =
      resource ? getStoredBytes(resource) : std::nullopt;
  return bytes ? DenseElementsAttr::getFromRawBuffer(resource.getType(), *bytes)
               : dyn_cast<DenseElementsAttr>(value);
}

static LogicalResult evaluate(arith::ConstantOp op, Evaluator &values) {
  Type elementType = getElementTypeOrSelf(op.getType());
  std::optional<DType> type = getReferenceType(elementType);
  if (!type)
    return op.emitError() << "the reference does not support " << op.getType();
  ReferenceValue result;
  result.type = *type;
  auto &elements = result.array.values;
  if (auto integer = dyn_cast<IntegerAttr>(op.getValue())) {
    elements = {static_cast<long double>(integer.getInt())};
  } else if (auto real = dyn_cast<FloatAttr>(op.getValue())) {
    elements = {toLongDouble(real.getValue())};
  } else if (DenseElementsAttr dense = getDense(op.getValue())) {
    ArrayRef<int64_t> shape = cast<ShapedType>(op.getType()).getShape();
    result.array.shape.assign(shape.begin(), shape.end());
    if (failed(checkShape(op, result.array.shape)))
      return failure();
    if (isa<FloatType>(elementType))
      for (const APFloat &element : dense.getValues<APFloat>())
        elements.push_back(toLongDouble(element));
    else
      for (const APInt &element : dense.getValues<APInt>())
        elements.push_back(static_cast<long double>(element.getSExtValue()));
  } else {
    return op.emitError("the reference supports only dense constants");
  }
  values.set(op.getResult(), std::move(result));
  return success();
}

/// Applies `compute` to integer elements. Wraps around at 64 or 32 bits, as the
/// kernels do.
static LogicalResult
mapElements(Operation *op, Evaluator &values,
            function_ref<uint64_t(ArrayRef<uint64_t>)> compute) {
  Value result = op->getResult(0);
  std::optional<DType> type =
      getReferenceType(getElementTypeOrSelf(result.getType()));
  if (!type)
    return op->emitError() << "the reference does not support "
                           << result.getType();
  // The oracle represents a true bit as any number except 0.
  for (Type kind : {op->getOperand(0).getType(), result.getType()})
    if (getElementTypeOrSelf(kind).isInteger(1))
      return op->emitError()
             << "the reference does not support arithmetic on " << kind;
  const Shape &shape = values.getShape(op->getOperand(0));
  SmallVector<const ReferenceValue *> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(&values.getExact(operand));
    if (operands.back()->array.shape != shape)
      return op->emitError("the operands have different shapes");
    if (!operands.back()->initialized)
      return op->emitError("reads an uninitialized tensor");
  }
  if (failed(checkShape(op, shape, result.getType())))
    return failure();
  ReferenceValue mapped;
  mapped.type = *type;
  mapped.array.shape = shape;
  SmallVector<uint64_t> inputs(operands.size());
  for (int64_t i = 0; i < ::posenc::reference::numElements(shape); ++i) {
    for (auto [input, operand] : llvm::zip_equal(inputs, operands))
      input = uint64_t(getInteger(*operand, i));
    uint64_t bits = compute(inputs);
    int64_t element =
        *type == DType::I32 ? int64_t(int32_t(uint32_t(bits))) : int64_t(bits);
    mapped.array.values.push_back(static_cast<long double>(element));
  }
  values.set(result, std::move(mapped));
  return success();
}

/// Evaluates scalar operations outside of regions.
static std::optional<LogicalResult> evaluateScalar(Operation *op,
                                                   Evaluator &values) {
  if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
      !isa<tensor::ExtractOp>(op))
    return std::nullopt;
  if (op->getNumResults() != 1 || isa<ShapedType>(op->getResult(0).getType()))
    return std::nullopt;
  Type type = op->getResult(0).getType();
  std::optional<DType> dtype = getReferenceType(type);
  if (!dtype)
    return op->emitError() << "the reference does not support " << type;
  std::unique_ptr<ScalarProgram> program = ScalarProgram::create(op, values);
  if (!program)
    return failure();
  BoundedRun run(*program);
  run.run({});
  if (failed(program->checkRuns()))
    return failure();
  const BoundedScalar &scalar = run.getResult(0);
  ReferenceValue result;
  result.type = *dtype;
  result.array.values = {isa<FloatType>(type)
                             ? (long double)(scalar.value.real)
                             : (long double)(scalar.value.integer)};
  setElementErrors(result, scalar.error);
  values.set(op->getResult(0), std::move(result));
  return success();
}

std::optional<LogicalResult> mlir::posenc::evaluateArith(Operation *op,
                                                         Evaluator &values) {
  using Operands = ArrayRef<uint64_t>;
  return llvm::TypeSwitch<Operation *, std::optional<LogicalResult>>(op)
      .Case([&](arith::ConstantOp constant) {
        return evaluate(constant, values);
      })
      .Case([&](arith::AddIOp) {
        return mapElements(op, values,
                           [](Operands list) { return list[0] + list[1]; });
      })
      .Case([&](arith::SubIOp) {
        return mapElements(op, values,
                           [](Operands list) { return list[0] - list[1]; });
      })
      .Case([&](arith::MulIOp) {
        return mapElements(op, values,
                           [](Operands list) { return list[0] * list[1]; });
      })
      // Values are kept sign-extended; mapElements() truncates to the width of
      // the result.
      .Case<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>([&](auto) {
        return mapElements(op, values, [](Operands list) { return list[0]; });
      })
      .Default([&](Operation *) { return evaluateScalar(op, values); });
}
