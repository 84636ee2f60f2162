//===- RelayoutOps.cpp - reference evaluation of pad, concat and pack -----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluator.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::reference::numElements;

namespace {
/// A result whose elements are copies from several sources, or padding.
class Relayout {
public:
  Relayout(Operation *op, Evaluator &values, Shape shape)
      : op(op), values(values), shape(std::move(shape)) {}

  LogicalResult addSource(Value value);
  void setPadding(long double value) { padding = value; }
  /// Sets the result of the operation. For each index of the result, `find`
  /// returns the number of a source and sets an index into that source. An
  /// index outside of the source stands for padding.
  LogicalResult finish(function_ref<size_t(ArrayRef<int64_t>, Shape &)> find);

private:
  Operation *op;
  Evaluator &values;
  Shape shape;
  SmallVector<const ReferenceValue *> sources;
  long double padding = 0;
};
} // namespace

LogicalResult Relayout::addSource(Value value) {
  const ReferenceValue &source = values.getExact(value);
  if (!source.initialized)
    return op->emitError("reads an uninitialized tensor");
  if (source.isAttention)
    return op->emitError("the reference has no error bound for a tensor that "
                         "is only partly an attention result");
  sources.push_back(&source);
  return success();
}

LogicalResult
Relayout::finish(function_ref<size_t(ArrayRef<int64_t>, Shape &)> find) {
  if (failed(checkShape(op, shape, op->getResult(0).getType())))
    return failure();
  ReferenceValue result;
  result.type = sources.front()->type;
  result.initialized = true;
  result.array.shape = shape;
  bool isComputed = false;
  for (const ReferenceValue *source : sources) {
    result.limitUlp = std::max(result.limitUlp, source->limitUlp);
    result.absoluteSlack =
        std::max(result.absoluteSlack, source->absoluteSlack);
    result.isStructured |= source->isStructured;
    isComputed |= !source->array.magnitude.empty();
  }
  SmallVector<int64_t> index(shape.size(), 0);
  Shape from;
  for (int64_t i = 0, e = numElements(shape); i < e; ++i) {
    const ReferenceValue &source = *sources[find(index, from)];
    bool isInside = true;
    int64_t position = 0;
    for (auto [at, size] : llvm::zip_equal(from, source.array.shape)) {
      isInside &= at >= 0 && at < size;
      position = position * size + at;
    }
    result.array.values.push_back(isInside ? source.array.values[position]
                                           : padding);
    if (isComputed)
      result.array.magnitude.push_back(isInside &&
                                               !source.array.magnitude.empty()
                                           ? source.array.magnitude[position]
                                           : -1.0L);
    for (size_t dim = shape.size(); dim-- > 0 && ++index[dim] == shape[dim];)
      index[dim] = 0;
  }
  values.set(op->getResult(0), std::move(result));
  return success();
}

static LogicalResult evaluate(tensor::PadOp op, Evaluator &values) {
  Value padding = op.getConstantPaddingValue();
  if (!padding)
    return op.emitError("the reference supports only one padding value for "
                        "all elements");
  SmallVector<int64_t> low = values.getIntegers(op.getMixedLowPad());
  SmallVector<int64_t> high = values.getIntegers(op.getMixedHighPad());
  Shape shape = values.getShape(op.getSource());
  for (auto [size, before, after] : llvm::zip_equal(shape, low, high)) {
    if (before < 0 || after < 0)
      return op.emitError("expected non-negative padding sizes");
    size += before + after;
  }
  Relayout result(op, values, std::move(shape));
  if (failed(result.addSource(op.getSource())))
    return failure();
  Attribute constant;
  if (!matchPattern(padding, m_Constant(&constant)))
    result.setPadding(values.get(padding).array.values.front());
  else if (auto number = dyn_cast<FloatAttr>(constant))
    result.setPadding(number.getValueAsDouble());
  else
    result.setPadding(cast<IntegerAttr>(constant).getInt());
  return result.finish([&](ArrayRef<int64_t> index, Shape &from) -> size_t {
    from.assign(index.begin(), index.end());
    for (auto [at, before] : llvm::zip_equal(from, low))
      at -= before;
    return 0;
  });
}

static LogicalResult evaluate(tensor::ConcatOp op, Evaluator &values) {
  uint64_t dim = op.getDim();
  Shape shape = values.getShape(op.getInputs().front());
  shape[dim] = 0;
  SmallVector<int64_t> ends;
  for (Value input : op.getInputs()) {
    shape[dim] += values.getShape(input)[dim];
    ends.push_back(shape[dim]);
  }
  Relayout result(op, values, std::move(shape));
  for (Value input : op.getInputs())
    if (failed(result.addSource(input)))
      return failure();
  return result.finish([&](ArrayRef<int64_t> index, Shape &from) -> size_t {
    from.assign(index.begin(), index.end());
    size_t number = llvm::upper_bound(ends, index[dim]) - ends.begin();
    from[dim] -= number ? ends[number - 1] : 0;
    return number;
  });
}

/// Returns for each outer dimension of the packed tensor the dimension of the
/// unpacked tensor.
static SmallVector<int64_t> getOuterDims(ArrayRef<int64_t> order,
                                         int64_t rank) {
  return order.empty() ? llvm::to_vector(llvm::seq(rank))
                       : SmallVector<int64_t>(order);
}

static LogicalResult evaluate(linalg::PackOp op, Evaluator &values) {
  SmallVector<int64_t> tiles = values.getIntegers(op.getMixedTiles());
  SmallVector<int64_t> dims =
      getOuterDims(op.getOuterDimsPerm(), op.getSourceRank());
  Relayout result(op, values, values.getShape(op.getDest()));
  if (failed(result.addSource(op.getSource())))
    return failure();
  if (Value padding = op.getPaddingValue())
    result.setPadding(values.get(padding).array.values.front());
  return result.finish([&](ArrayRef<int64_t> index, Shape &from) -> size_t {
    from.resize(dims.size());
    for (auto [outer, dim] : llvm::enumerate(dims))
      from[dim] = index[outer];
    for (auto [number, dim] : llvm::enumerate(op.getInnerDimsPos()))
      from[dim] = from[dim] * tiles[number] + index[dims.size() + number];
    return 0;
  });
}

static LogicalResult evaluate(linalg::UnPackOp op, Evaluator &values) {
  SmallVector<int64_t> tiles = values.getIntegers(op.getMixedTiles());
  SmallVector<int64_t> dims =
      getOuterDims(op.getOuterDimsPerm(), op.getDestRank());
  Relayout result(op, values, values.getShape(op.getDest()));
  if (failed(result.addSource(op.getSource())))
    return failure();
  return result.finish([&](ArrayRef<int64_t> index, Shape &from) -> size_t {
    SmallVector<int64_t> outer(index);
    from.resize(dims.size() + tiles.size());
    for (auto [number, dim] : llvm::enumerate(op.getInnerDimsPos())) {
      from[dims.size() + number] = index[dim] % tiles[number];
      outer[dim] = index[dim] / tiles[number];
    }
    for (auto [number, dim] : llvm::enumerate(dims))
      from[number] = outer[dim];
    return 0;
  });
}

std::optional<LogicalResult> mlir::posenc::evaluateRelayout(Operation *op,
                                                            Evaluator &values) {
  return llvm::TypeSwitch<Operation *, std::optional<LogicalResult>>(op)
      .Case<tensor::PadOp, tensor::ConcatOp, linalg::PackOp, linalg::UnPackOp>(
          [&](auto concrete) { return evaluate(concrete, values); })
      .Default(std::nullopt);
}
