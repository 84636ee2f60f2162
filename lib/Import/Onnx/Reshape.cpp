//===- Reshape.cpp - reshapes and moves of tensors ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reshape becomes tensor.collapse_shape and tensor.expand_shape of groups of
// dimensions with equal products, which keep the structure that later passes
// look for.
//
//===----------------------------------------------------------------------===//

#include "Ops.h"
#include "posenc/IR/Weights.h"

#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

namespace {
/// Consecutive dimensions of the source and of the result with as many
/// elements.
struct Group {
  unsigned sourceEnd, resultEnd;
};
} // namespace

/// Groups the dimensions. Dimensions from where no equal products are found
/// form one group, which is assumed to match.
static SmallVector<Group> groupDims(NodeImporter &node, ArrayRef<Size> source,
                                    ArrayRef<Size> result) {
  SmallVector<Group> groups;
  unsigned i = 0, j = 0;
  while (i < source.size() && j < result.size()) {
    Size left = source[i++], right = result[j++];
    bool isFound = true;
    while (left != right) {
      bool hasLeft = i < source.size(), hasRight = j < result.size();
      bool wantsRight;
      if (left.getConstant() && right.getConstant())
        wantsRight = *right.getConstant() < *left.getConstant();
      else if (left.divideExactly(right))
        wantsRight = true;
      else if (right.divideExactly(left))
        wantsRight = false;
      else
        wantsRight = j <= i;
      if (wantsRight ? hasRight : !hasLeft && hasRight)
        right = right * result[j++];
      else if (hasLeft)
        left = left * source[i++];
      else {
        isFound = false;
        break;
      }
    }
    if (!isFound) {
      i = source.size();
      j = result.size();
    }
    groups.push_back({i, j});
  }
  // Further dimensions have size 1.
  if (!groups.empty())
    groups.back() = {static_cast<unsigned>(source.size()),
                     static_cast<unsigned>(result.size())};
  return groups;
}

/// Whether tensors of the shape are known to have no elements.
static bool isEmpty(ArrayRef<Size> shape) {
  return llvm::any_of(shape,
                      [](const Size &size) { return size.isConstant(0); });
}

Size onnx::getProduct(ArrayRef<Size> sizes) {
  Size product(1);
  for (const Size &size : sizes)
    product = product * size;
  return product;
}

static Value castTo(NodeImporter &node, Value value, RankedTensorType type) {
  if (value.getType() == type)
    return value;
  return tensor::CastOp::create(node, type, value);
}

FailureOr<Tensor> onnx::reshape(NodeImporter &node, Tensor &tensor,
                                ArrayRef<Size> shape) {
  if (ArrayRef<Size>(tensor.shape) == shape)
    return tensor;
  Size before = getProduct(tensor.shape), after = getProduct(shape);
  if (!after.isValid() || !mayBeEqual(node, before, after))
    return node.emitError()
           << "the number of elements of the new shape differs";
  Tensor result;
  result.element = tensor.element;
  result.shape.assign(shape.begin(), shape.end());
  result.range = tensor.range;
  RankedTensorType type = node.graph.getType(shape, tensor.element);
  if (shape.size() <= 1)
    result.elements = tensor.elements;
  if (tensor.constant && type.hasStaticShape() &&
      type.getNumElements() == tensor.constant.getNumElements()) {
    result.constant = tensor.constant.reshape(type);
    return result;
  }
  if (tensor.weights && !tensor.hasTransposedWeights && type.hasStaticShape() &&
      type.getNumElements() == tensor.weights.getType().getNumElements()) {
    result.weights =
        DenseResourceElementsAttr::get(type, tensor.weights.getRawHandle());
    return result;
  }
  if (result.elements) {
    (void)requireEqual(node, before, after);
    return result;
  }
  if (isEmpty(tensor.shape) && isEmpty(shape)) {
    result.value = createEmpty(node, shape, tensor.element);
    return result;
  }
  Value value = node.getValue(tensor);
  SmallVector<Group> groups = groupDims(node, tensor.shape, shape);
  SmallVector<ReassociationIndices> collapsed, expanded;
  auto sourceType = cast<RankedTensorType>(value.getType());
  unsigned i = 0, j = 0;
  for (const Group &group : groups) {
    // The operations below also require this, but they may be folded.
    ArrayRef<Size> from(tensor.shape);
    (void)requireEqual(node, getProduct(from.slice(i, group.sourceEnd - i)),
                       getProduct(shape.slice(j, group.resultEnd - j)));
    collapsed.push_back(
        llvm::to_vector(llvm::seq<int64_t>(i, group.sourceEnd)));
    expanded.push_back(llvm::to_vector(llvm::seq<int64_t>(j, group.resultEnd)));
    i = group.sourceEnd;
    j = group.resultEnd;
  }
  RankedTensorType middle = tensor::CollapseShapeOp::inferCollapsedType(
                       sourceType, collapsed),
                   needed = tensor::CollapseShapeOp::inferCollapsedType(
                       type, expanded);
  if (failed(verifyCompatibleShape(middle, needed)))
    return node.emitError()
           << "the number of elements of the new shape differs";
  // All sizes of a tensor with one element are 1.
  auto getOnes = [&](size_t rank) { return SmallVector<Size>(rank, Size(1)); };
  if (groups.empty()) {
    for (const Size &size : llvm::concat<const Size>(tensor.shape, shape))
      if (!mayBeEqual(node, size, Size(1)))
        return node.emitError()
               << "the number of elements of the new shape differs";
    (void)requireEqual(node, before, after);
  }
  if (shape.empty())
    value =
        castTo(node, value,
               node.graph.getType(getOnes(tensor.getRank()), tensor.element));
  if (collapsed.size() != static_cast<size_t>(sourceType.getRank()))
    value = tensor::CollapseShapeOp::create(node, middle, value, collapsed);
  value = castTo(node, value, needed);
  if (groups.empty() && !shape.empty()) {
    SmallVector<Size> ones = getOnes(shape.size());
    value = tensor::ExpandShapeOp::create(
        node, node.graph.getType(ones, tensor.element), value, expanded,
        node.getMixed(ones));
  } else if (expanded.size() != shape.size()) {
    value = tensor::ExpandShapeOp::create(node, type, value, expanded,
                                          node.getMixed(shape));
  }
  result.value = castTo(node, value, type);
  return result;
}

/// Transposes the elements of a tensor.
static void transposeElements(RankedTensorType source, ArrayRef<char> from,
                              RankedTensorType type,
                              ArrayRef<int64_t> permutation,
                              MutableArrayRef<char> to) {
  int64_t rank = source.getRank();
  size_t width = source.getElementTypeBitWidth() / 8;
  SmallVector<int64_t> strides(rank, 1), steps(rank), index(rank, 0);
  for (int64_t dim = rank - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * source.getDimSize(dim + 1);
  for (int64_t dim = 0; dim < rank; ++dim)
    steps[dim] = strides[permutation[dim]];
  int64_t count = type.getNumElements(), offset = 0;
  for (int64_t number = 0; number < count; ++number) {
    std::memcpy(&to[number * width], &from[offset * width], width);
    for (int64_t dim = rank - 1; dim >= 0; --dim) {
      offset += steps[dim];
      if (++index[dim] < type.getDimSize(dim))
        break;
      offset -= steps[dim] * index[dim];
      index[dim] = 0;
    }
  }
}

static DenseElementsAttr transposeConstant(DenseElementsAttr attr,
                                           RankedTensorType type,
                                           ArrayRef<int64_t> permutation) {
  ArrayRef<char> from = attr.getRawData();
  std::vector<char> to(from.size());
  transposeElements(cast<RankedTensorType>(attr.getType()), from, type,
                    permutation, to);
  return DenseElementsAttr::getFromRawBuffer(type, to);
}

DenseResourceElementsAttr
onnx::transposeWeights(DenseResourceElementsAttr attr, RankedTensorType type,
                       ArrayRef<int64_t> permutation) {
  auto source = cast<RankedTensorType>(attr.getType());
  // The key says how, so that equal tensors are one.
  std::string name = attr.getRawHandle().getKey().str() + ".transposed";
  for (int64_t dim : permutation)
    name += "." + std::to_string(source.getDimSize(dim)) + "of" +
            std::to_string(dim);
  return getOrCreateWeights(type, name, [&](MutableArrayRef<char> to) {
    transposeElements(source, *getStoredBytes(attr), type, permutation, to);
  });
}

/// Whether a permutation swaps the last two dimensions, and nothing else.
static bool isTransposeOfMatrices(ArrayRef<int64_t> permutation) {
  int64_t rank = permutation.size();
  return rank >= 2 && permutation[rank - 1] == rank - 2 &&
         permutation[rank - 2] == rank - 1 &&
         llvm::equal(permutation.drop_back(2), llvm::seq<int64_t>(0, rank - 2));
}

Tensor onnx::transpose(NodeImporter &node, Tensor &tensor,
                       ArrayRef<int64_t> permutation) {
  Tensor result;
  result.element = tensor.element;
  result.range = tensor.range;
  if (tensor.codes && isTransposeOfMatrices(permutation)) {
    std::vector<CodesOrigin> codes = *tensor.codes;
    for (CodesOrigin &matrix : codes)
      matrix.isTransposed = !matrix.isTransposed;
    result.codes = std::make_shared<std::vector<CodesOrigin>>(std::move(codes));
  }
  for (int64_t dim : permutation)
    result.shape.push_back(tensor.shape[dim]);
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return tensor;
  RankedTensorType type = node.graph.getType(result.shape, tensor.element);
  if (tensor.constant && !tensor.isBool() && !tensor.constant.empty()) {
    result.constant =
        tensor.constant.isSplat()
            ? tensor.constant.resizeSplat(type)
            : transposeConstant(tensor.constant, type, permutation);
    return result;
  }
  if (tensor.weights) {
    bool isMatrix = permutation.size() == 2;
    result.weights = isMatrix
                         ? tensor.weights
                         : transposeWeights(tensor.weights, type, permutation);
    result.hasTransposedWeights = isMatrix && !tensor.hasTransposedWeights;
    return result;
  }
  Value value = node.getValue(tensor);
  Value init = createEmpty(node, result.shape, tensor.element);
  result.value =
      linalg::TransposeOp::create(node, value, init, permutation)->getResult(0);
  return result;
}

Tensor onnx::slice(NodeImporter &node, Tensor &tensor, ArrayRef<Size> offsets,
                   ArrayRef<Size> sizes, ArrayRef<int64_t> strides) {
  if (sizes == ArrayRef<Size>(tensor.shape) &&
      llvm::all_of(strides, [](int64_t stride) { return stride == 1; }))
    return tensor;
  // No offset is in bounds of a tensor without elements.
  if (isEmpty(tensor.shape) && isEmpty(sizes))
    return createTensor(node, createEmpty(node, sizes, tensor.element), sizes);
  Value value = node.getValue(tensor);
  SmallVector<OpFoldResult> steps(sizes.size(), node.getIndexAttr(1));
  if (!strides.empty())
    steps = getAsIndexOpFoldResult(node.getContext(), strides);
  // A slice from the end of a dimension is empty, but its offset must be in
  // bounds.
  SmallVector<Size> first(offsets);
  for (auto [offset, size, whole] : llvm::zip_equal(first, sizes, tensor.shape))
    if (size.isConstant(0) || node.sizes.isAtMost(whole, offset))
      offset = 0;
  Value part = tensor::ExtractSliceOp::create(node, value, node.getMixed(first),
                                              node.getMixed(sizes), steps);
  Tensor result = createTensor(node, part, sizes);
  result.range = tensor.range;
  return result;
}

FailureOr<Tensor> onnx::concat(NodeImporter &node, ArrayRef<Tensor *> tensors,
                               int64_t axis) {
  SmallVector<Size> shape = tensors.front()->shape;
  Size total(0);
  for (Tensor *tensor : tensors) {
    if (tensor->shape.size() != shape.size() ||
        tensor->element != tensors.front()->element)
      return node.emitError() << "the inputs differ in rank or element type";
    total = total + tensor->shape[axis];
    for (auto [dim, size] : llvm::enumerate(tensor->shape)) {
      if (static_cast<int64_t>(dim) == axis)
        continue;
      if (!requireEqual(node, size, shape[dim]))
        return node.emitError()
               << "the inputs differ in size of dimension " << dim;
      if (size.getConstant())
        shape[dim] = size;
    }
  }
  shape[axis] = total;
  if (isEmpty(shape))
    return createTensor(
        node, createEmpty(node, shape, tensors.front()->element), shape);
  SmallVector<Value> values;
  for (Tensor *tensor : tensors) {
    // An empty cache before the first token.
    if (!tensor->shape[axis].isConstant(0))
      values.push_back(node.getValue(*tensor));
  }
  if (values.size() == 1)
    return createTensor(node, values.front(), shape);
  Value joined = tensor::ConcatOp::create(node, axis, values);
  Tensor result = createTensor(node, joined, shape);
  if (axis + 1 == result.getRank() &&
      llvm::all_of(tensors, [&](Tensor *tensor) {
        return tensor->range && tensor->shape[axis].isConstant(1);
      }))
    for (Tensor *tensor : tensors)
      result.columnRanges.push_back(*tensor->range);
  return result;
}
