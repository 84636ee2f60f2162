//===- Gather.cpp - reads and writes at computed indices ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops.h"
#include "Scalars.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
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

namespace {
/// The conversion of tensor elements to indices of a dimension.
struct IndexForm {
  Value size;
  NegativeIndex negative;
  /// Whether the elements are known to be in range, and not to be negative.
  bool isChecked = false, isNatural = false;
};
} // namespace

/// Returns the elements that decide whether all are in range: each column of
/// `stride` columns has others. Empty if they are unknown.
static SmallVector<Size> getKnownIndices(const Tensor &indices, int64_t column,
                                         int64_t stride) {
  SmallVector<Size> known;
  if (indices.elements) {
    ArrayRef<Size> elements(*indices.elements);
    for (size_t i = column; i < elements.size(); i += stride)
      known.push_back(elements[i]);
    return known;
  }
  if (!indices.constant)
    return known;
  std::optional<int64_t> min, max;
  int64_t number = 0;
  for (const APInt &value : indices.constant.getValues<APInt>()) {
    if (number++ % stride != column)
      continue;
    int64_t index = value.getSExtValue();
    min = std::min(min.value_or(index), index);
    max = std::max(max.value_or(index), index);
  }
  if (min)
    known = {*min, *max};
  return known;
}

/// Requires that the indices in a column are in range of a dimension, as far as
/// they are known. Others are checked by assertions where they are used.
static FailureOr<IndexForm>
requireIndices(NodeImporter &node, const Tensor &indices, const Size &size,
               NegativeIndex negative, int64_t column = 0, int64_t stride = 1) {
  IndexForm form{node.materialize(size), negative};
  Size low = negative == NegativeIndex::Wraps ? Size(0) - size : Size(0);
  SmallVector<Size> known = getKnownIndices(indices, column, stride);
  for (const Size &index : known)
    if (!(negative == NegativeIndex::IsZero ||
          requireAtMost(node, low, index)) ||
        !requireAtMost(node, index + 1, size)) {
      InFlightDiagnostic error = node.emitError();
      error << "an index is out of range";
      if (index.getConstant() && size.getConstant())
        error << ": " << *index.getConstant() << " for size "
              << *size.getConstant();
      return error;
    }
  form.isChecked = !known.empty();
  form.isNatural =
      form.isChecked && llvm::all_of(known, [&](const Size &index) {
        return node.sizes.isNonNegative(index);
      });
  auto range = indices.range;
  if (indices.columnRanges.size() == static_cast<size_t>(stride))
    range = indices.columnRanges[column];
  if (known.empty() && range) {
    const auto &[min, max] = *range;
    form.isChecked =
        node.sizes.isAtMost(low, min) && node.sizes.isAtMost(max + 1, size);
    form.isNatural = node.sizes.isNonNegative(min);
  }
  return form;
}

/// Returns an element of a tensor of integers as an index, and asserts that it
/// is in range.
static Value createIndex(Scalars &s, NodeImporter &node, Value element,
                         const IndexForm &form) {
  Value index = arith::IndexCastOp::create(s, s.getIndexType(), element);
  Value zero = arith::ConstantIndexOp::create(s, 0);
  bool wraps = form.negative == NegativeIndex::Wraps;
  if (!form.isChecked) {
    Value isInside =
        arith::CmpIOp::create(s, arith::CmpIPredicate::slt, index, form.size);
    if (form.negative != NegativeIndex::IsZero) {
      Value low =
          wraps ? Value(arith::SubIOp::create(s, zero, form.size)) : zero;
      Value isAbove =
          arith::CmpIOp::create(s, arith::CmpIPredicate::sge, index, low);
      isInside = arith::AndIOp::create(s, isAbove, isInside);
    }
    cf::AssertOp::create(s, isInside,
                         node.describe("an index is out of range"));
  }
  return wraps && !form.isNatural ? wrapIndex(s, index, form.size) : index;
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
  return node.setResult(
      gather(node, data, indices, axis, NegativeIndex::Wraps));
}

FailureOr<Tensor> onnx::gather(NodeImporter &node, Tensor &data,
                               Tensor &indices, int64_t axis,
                               NegativeIndex negative) {
  FailureOr<IndexForm> form =
      requireIndices(node, indices, data.shape[axis], negative);
  if (failed(form))
    return failure();
  SmallVector<Size> shape = getGatheredShape(data, indices, axis);
  int64_t depth = indices.getRank(), rank = shape.size();
  Value source = node.getValue(data);
  Value init = createEmpty(node, shape, data.element);
  AffineMap all = node.getMultiDimIdentityMap(rank);
  auto body = [&](Scalars &s, ValueRange args) -> Value {
    SmallVector<Value> index = createIndices(s, 0, axis);
    index.push_back(createIndex(s, node, args[0], *form));
    llvm::append_range(index, createIndices(s, axis + depth, rank));
    return tensor::ExtractOp::create(s, source, index);
  };
  Tensor result = createGeneric(node, node.getValue(indices), init,
                                {all.getSliceMap(axis, depth), all},
                                /*loops=*/{}, shape, body);
  result.range = data.range;
  return result;
}

FailureOr<Tensor> onnx::readRows(
    NodeImporter &node, Tensor &indices, const Size &numRows,
    ArrayRef<Size> shape, Type element, NegativeIndex negative,
    function_ref<Value(Scalars &s, Value row, ValueRange others)> read) {
  FailureOr<IndexForm> form = requireIndices(node, indices, numRows, negative);
  if (failed(form))
    return failure();
  int64_t depth = indices.getRank(), rank = depth + shape.size();
  SmallVector<Size> all(indices.shape);
  llvm::append_range(all, shape);
  AffineMap identity = node.getMultiDimIdentityMap(rank);
  return createGeneric(node, node.getValue(indices),
                       createEmpty(node, all, element),
                       {identity.getSliceMap(0, depth), identity},
                       /*loops=*/{}, all, [&](Scalars &s, ValueRange args) {
                         return read(s, createIndex(s, node, args[0], *form),
                                     createIndices(s, depth, rank));
                       });
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
  FailureOr<IndexForm> form =
      requireIndices(node, indices, data.shape[*axis], NegativeIndex::Wraps);
  if (failed(form))
    return failure();
  Value source = node.getValue(data);
  return node.setResult(mapElementsTo(
      node, &indices, indices.shape, data.element,
      [&](Scalars &s, ValueRange args) -> Value {
        SmallVector<Value> index = createIndices(s, 0, data.getRank());
        index[*axis] = createIndex(s, node, args[0], *form);
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

/// Returns the forms of the indices in the last dimension, for dimensions of
/// the data from `first`.
static FailureOr<SmallVector<IndexForm>>
requireColumns(NodeImporter &node, const Tensor &data, const Tensor &indices,
               int64_t first, int64_t depth) {
  SmallVector<IndexForm> forms;
  for (int64_t column = 0; column < depth; ++column) {
    FailureOr<IndexForm> form =
        requireIndices(node, indices, data.shape[first + column],
                       NegativeIndex::Wraps, column, depth);
    if (failed(form))
      return failure();
    forms.push_back(*form);
  }
  return forms;
}

/// Reads the indices at the position `at`.
static SmallVector<Value> readIndices(Scalars &s, NodeImporter &node,
                                      Value indices, ArrayRef<Value> at,
                                      ArrayRef<IndexForm> forms) {
  SmallVector<Value> numbers;
  for (auto [column, form] : llvm::enumerate(forms)) {
    SmallVector<Value> position(at);
    position.push_back(arith::ConstantIndexOp::create(s, column));
    Value number = tensor::ExtractOp::create(s, indices, position);
    numbers.push_back(createIndex(s, node, number, form));
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
  FailureOr<SmallVector<IndexForm>> forms =
      requireColumns(node, data, indices, batch, *depth);
  if (failed(forms))
    return failure();
  Value source = node.getValue(data), numbers = node.getValue(indices);
  return node.setResult(mapElementsTo(
      node, {}, shape, data.element, [&](Scalars &s, ValueRange) -> Value {
        SmallVector<Value> at = createIndices(s, 0, outer);
        SmallVector<Value> index(at.begin(), at.begin() + batch);
        llvm::append_range(index, readIndices(s, node, numbers, at, *forms));
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
  FailureOr<SmallVector<IndexForm>> forms =
      requireColumns(node, data, indices, 0, *depth);
  if (failed(forms))
    return failure();
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
         llvm::zip_equal(readIndices(s, node, numbers, at, *forms), own)) {
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
  table["Gather"] = {2, 2, 1, importGather, CodeUse::Moved};
  table["GatherElements"] = {2, 2, 1, importGatherElements, CodeUse::Moved};
  table["GatherND"] = {2, 2, 1, importGatherND, CodeUse::Moved};
  table["ScatterND"] = {3, 3, 1, importScatterND};
  setFirstOpsets(table,
                 {{"GatherElements", 11}, {"GatherND", 11}, {"ScatterND", 11}});
}
