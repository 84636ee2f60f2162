//===- TensorOps.cpp - reference evaluation of shapes and slices ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluator.h"

#include "posenc/IR/CheckReshapes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::reference::numElements;

/// Returns a value with the type, limits and flags of another, without
/// elements.
static ReferenceValue makeLike(const ReferenceValue &value, Shape shape) {
  ReferenceValue result;
  result.type = value.type;
  result.initialized = value.initialized;
  result.limitUlp = value.limitUlp;
  result.absoluteSlack = value.absoluteSlack;
  result.isStructured = value.isStructured;
  result.isAttention = value.isAttention;
  result.array.shape = std::move(shape);
  return result;
}

//===----------------------------------------------------------------------===//
// Whole tensors
//===----------------------------------------------------------------------===//

static LogicalResult evaluate(tensor::EmptyOp op, Evaluator &values) {
  auto type = cast<RankedTensorType>(op.getType());
  auto dtype = getReferenceType(type.getElementType());
  if (!dtype)
    return op.emitError() << "the reference does not support " << type;
  SmallVector<int64_t> sizes = values.getIntegers(op.getMixedSizes());
  ReferenceValue result;
  result.type = *dtype;
  result.initialized = false;
  result.array.shape.assign(sizes.begin(), sizes.end());
  // A destination has no elements, but the result written to it takes memory.
  if (failed(checkShape(op, result.array.shape)))
    return failure();
  values.set(op.getResult(), std::move(result));
  return success();
}

static LogicalResult evaluate(tensor::DimOp op, Evaluator &values) {
  int64_t dim = values.getInteger(op.getIndex());
  const Shape &shape = values.getShape(op.getSource());
  if (dim < 0 || dim >= int64_t(shape.size()))
    return op.emitError() << "there is no dimension " << dim;
  ReferenceValue result;
  result.type = ::posenc::reference::DType::I64;
  result.array.values = {static_cast<long double>(shape[dim])};
  values.set(op.getResult(), std::move(result));
  return success();
}

static LogicalResult evaluate(tensor::FromElementsOp op, Evaluator &values) {
  RankedTensorType type = op.getType();
  auto dtype = getReferenceType(type.getElementType());
  if (!dtype || !type.getElementType().isIntOrIndex())
    return op.emitError() << "the reference does not support " << type;
  ReferenceValue result;
  result.type = *dtype;
  result.array.shape.assign(type.getShape().begin(), type.getShape().end());
  for (Value element : op.getElements())
    result.array.values.push_back(values.getInteger(element));
  values.set(op.getResult(), std::move(result));
  return success();
}

/// Sets the result to the source with another shape.
static LogicalResult reshape(Operation *op, Value source, Shape shape,
                             Evaluator &values) {
  if (failed(checkShape(op, shape, op->getResult(0).getType())))
    return failure();
  ReferenceValue result = values.getExact(source);
  if (numElements(shape) != numElements(result.array.shape))
    return op->emitError("changes the number of elements");
  result.array.shape = std::move(shape);
  values.set(op->getResult(0), std::move(result));
  return success();
}

static LogicalResult evaluate(tensor::CastOp op, Evaluator &values) {
  if (!isa<RankedTensorType>(op.getSource().getType()))
    return op.emitError("the reference does not support unranked tensors");
  return reshape(op, op.getSource(), values.getShape(op.getSource()), values);
}

static LogicalResult evaluate(tensor::CollapseShapeOp op, Evaluator &values) {
  if (failed(checkReshapes(op)))
    return failure();
  const Shape &source = values.getShape(op.getSrc());
  Shape shape;
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    shape.push_back(1);
    for (int64_t dim : group)
      shape.back() *= source[dim];
  }
  return reshape(op, op.getSrc(), std::move(shape), values);
}

static LogicalResult evaluate(tensor::ExpandShapeOp op, Evaluator &values) {
  SmallVector<int64_t> sizes = values.getIntegers(op.getMixedOutputShape());
  return reshape(op, op.getSrc(), Shape(sizes.begin(), sizes.end()), values);
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

namespace {
/// The offsets, sizes and strides of a slice of a tensor.
struct Slice {
  SmallVector<int64_t> offsets, sizes, strides;

  template <typename OpTy> static Slice get(OpTy op, Evaluator &values) {
    return {values.getIntegers(op.getMixedOffsets()),
            values.getIntegers(op.getMixedSizes()),
            values.getIntegers(op.getMixedStrides())};
  }

  LogicalResult check(Operation *op, const Shape &tensor) const {
    if (failed(checkShape(op, Shape(sizes.begin(), sizes.end()))))
      return failure();
    for (size_t dim = 0; dim < tensor.size(); ++dim) {
      int64_t last, end;
      bool overflows = llvm::MulOverflow(std::max<int64_t>(sizes[dim] - 1, 0),
                                         strides[dim], last) ||
                       llvm::AddOverflow(offsets[dim], last, end);
      bool empty = sizes[dim] == 0;
      if (overflows || offsets[dim] < 0 || offsets[dim] > tensor[dim] ||
          (!empty &&
           (end < 0 || end >= tensor[dim] || offsets[dim] == tensor[dim])))
        return op->emitError()
               << "the slice exceeds the tensor in dimension " << dim;
    }
    return success();
  }

  /// Calls `visit(position in the slice, position in the tensor)` for each
  /// element; positions are row-major.
  template <typename Visitor>
  void forEach(const Shape &tensor, Visitor visit) const {
    if (llvm::is_contained(sizes, 0))
      return;
    SmallVector<int64_t> index(sizes.size(), 0);
    for (int64_t number = 0;; ++number) {
      int64_t position = 0;
      for (size_t dim = 0; dim < sizes.size(); ++dim)
        position =
            position * tensor[dim] + offsets[dim] + index[dim] * strides[dim];
      visit(number, position);
      size_t dim = sizes.size();
      while (dim > 0 && ++index[dim - 1] == sizes[dim - 1])
        index[--dim] = 0;
      if (dim == 0)
        return;
    }
  }
};
} // namespace

static LogicalResult evaluate(tensor::ExtractSliceOp op, Evaluator &values) {
  const ReferenceValue &source = values.getExact(op.getSource());
  Slice slice = Slice::get(op, values);
  if (failed(slice.check(op, source.array.shape)))
    return failure();
  llvm::SmallBitVector dropped = op.getDroppedDims();
  Shape shape;
  for (auto [dim, size] : llvm::enumerate(slice.sizes))
    if (!dropped.test(dim))
      shape.push_back(size);
  if (failed(checkShape(op, shape, op.getType())))
    return failure();
  ReferenceValue result = makeLike(source, std::move(shape));
  if (result.initialized)
    slice.forEach(source.array.shape, [&](int64_t, int64_t position) {
      result.array.values.push_back(source.array.values[position]);
      if (!source.array.magnitude.empty())
        result.array.magnitude.push_back(source.array.magnitude[position]);
      if (source.isAttention)
        result.largest.push_back(source.largest[position]);
    });
  values.set(op.getResult(), std::move(result));
  return success();
}

static LogicalResult evaluate(tensor::InsertSliceOp op, Evaluator &values) {
  const ReferenceValue &source = values.getExact(op.getSource());
  const ReferenceValue &target = values.getExact(op.getDest());
  Slice slice = Slice::get(op, values);
  if (failed(slice.check(op, target.array.shape)))
    return failure();
  if (numElements(source.array.shape) !=
      numElements(Shape(slice.sizes.begin(), slice.sizes.end())))
    return op.emitError("expected a slice with the size of the source");
  if (!source.initialized)
    return op.emitError("inserts an uninitialized tensor");
  if (source.isAttention != target.isAttention && target.initialized)
    return op.emitError("the reference has no error bound for a tensor that is "
                        "only partly an attention result");
  ReferenceValue result = target;
  size_t count = numElements(target.array.shape);
  // Elements that nothing is written to are NaN, so that no kernel matches
  // them.
  if (!target.initialized)
    result.array.values.assign(count,
                               std::numeric_limits<long double>::quiet_NaN());
  result.initialized = true;
  result.isStructured |= source.isStructured;
  result.isAttention = source.isAttention;
  if (source.isAttention)
    result.largest.resize(count, 0);
  result.limitUlp = std::max(source.limitUlp, target.limitUlp);
  result.absoluteSlack = std::max(source.absoluteSlack, target.absoluteSlack);
  bool isComputed =
      !source.array.magnitude.empty() || !target.array.magnitude.empty();
  if (isComputed && result.array.magnitude.empty())
    result.array.magnitude.assign(count, -1.0L);
  slice.forEach(target.array.shape, [&](int64_t number, int64_t position) {
    result.array.values[position] = source.array.values[number];
    if (isComputed)
      result.array.magnitude[position] = source.array.magnitude.empty()
                                             ? -1.0L
                                             : source.array.magnitude[number];
    if (source.isAttention)
      result.largest[position] = source.largest[number];
  });
  values.set(op.getResult(), std::move(result));
  return success();
}

std::optional<LogicalResult> mlir::posenc::evaluateTensor(Operation *op,
                                                          Evaluator &values) {
  return llvm::TypeSwitch<Operation *, std::optional<LogicalResult>>(op)
      .Case<tensor::EmptyOp, tensor::DimOp, tensor::CastOp,
            tensor::CollapseShapeOp, tensor::ExpandShapeOp,
            tensor::ExtractSliceOp, tensor::FromElementsOp,
            tensor::InsertSliceOp>(
          [&](auto concrete) { return evaluate(concrete, values); })
      .Default(std::nullopt);
}
