//===- Gather.cpp - reads and writes at computed indices ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops.h"
#include "Scalars.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

/// Indices that are not integers of 32 or 64 bits are an error.
static LogicalResult checkIndices(NodeImporter &node, const Tensor &indices) {
  if (indices.element.isInteger(32) || indices.element.isInteger(64))
    return success();
  return node.emitError() << "expected indices of 32 or 64 bits, found "
                          << indices.element;
}

/// Creates an index of each dimension of the loops around.
static SmallVector<Value> createIndices(Scalars &s, int64_t first,
                                        int64_t end) {
  SmallVector<Value> indices;
  for (int64_t dim = first; dim < end; ++dim)
    indices.push_back(linalg::IndexOp::create(s, dim));
  return indices;
}

/// Returns an element of a tensor of integers as an index, counted from the end
/// if it is negative.
static Value createIndex(Scalars &s, Value element, Value size) {
  Value index = arith::IndexCastOp::create(s, s.getIndexType(), element);
  return wrapIndex(s, index, size);
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

/// Gathers known elements at known indices; false if some are unknown.
static bool gatherElements(NodeImporter &node, const Tensor &data,
                           const Tensor &indices) {
  if (!data.elements || data.getRank() != 1 || !indices.elements)
    return false;
  SmallVector<Size> results;
  int64_t count = data.elements->size();
  for (const Size &index : *indices.elements) {
    std::optional<int64_t> number = index.getConstant();
    if (!number || *number < -count || *number >= count)
      return false;
    results.push_back(
        (*data.elements)[*number < 0 ? *number + count : *number]);
  }
  node.setOutput(0, createElements(data.element, results, indices.getRank()));
  return true;
}

/// Returns the shape of the data with that of the indices for one dimension.
static SmallVector<Size> getGatheredShape(const Tensor &data,
                                          const Tensor &indices, int64_t axis) {
  SmallVector<Size> shape(data.shape.begin(), data.shape.begin() + axis);
  shape.append(indices.shape);
  shape.append(data.shape.begin() + axis + 1, data.shape.end());
  return shape;
}

static LogicalResult importGather(NodeImporter &node) {
  Tensor &data = node.getInput(0), &indices = node.getInput(1);
  int64_t rank = data.getRank();
  FailureOr<int64_t> found = node.getAxis(node.getInt("axis", 0), rank);
  if (failed(found) || failed(checkIndices(node, indices)))
    return failure();
  int64_t axis = *found;
  if (gatherElements(node, data, indices))
    return success();
  const Size &size = data.shape[axis];
  if (indices.elements && indices.elements->size() == 1) {
    Size index = indices.elements->front();
    if (node.sizes.isNonNegative(Size(-1) - index))
      index = index + size;
    if (size.getConstant() && index.getConstant() &&
        (*index.getConstant() < 0 ||
         *index.getConstant() >= *size.getConstant()))
      return node.emitError() << "the index is out of range";
    if (node.sizes.isNonNegative(index) || index != indices.elements->front()) {
      SmallVector<Size> offsets(rank, Size(0)), sizes(data.shape);
      offsets[axis] = index;
      sizes[axis] = 1;
      Tensor part = slice(node, data, offsets, sizes);
      return node.setResult(
          reshape(node, part, getGatheredShape(data, indices, axis)));
    }
  }
  return node.setResult(gather(node, data, indices, axis, /*wraps=*/true));
}

Tensor onnx::gather(NodeImporter &node, Tensor &data, Tensor &indices,
                    int64_t axis, bool wraps) {
  SmallVector<Size> shape = getGatheredShape(data, indices, axis);
  int64_t depth = indices.getRank(), rank = shape.size();
  Value source = node.getValue(data);
  Value count = node.materialize(data.shape[axis]);
  Value init = createEmpty(node, shape, data.element);
  AffineMap all = node.getMultiDimIdentityMap(rank);
  auto body = [&](Scalars &s, ValueRange args) -> Value {
    SmallVector<Value> index = createIndices(s, 0, axis);
    index.push_back(
        wraps ? createIndex(s, args[0], count)
              : arith::IndexCastOp::create(s, s.getIndexType(), args[0]));
    llvm::append_range(index, createIndices(s, axis + depth, rank));
    return tensor::ExtractOp::create(s, source, index);
  };
  return createGeneric(node, node.getValue(indices), init,
                       {all.getSliceMap(axis, depth), all}, /*loops=*/{}, shape,
                       body);
}

static LogicalResult importGatherElements(NodeImporter &node) {
  Tensor &data = node.getInput(0), &indices = node.getInput(1);
  FailureOr<int64_t> axis =
      node.getAxis(node.getInt("axis", 0), data.getRank());
  if (failed(axis) || failed(checkIndices(node, indices)))
    return failure();
  if (indices.getRank() != data.getRank())
    return node.emitError() << "the inputs differ in rank";
  for (auto [dim, size] : llvm::enumerate(indices.shape))
    if (static_cast<int64_t>(dim) != *axis &&
        !requireAtMost(node, size, data.shape[dim]))
      return node.emitError()
             << "the indices exceed the data in dimension " << dim;
  Value source = node.getValue(data);
  Value count = node.materialize(data.shape[*axis]);
  return node.setResult(mapElementsTo(
      node, &indices, indices.shape, data.element,
      [&](Scalars &s, ValueRange args) -> Value {
        SmallVector<Value> index = createIndices(s, 0, data.getRank());
        index[*axis] = createIndex(s, args[0], count);
        return tensor::ExtractOp::create(s, source, index);
      }));
}

//===----------------------------------------------------------------------===//
// GatherND and ScatterND
//===----------------------------------------------------------------------===//

/// Returns how many dimensions the last dimension of the indices addresses.
static FailureOr<int64_t> getDepth(NodeImporter &node, const Tensor &data,
                                   const Tensor &indices, int64_t batch) {
  if (failed(checkIndices(node, indices)))
    return failure();
  std::optional<int64_t> depth;
  if (!indices.shape.empty())
    depth = indices.shape.back().getConstant();
  if (!depth || *depth < 1 || batch + *depth > data.getRank())
    return node.emitError() << "the last dimension of the indices must have a "
                               "constant size from 1 to "
                            << data.getRank() - batch;
  return *depth;
}

/// Reads the indices at the position `at`, one for each dimension from `first`
/// of the data.
static SmallVector<Value> readIndices(Scalars &s, Value indices,
                                      ArrayRef<Value> at,
                                      ArrayRef<Value> sizes) {
  SmallVector<Value> numbers;
  for (auto [part, size] : llvm::enumerate(sizes)) {
    SmallVector<Value> position(at);
    position.push_back(arith::ConstantIndexOp::create(s, part));
    Value number = tensor::ExtractOp::create(s, indices, position);
    numbers.push_back(createIndex(s, number, size));
  }
  return numbers;
}

static LogicalResult importGatherND(NodeImporter &node) {
  Tensor &data = node.getInput(0), &indices = node.getInput(1);
  int64_t batch = node.getInt("batch_dims", 0);
  if (batch < 0 || batch >= indices.getRank() || batch >= data.getRank())
    return node.emitError() << "'batch_dims' is out of range";
  FailureOr<int64_t> depth = getDepth(node, data, indices, batch);
  if (failed(depth))
    return failure();
  for (int64_t dim = 0; dim < batch; ++dim)
    if (!requireEqual(node, indices.shape[dim], data.shape[dim]))
      return node.emitError()
             << "data and indices differ in batch dimension " << dim;
  SmallVector<Size> shape(indices.shape.begin(), indices.shape.end() - 1);
  int64_t outer = shape.size();
  shape.append(data.shape.begin() + batch + *depth, data.shape.end());
  Value source = node.getValue(data), numbers = node.getValue(indices);
  SmallVector<Value> sizes;
  for (int64_t dim = batch; dim < batch + *depth; ++dim)
    sizes.push_back(node.materialize(data.shape[dim]));
  return node.setResult(mapElementsTo(
      node, {}, shape, data.element, [&](Scalars &s, ValueRange) -> Value {
        SmallVector<Value> at = createIndices(s, 0, outer);
        SmallVector<Value> index(at.begin(), at.begin() + batch);
        llvm::append_range(index, readIndices(s, numbers, at, sizes));
        llvm::append_range(index, createIndices(s, outer, shape.size()));
        return tensor::ExtractOp::create(s, source, index);
      }));
}

/// Returns the first of consecutive constant indices of rows, or nullopt.
static std::optional<int64_t> getFirstRow(Value indices, const Size &numRows) {
  DenseIntElementsAttr elements;
  if (!matchPattern(indices, m_Constant(&elements)) ||
      elements.getType().getRank() != 2 ||
      elements.getType().getDimSize(1) != 1 || elements.empty() ||
      !numRows.getConstant())
    return std::nullopt;
  int64_t first = (*elements.begin()).getSExtValue(), next = first;
  for (const APInt &index : elements)
    if (index.getSExtValue() != next++)
      return std::nullopt;
  return first >= 0 && next <= *numRows.getConstant() ? std::optional(first)
                                                      : std::nullopt;
}

/// Writes updates one after the other: for each element of the data, the last
/// update whose indices are its own. The time is the product of the sizes of
/// data and updates, which is small for the positions of a cache.
static LogicalResult importScatterND(NodeImporter &node) {
  Tensor &data = node.getInput(0), &indices = node.getInput(1),
         &updates = node.getInput(2);
  StringRef reduction = node.getString("reduction", "none");
  if (reduction != "none" && reduction != "add")
    return node.emitError()
           << "reduction '" << reduction.take_front(64) << "' is not supported";
  FailureOr<int64_t> depth = getDepth(node, data, indices, 0);
  if (failed(depth))
    return failure();
  int64_t rank = data.getRank(), outer = indices.getRank() - 1;
  SmallVector<Size> shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.append(data.shape.begin() + *depth, data.shape.end());
  if (updates.getRank() != outer + rank - *depth ||
      updates.element != data.element ||
      !llvm::all_of_zip(updates.shape, shape,
                        [&](const Size &size, const Size &wanted) {
                          return requireEqual(node, size, wanted);
                        }))
    return node.emitError() << "the updates do not fit to data and indices";
  Value numbers = node.getValue(indices);
  // Exporters write slices like this.
  if (std::optional<int64_t> first = getFirstRow(numbers, data.shape[0]);
      first && reduction == "none") {
    Value rows = node.getValue(updates);
    SmallVector<OpFoldResult> offsets(rank, node.getIndexAttr(0)),
        strides(rank, node.getIndexAttr(1));
    offsets[0] = node.getIndexAttr(*first);
    Value result = tensor::InsertSliceOp::create(
        node, rows, node.getValue(data), offsets,
        tensor::getMixedSizes(node, node.getLoc(), rows), strides);
    return node.setResult(createTensor(node, result, data.shape));
  }
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < *depth; ++dim)
    sizes.push_back(node.materialize(data.shape[dim]));
  // Loops: the dimensions of the data, then those of the updates.
  int64_t numLoops = rank + outer;
  AffineMap all = node.getMultiDimIdentityMap(numLoops);
  SmallVector<AffineExpr> updateDims(all.getResults().drop_front(rank));
  llvm::append_range(updateDims, all.getResults().slice(*depth, rank - *depth));
  AffineMap maps[] = {
      AffineMap::get(numLoops, 0, updateDims, node.getContext()),
      all.getMajorSubMap(rank)};
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  loops.append(outer, utils::IteratorType::reduction);
  auto body = [&](Scalars &s, ValueRange args) -> Value {
    SmallVector<Value> at = createIndices(s, rank, numLoops);
    SmallVector<Value> own = createIndices(s, 0, *depth);
    Value isOwn;
    for (auto [number, index] :
         llvm::zip_equal(readIndices(s, numbers, at, sizes), own)) {
      Value isEqual =
          arith::CmpIOp::create(s, arith::CmpIPredicate::eq, number, index);
      isOwn = isOwn ? Value(arith::AndIOp::create(s, isOwn, isEqual)) : isEqual;
    }
    Value written = reduction == "add" ? s.add(args[1], args[0]) : args[0];
    return s.select(isOwn, written, args[1]);
  };
  Value init = node.getValue(data);
  return node.setResult(createGeneric(node, node.getValue(updates), init, maps,
                                      loops, data.shape, body));
}

void onnx::addGatherOperators(OperatorTable &table) {
  table["Gather"] = {2, 2, 1, importGather};
  table["GatherElements"] = {2, 2, 1, importGatherElements};
  table["GatherND"] = {2, 2, 1, importGatherND};
  table["ScatterND"] = {3, 3, 1, importScatterND};
}
