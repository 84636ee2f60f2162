//===- Moves.cpp - slices, reshapes, broadcasts, gathers ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Converter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::hlo;

Value Converter::broadcast(Value value, ArrayRef<Size> shape,
                           ArrayRef<int64_t> dims) {
  Shape source = getShape(value);
  if (source.size() != dims.size())
    return fail("has another number of dimensions than its operand");
  if (ArrayRef<Size>(source) == shape)
    return value;
  SmallVector<AffineExpr> indices;
  for (auto [dim, size] : llvm::zip_equal(dims, source)) {
    if (dim < 0 || dim >= int64_t(shape.size()) ||
        (size.getConstant() && !size.isConstant(1) &&
         sizes.table.areDifferent(size, shape[dim])))
      return fail("cannot broadcast its operand");
    indices.push_back(size.isConstant(1) && shape[dim] != size
                          ? builder.getAffineConstantExpr(0)
                          : builder.getAffineDimExpr(dim));
  }
  AffineMap map =
      AffineMap::get(shape.size(), 0, indices, builder.getContext());
  Value init = createEmpty(shape, getType(value).getElementType());
  return createGeneric(
      builder, value, init, {map, builder.getMultiDimIdentityMap(shape.size())},
      {}, [](ImplicitLocOpBuilder &, ValueRange args) { return args[0]; });
}

Value Converter::broadcastLast(Value value, ArrayRef<Size> shape) {
  if (ArrayRef<Size>(getShape(value)) == shape)
    return value;
  int64_t rank = getType(value).getRank();
  if (rank > int64_t(shape.size()))
    return fail("cannot broadcast its operands");
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    dims.push_back(shape.size() - rank + dim);
  return broadcast(value, shape, dims);
}

Value Converter::reshape(Value value, RankedTensorType type) {
  RankedTensorType source = getType(value);
  if (source.getShape() == type.getShape())
    return value;
  if (source.getNumElements() != type.getNumElements())
    return fail("changes the number of elements");
  auto groups = getReassociationIndicesForReshape(source, type);
  if (groups && source.getRank() > type.getRank())
    return tensor::CollapseShapeOp::create(builder, type, value, *groups);
  if (groups && source.getRank() < type.getRank())
    return tensor::ExpandShapeOp::create(builder, type, value, *groups);
  // By way of a single dimension.
  RankedTensorType flat = type.clone(ArrayRef(type.getNumElements()));
  auto all = [](RankedTensorType shape) {
    ReassociationIndices group;
    for (int64_t dim = 0; dim < shape.getRank(); ++dim)
      group.push_back(dim);
    return SmallVector<ReassociationIndices>{group};
  };
  if (source.getRank() != 1)
    value = source.getRank() == 0
                ? Value(tensor::ExpandShapeOp::create(
                      builder, flat, value, ArrayRef<ReassociationIndices>()))
                : Value(tensor::CollapseShapeOp::create(builder, flat, value,
                                                        all(source)));
  if (type.getRank() == 1)
    return value;
  if (type.getRank() == 0)
    return tensor::CollapseShapeOp::create(builder, type, value,
                                           ArrayRef<ReassociationIndices>());
  return tensor::ExpandShapeOp::create(builder, type, value, all(type));
}

Value Converter::reshape(Value value, ArrayRef<Size> shape) {
  RankedTensorType source = getType(value),
                   type = getTypeOf(shape, source.getElementType());
  if (source.hasStaticShape() && type.hasStaticShape())
    return reshape(value, type);
  Shape from = getShape(value);
  if (ArrayRef<Size>(from) == shape)
    return value;
  if (from.empty() || shape.empty())
    return fail("of dynamic sizes from or to a scalar is not supported");
  // Consecutive dimensions with as many elements form a group. Dimensions from
  // where no equal products are found form one, which entry points check.
  SmallVector<ReassociationIndices> collapsed, expanded;
  auto take = [](ReassociationIndices &group, size_t &next) {
    group.push_back(next++);
  };
  size_t i = 0, j = 0;
  while (i < from.size() && j < shape.size()) {
    ReassociationIndices &left = collapsed.emplace_back(),
                         &right = expanded.emplace_back();
    Size product = from[i], other = shape[j];
    take(left, i);
    take(right, j);
    while (product != other && (i < from.size() || j < shape.size())) {
      bool extendsRight = product.getConstant() && other.getConstant()
                              ? *other.getConstant() < *product.getConstant()
                              : product.divideExactly(other).has_value();
      if (j == shape.size() || (!extendsRight && i < from.size())) {
        product = product * from[i];
        take(left, i);
      } else {
        other = other * shape[j];
        take(right, j);
      }
    }
    if (product.getConstant() && other.getConstant() && product != other)
      return fail("changes the number of elements");
  }
  // Further dimensions have size 1.
  while (i < from.size())
    take(collapsed.back(), i);
  while (j < shape.size())
    take(expanded.back(), j);
  RankedTensorType needed =
      tensor::CollapseShapeOp::inferCollapsedType(type, expanded);
  Shape middleShape;
  for (const ReassociationIndices &group : collapsed) {
    Size product(1);
    for (int64_t dim : group)
      product = product * from[dim];
    middleShape.push_back(product);
  }
  if (collapsed.size() != from.size())
    value =
        withShape(tensor::CollapseShapeOp::create(builder, value, collapsed),
                  middleShape);
  if (value.getType() != needed)
    value =
        withShape(tensor::CastOp::create(builder, needed, value), middleShape);
  if (expanded.size() != shape.size())
    value = tensor::ExpandShapeOp::create(builder, type, value, expanded,
                                          getMixed(shape));
  return withShape(value, shape);
}

Value Converter::transpose(Value value, ArrayRef<int64_t> permutation) {
  Shape source = getShape(value), shape;
  if (permutation.size() != source.size() || !isPermutationVector(permutation))
    return fail("has a wrong permutation");
  for (int64_t dim : permutation)
    shape.push_back(source[dim]);
  Value init = createEmpty(shape, getType(value).getElementType());
  return linalg::TransposeOp::create(builder, value, init, permutation)
      ->getResult(0);
}

Value Converter::slice(Value value, ArrayRef<int64_t> begins,
                       ArrayRef<int64_t> ends, ArrayRef<int64_t> strides) {
  Shape source = getShape(value);
  size_t rank = source.size();
  if (begins.size() != rank || ends.size() != rank || strides.size() != rank)
    return fail("has ranges of another rank than its operand");
  Shape offsets, counts;
  for (size_t dim = 0; dim < rank; ++dim) {
    if (begins[dim] < 0 || ends[dim] < begins[dim] || strides[dim] < 1 ||
        (source[dim].getConstant() && ends[dim] > *source[dim].getConstant()))
      return fail("has a range outside of its operand");
    offsets.push_back(begins[dim]);
    int64_t span = ends[dim] - begins[dim];
    counts.push_back(span / strides[dim] + (span % strides[dim] != 0));
  }
  return sliceBy(value, offsets, counts, strides);
}

Value Converter::sliceBy(Value value, ArrayRef<Size> offsets,
                         ArrayRef<Size> counts, ArrayRef<int64_t> strides) {
  // The offset of a slice without elements may be the end of its operand,
  // which tensor.extract_slice does not allow.
  if (hasNoElements(counts))
    return createEmpty(counts, getType(value).getElementType());
  return withShape(tensor::ExtractSliceOp::create(
                       builder, value, getMixed(offsets), getMixed(counts),
                       getAsIndexOpFoldResult(builder.getContext(), strides)),
                   counts);
}

Value Converter::gatherElements(
    Value source, ArrayRef<Size> shape,
    function_ref<SmallVector<Value>(ImplicitLocOpBuilder &, ValueRange)>
        getIndices) {
  Value init = createEmpty(shape, getType(source).getElementType());
  return createGeneric(builder, {}, init, {}, {},
                       [&](ImplicitLocOpBuilder &b, ValueRange) -> Value {
                         SmallVector<Value> indices;
                         for (size_t dim = 0; dim < shape.size(); ++dim)
                           indices.push_back(linalg::IndexOp::create(b, dim));
                         return tensor::ExtractOp::create(
                             b, source, getIndices(b, indices));
                       });
}

Value Converter::concatenate(ValueRange values, int64_t dim) {
  Shape shape = getShape(values[0]);
  int64_t rank = shape.size();
  if (dim < 0)
    dim += rank;
  if (dim < 0 || dim >= rank)
    return fail("has a wrong dimension");
  Type element = getType(values[0]).getElementType();
  for (Value value : values.drop_front()) {
    Shape other = getShape(value);
    if (int64_t(other.size()) != rank ||
        getType(value).getElementType() != element)
      return fail("has operands of different ranks or types");
    for (int64_t i = 0; i < rank; ++i) {
      if (i == dim)
        shape[i] = shape[i] + other[i];
      else if (sizes.table.areDifferent(shape[i], other[i]))
        return fail("has operands of different sizes");
      else if (other[i].getConstant())
        shape[i] = other[i];
    }
  }
  Value result = tensor::ConcatOp::create(builder, dim, values);
  return withShape(result, shape);
}

Value Converter::getClampedIndex(Value scalar, const Size &max) {
  if (!isa<IntegerType>(getType(scalar).getElementType()))
    return fail("expected an integer index");
  if (getType(scalar).getRank() != 0)
    scalar = reshape(scalar, getType(scalar).clone(ArrayRef<int64_t>()));
  if (!scalar)
    return {};
  Value index = arith::IndexCastOp::create(builder, builder.getIndexType(),
                                           getScalar(scalar));
  Value zero = arith::ConstantIndexOp::create(builder, 0);
  index = arith::MaxSIOp::create(builder, index, zero);
  return arith::MinSIOp::create(builder, index, getIndex(max));
}

Value Converter::createPad(Value value, Value fill, ArrayRef<Size> low,
                           ArrayRef<Size> high) {
  RankedTensorType type = getType(value);
  size_t rank = type.getRank();
  if (low.size() != rank || high.size() != rank ||
      getType(fill).getRank() != 0 ||
      getType(fill).getElementType() != type.getElementType())
    return fail("lacks its padding");
  // Constant negative padding removes elements.
  Shape source = getShape(value), offsets, counts, before, after, shape;
  auto split = [](const Size &size) -> std::pair<Size, Size> {
    if (std::optional<int64_t> constant = size.getConstant())
      return {std::max<int64_t>(0, -*constant),
              std::max<int64_t>(0, *constant)};
    return {0, size};
  };
  for (size_t dim = 0; dim < rank; ++dim) {
    auto [cutLow, padLow] = split(low[dim]);
    auto [cutHigh, padHigh] = split(high[dim]);
    offsets.push_back(cutLow);
    counts.push_back(source[dim] - cutLow - cutHigh);
    before.push_back(padLow);
    after.push_back(padHigh);
    shape.push_back(counts.back() + padLow + padHigh);
    if (counts.back().getConstant() && *counts.back().getConstant() < 0)
      return fail("removes more elements than there are");
  }
  if (ArrayRef<Size>(counts) != ArrayRef<Size>(source))
    value = sliceBy(value, offsets, counts, SmallVector<int64_t>(rank, 1));
  Value scalar = getScalar(fill);
  return withShape(
      tensor::PadOp::create(builder, getTypeOf(shape, type.getElementType()),
                            value, getMixed(before), getMixed(after), scalar),
      shape);
}

Value Converter::createPad() {
  size_t rank = getType(getOperand(0)).getRank();
  Shape low, high;
  SmallVector<int64_t> interior;
  if (op->getNumOperands() == 5) {
    // dynamic_pad
    std::optional<Shape> before = sizes.getElements(getOperand(2)),
                         after = sizes.getElements(getOperand(3));
    auto between = getConstantElements(4);
    if (!before || !after || !between)
      return fail("has padding that does not follow from sizes");
    low = *before;
    high = *after;
    interior = *between;
  } else {
    auto before = getNumbers("edge_padding_low"),
         after = getNumbers("edge_padding_high");
    if (!before || !after)
      return fail("lacks its padding");
    low = toShape(*before);
    high = toShape(*after);
    interior =
        getNumbers("interior_padding").value_or(SmallVector<int64_t>(rank, 0));
  }
  if (llvm::any_of(interior, [](int64_t n) { return n != 0; }))
    return fail("with padding between elements is not supported");
  return createPad(getOperand(0), getOperand(1), low, high);
}

Value Converter::createReverse() {
  Value source = getOperand(0);
  Shape shape = getShape(source);
  std::optional<SmallVector<int64_t>> dims = getNumbers("dimensions");
  if (!dims)
    return fail("lacks its dimensions");
  SmallVector<Value> last;
  for (const Size &size : shape)
    last.push_back(llvm::is_contained(*dims, int64_t(last.size())) &&
                           !size.isConstant(0)
                       ? getIndex(size - 1)
                       : Value());
  return gatherElements(source, shape,
                        [&](ImplicitLocOpBuilder &b, ValueRange loops) {
                          SmallVector<Value> at(loops);
                          for (auto [index, end] : llvm::zip_equal(at, last))
                            if (end)
                              index = arith::SubIOp::create(b, end, index);
                          return at;
                        });
}
