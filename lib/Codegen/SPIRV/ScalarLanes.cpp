//===- ScalarLanes.cpp - operations lane by lane --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarKernel.h"

#include "FloatBits.h"
#include "posenc/Numerics/MathExpansion.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::posenc;

/// Converts a constant to its lane type: a 16-bit float becomes its bits.
static TypedAttr getLaneConstant(Builder &builder, Attribute value) {
  if (auto real = dyn_cast<FloatAttr>(value))
    if (isNarrowFloat(real.getType()))
      return builder.getI32IntegerAttr(static_cast<int32_t>(
          real.getValue().bitcastToAPInt().getZExtValue()));
  return cast<TypedAttr>(value);
}

LogicalResult ScalarKernel::visitConstant(Operation *op) {
  auto constant = cast<arith::ConstantOp>(op);
  Location loc = op->getLoc();
  SmallVector<Value> scalars;
  auto add = [&](Attribute value) {
    scalars.push_back(arith::ConstantOp::create(
        builder, loc, getLaneConstant(builder, value)));
  };
  if (!isa<VectorType>(constant.getType())) {
    add(constant.getValue());
  } else {
    auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!dense)
      return op->emitOpError("is not supported in SPIR-V");
    for (Attribute value : dense.getValues<Attribute>())
      add(value);
  }
  setLanes(constant.getResult(), scalars);
  return success();
}

/// Converts operations that need special handling of 16-bit floats or of
/// rounding: conversions and the fused multiply-add.
LogicalResult ScalarKernel::visitConversion(Operation *op) {
  Location loc = op->getLoc();
  if (isa<math::FmaOp>(op)) {
    Type element = getElementTypeOrSelf(op->getResult(0).getType());
    if (isFused || !(element.isF32() || element.isF64()))
      return visitLanes(op);
    SmallVector<Value> results;
    for (auto [a, b, c] : llvm::zip_equal(getLanes(op->getOperand(0)),
                                          getLanes(op->getOperand(1)),
                                          getLanes(op->getOperand(2))))
      results.push_back(emitFusedMultiplyAdd(builder, loc, a, b, c));
    setLanes(op->getResult(0), results);
    return success();
  }

  Type from = getElementTypeOrSelf(op->getOperand(0).getType());
  Type to = getElementTypeOrSelf(op->getResult(0).getType());
  if (!isNarrowFloat(from) && !isNarrowFloat(to))
    return visitLanes(op);
  Type f32 = builder.getF32Type(), i32 = builder.getI32Type();
  SmallVector<Value> results;
  for (Value lane : getLanes(op->getOperand(0))) {
    Value result;
    if (isa<arith::ExtFOp>(op) && isNarrowFloat(from)) {
      result = emitWiden(builder, loc, lane, from);
      if (to != f32)
        result = arith::ExtFOp::create(builder, loc, to, result);
    } else if (isa<arith::TruncFOp>(op) && from == f32) {
      result = emitNarrow(builder, loc, lane, to);
    } else if (isa<arith::BitcastOp>(op)) {
      result = isNarrowFloat(from) == isNarrowFloat(to) ? lane
               : isNarrowFloat(from)
                   ? Value(arith::TruncIOp::create(builder, loc, to, lane))
                   : Value(arith::ExtUIOp::create(builder, loc, i32, lane));
    } else {
      return op->emitOpError("would round twice in SPIR-V");
    }
    results.push_back(result);
  }
  setLanes(op->getResult(0), results);
  return success();
}

/// Returns the lanes of the result of an operation that only selects or
/// reorders lanes.
static std::optional<SmallVector<Value>>
chooseLanes(Operation *op, function_ref<ArrayRef<Value>(Value)> lanesOf) {
  using Result = std::optional<SmallVector<Value>>;
  auto countLanes = [](Type type) -> int64_t {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? vector.getNumElements() : 1;
  };
  // Returns the first lane at an index of the leading dimensions, or nullopt if
  // the index is dynamic.
  auto linearize = [&](VectorType type,
                       ArrayRef<int64_t> position) -> std::optional<int64_t> {
    int64_t at = 0;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      int64_t index = dim < int64_t(position.size()) ? position[dim] : 0;
      if (index < 0)
        return std::nullopt;
      at = at * type.getDimSize(dim) + index;
    }
    return at;
  };
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](vector::BroadcastOp broadcast) -> Result {
        ArrayRef<Value> source = lanesOf(broadcast.getSource());
        // Trailing dimensions must be equal, except those of size 1.
        auto type = dyn_cast<VectorType>(broadcast.getSourceType());
        if (source.size() != 1 && type &&
            broadcast.getType().getShape().take_back(type.getRank()) !=
                type.getShape())
          return std::nullopt;
        SmallVector<Value> result;
        int64_t count = countLanes(broadcast.getType());
        for (int64_t i = 0; i < count; ++i)
          result.push_back(source[i % source.size()]);
        return result;
      })
      .Case([&](vector::ExtractOp extract) -> Result {
        if (extract.hasDynamicPosition())
          return std::nullopt;
        auto at = linearize(extract.getSourceVectorType(),
                            extract.getStaticPosition());
        if (!at)
          return std::nullopt;
        return llvm::to_vector(lanesOf(extract.getSource())
                                   .slice(*at, countLanes(extract.getType())));
      })
      .Case([&](vector::InsertOp insert) -> Result {
        if (insert.hasDynamicPosition())
          return std::nullopt;
        auto at =
            linearize(insert.getDestVectorType(), insert.getStaticPosition());
        if (!at)
          return std::nullopt;
        SmallVector<Value> result(lanesOf(insert.getDest()));
        llvm::copy(lanesOf(insert.getValueToStore()), result.begin() + *at);
        return result;
      })
      .Case([&](vector::ExtractStridedSliceOp slice) -> Result {
        if (slice.getSourceVectorType().getRank() != 1)
          return std::nullopt;
        int64_t begin = cast<IntegerAttr>(slice.getOffsets()[0]).getInt();
        return llvm::to_vector(lanesOf(slice.getSource())
                                   .slice(begin, countLanes(slice.getType())));
      })
      .Case([&](vector::InsertStridedSliceOp slice) -> Result {
        if (slice.getDestVectorType().getRank() != 1)
          return std::nullopt;
        int64_t begin = cast<IntegerAttr>(slice.getOffsets()[0]).getInt();
        SmallVector<Value> result(lanesOf(slice.getDest()));
        llvm::copy(lanesOf(slice.getValueToStore()), result.begin() + begin);
        return result;
      })
      .Case([&](vector::ShuffleOp shuffle) -> Result {
        if (shuffle.getV1VectorType().getRank() != 1)
          return std::nullopt;
        SmallVector<Value> both(lanesOf(shuffle.getV1())), result;
        llvm::append_range(both, lanesOf(shuffle.getV2()));
        for (int64_t index : shuffle.getMask())
          result.push_back(both[std::max<int64_t>(index, 0)]);
        return result;
      })
      .Case([&](vector::InterleaveOp op) -> Result {
        SmallVector<Value> result;
        for (auto [a, b] :
             llvm::zip_equal(lanesOf(op.getLhs()), lanesOf(op.getRhs())))
          result.append({a, b});
        return result;
      })
      .Case([&](vector::FromElementsOp op) -> Result {
        SmallVector<Value> result;
        for (Value element : op.getElements())
          llvm::append_range(result, lanesOf(element));
        return result;
      })
      .Case([&](vector::ShapeCastOp op) -> Result {
        return llvm::to_vector(lanesOf(op.getSource()));
      })
      .Default([](Operation *) { return std::nullopt; });
}

LogicalResult ScalarKernel::visitShape(Operation *op) {
  if (auto toElements = dyn_cast<vector::ToElementsOp>(op)) {
    SmallVector<Value> source(getLanes(toElements.getSource()));
    setAllLanes(op->getResults(), source);
    return success();
  }
  if (auto deinterleave = dyn_cast<vector::DeinterleaveOp>(op)) {
    SmallVector<Value> halves[2];
    for (auto [i, lane] : llvm::enumerate(getLanes(deinterleave.getSource())))
      halves[i % 2].push_back(lane);
    setLanes(op->getResult(0), halves[0]);
    setLanes(op->getResult(1), halves[1]);
    return success();
  }
  auto chosen = chooseLanes(op, [&](Value value) { return getLanes(value); });
  if (!chosen)
    return op->emitOpError("is not supported in SPIR-V");
  setLanes(op->getResult(0), *chosen);
  return success();
}

LogicalResult ScalarKernel::visitReduction(Operation *op) {
  auto reduction = cast<vector::ReductionOp>(op);
  SmallVector<Value> terms(getLanes(reduction.getVector()));
  if (Value acc = reduction.getAcc())
    terms.push_back(getScalar(acc));
  if (isNarrowFloat(reduction.getType()))
    return op->emitOpError("is not supported in SPIR-V");
  Value result = terms.front();
  for (Value term : ArrayRef(terms).drop_front())
    result = vector::makeArithReduction(builder, op->getLoc(),
                                        reduction.getKind(), result, term);
  setLanes(op->getResult(0), result);
  return success();
}

LogicalResult ScalarKernel::visitLanes(Operation *op) {
  if (isa<vector::ReductionOp>(op))
    return visitReduction(op);
  if (isa_and_present<vector::VectorDialect>(op->getDialect()))
    return visitShape(op);
  bool isPerLane = op->hasTrait<OpTrait::Elementwise>();
  bool hasVectors =
      llvm::any_of(op->getOperandTypes(), llvm::IsaPred<VectorType>) ||
      llvm::any_of(op->getResultTypes(), llvm::IsaPred<VectorType>);
  bool isKnown = isPerLane || (!hasVectors && isPure(op));
  // Arithmetic on 16-bit floats is not supported: they are integers here.
  auto isNarrow = [](Type type) {
    return isNarrowFloat(getElementTypeOrSelf(type));
  };
  if (!isa<arith::SelectOp>(op) &&
      (llvm::any_of(op->getOperandTypes(), isNarrow) ||
       llvm::any_of(op->getResultTypes(), isNarrow)))
    isKnown = false;
  for (Value operand : op->getOperands())
    isKnown &= lanes.contains(operand);
  if (!isKnown || op->getNumRegions() || !op->getNumResults())
    return op->emitOpError("is not supported in SPIR-V");

  size_t count = getLaneTypes(op->getResult(0).getType()).size();
  SmallVector<SmallVector<Value>> results(op->getNumResults());
  for (size_t lane = 0; lane < count; ++lane) {
    Operation *scalar = op->cloneWithoutRegions();
    for (OpOperand &operand : scalar->getOpOperands()) {
      ArrayRef<Value> operandLanes =
          getLanes(op->getOperand(operand.getOperandNumber()));
      operand.set(operandLanes.size() == 1 ? operandLanes.front()
                                           : operandLanes[lane]);
    }
    for (OpResult result : scalar->getResults()) {
      result.setType(getLaneType(getElementTypeOrSelf(result.getType())));
      results[result.getResultNumber()].push_back(result);
    }
    builder.insert(scalar);
  }
  for (auto [result, resultLanes] : llvm::zip_equal(op->getResults(), results))
    setLanes(result, resultLanes);
  return success();
}
