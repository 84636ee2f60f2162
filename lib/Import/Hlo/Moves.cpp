//===- Moves.cpp - slices, reshapes, broadcasts, gathers ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Converter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;
using namespace mlir::posenc::hlo;

/// Returns the operation `result[loops] = value[map(loops)]`.
static Value createMove(OpBuilder &builder, Location loc, Value value,
                        AffineMap map, Value init) {
  auto type = cast<RankedTensorType>(init.getType());
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, type, value, init,
             ArrayRef<AffineMap>{
                 map, builder.getMultiDimIdentityMap(type.getRank())},
             loops,
             [](OpBuilder &b, Location loc, ValueRange args) {
               linalg::YieldOp::create(b, loc, args[0]);
             })
      .getResult(0);
}

Value Converter::broadcast(Value value, RankedTensorType type,
                           ArrayRef<int64_t> dims) {
  RankedTensorType source = getType(value);
  if (source.getRank() != int64_t(dims.size()))
    return fail("has another number of dimensions than its operand");
  if (source == type)
    return value;
  SmallVector<AffineExpr> indices;
  for (auto [dim, size] : llvm::zip_equal(dims, source.getShape())) {
    if (dim < 0 || dim >= type.getRank() ||
        (size != 1 && size != type.getDimSize(dim)))
      return fail("cannot broadcast its operand");
    indices.push_back(size == 1 && type.getDimSize(dim) != 1
                          ? builder.getAffineConstantExpr(0)
                          : builder.getAffineDimExpr(dim));
  }
  return createMove(
      builder, loc, value,
      AffineMap::get(type.getRank(), 0, indices, builder.getContext()),
      createEmpty(type));
}

Value Converter::broadcastLast(Value value, ArrayRef<int64_t> shape) {
  RankedTensorType type = getType(value);
  if (type.getShape() == shape)
    return value;
  if (type.getRank() > int64_t(shape.size()))
    return fail("cannot broadcast its operands");
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    dims.push_back(shape.size() - type.getRank() + dim);
  return broadcast(value, type.clone(shape), dims);
}

Value Converter::reshape(Value value, RankedTensorType type) {
  RankedTensorType source = getType(value);
  if (source.getShape() == type.getShape())
    return value;
  if (source.getNumElements() != type.getNumElements())
    return fail("changes the number of elements");
  auto groups = getReassociationIndicesForReshape(source, type);
  if (groups && source.getRank() > type.getRank())
    return tensor::CollapseShapeOp::create(builder, loc, type, value, *groups);
  if (groups && source.getRank() < type.getRank())
    return tensor::ExpandShapeOp::create(builder, loc, type, value, *groups);
  // By way of a single dimension.
  RankedTensorType flat = type.clone(ArrayRef(type.getNumElements()));
  auto all = [](RankedTensorType shape) {
    ReassociationIndices group;
    for (int64_t dim = 0; dim < shape.getRank(); ++dim)
      group.push_back(dim);
    return SmallVector<ReassociationIndices>{group};
  };
  if (source.getRank() != 1)
    value =
        source.getRank() == 0
            ? Value(tensor::ExpandShapeOp::create(
                  builder, loc, flat, value, ArrayRef<ReassociationIndices>()))
            : Value(tensor::CollapseShapeOp::create(builder, loc, flat, value,
                                                    all(source)));
  if (type.getRank() == 1)
    return value;
  if (type.getRank() == 0)
    return tensor::CollapseShapeOp::create(builder, loc, type, value,
                                           ArrayRef<ReassociationIndices>());
  return tensor::ExpandShapeOp::create(builder, loc, type, value, all(type));
}

Value Converter::transpose(Value value, ArrayRef<int64_t> permutation) {
  RankedTensorType type = getType(value);
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation) {
    if (dim < 0 || dim >= type.getRank())
      return fail("has a wrong permutation");
    shape.push_back(type.getDimSize(dim));
  }
  Value init = createEmpty(type.clone(shape));
  return linalg::TransposeOp::create(builder, loc, value, init, permutation)
      ->getResult(0);
}

Value Converter::slice(Value value, ArrayRef<int64_t> begins,
                       ArrayRef<int64_t> ends, ArrayRef<int64_t> strides) {
  RankedTensorType type = getType(value);
  size_t rank = type.getRank();
  if (begins.size() != rank || ends.size() != rank || strides.size() != rank)
    return fail("has ranges of another rank than its operand");
  SmallVector<OpFoldResult> offsets, sizes, steps;
  for (size_t dim = 0; dim < rank; ++dim) {
    if (begins[dim] < 0 || ends[dim] < begins[dim] || strides[dim] < 1 ||
        ends[dim] > type.getDimSize(dim))
      return fail("has a range outside of its operand");
    int64_t size = (ends[dim] - begins[dim] + strides[dim] - 1) / strides[dim];
    offsets.push_back(builder.getIndexAttr(begins[dim]));
    sizes.push_back(builder.getIndexAttr(size));
    steps.push_back(builder.getIndexAttr(strides[dim]));
  }
  return tensor::ExtractSliceOp::create(builder, loc, value, offsets, sizes,
                                        steps);
}

Value Converter::concatenate(ValueRange values, int64_t dim) {
  int64_t rank = getType(values[0]).getRank();
  if (dim < 0)
    dim += rank;
  if (dim < 0 || dim >= rank)
    return fail("has a wrong dimension");
  return tensor::ConcatOp::create(builder, loc, dim, values);
}

Value Converter::getClampedIndex(Value scalar, int64_t max) {
  if (getType(scalar).getRank() != 0)
    scalar = reshape(scalar, getType(scalar).clone(ArrayRef<int64_t>()));
  if (!scalar)
    return {};
  Value number = tensor::ExtractOp::create(builder, loc, scalar, ValueRange());
  Value index =
      arith::IndexCastOp::create(builder, loc, builder.getIndexType(), number);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  index = arith::MaxSIOp::create(builder, loc, index, constant(0));
  return arith::MinSIOp::create(builder, loc, index, constant(max));
}

Value Converter::createPad() {
  RankedTensorType type = getType(getOperand(0)), result = getResultType();
  auto low = getNumbers("edge_padding_low"),
       high = getNumbers("edge_padding_high"),
       interior = getNumbers("interior_padding");
  size_t rank = type.getRank();
  if (!low || !high || low->size() != rank || high->size() != rank)
    return fail("lacks its padding");
  if (interior && llvm::any_of(*interior, [](int64_t n) { return n != 0; }))
    return fail("with padding between elements is not supported");
  Value value = getOperand(0);
  // Negative padding removes elements.
  SmallVector<int64_t> begins, ends;
  for (size_t dim = 0; dim < rank; ++dim) {
    begins.push_back(std::max<int64_t>(0, -(*low)[dim]));
    ends.push_back(type.getDimSize(dim) - std::max<int64_t>(0, -(*high)[dim]));
  }
  value = slice(value, begins, ends, SmallVector<int64_t>(rank, 1));
  if (!value)
    return {};
  SmallVector<OpFoldResult> before, after;
  for (size_t dim = 0; dim < rank; ++dim) {
    before.push_back(builder.getIndexAttr(std::max<int64_t>(0, (*low)[dim])));
    after.push_back(builder.getIndexAttr(std::max<int64_t>(0, (*high)[dim])));
  }
  Value fill =
      tensor::ExtractOp::create(builder, loc, getOperand(1), ValueRange());
  return tensor::PadOp::create(builder, loc, result, value, before, after,
                               fill);
}

Value Converter::createReverse() {
  RankedTensorType type = getResultType();
  std::optional<SmallVector<int64_t>> dims = getNumbers("dimensions");
  if (!dims)
    return fail("lacks its dimensions");
  Value init = createEmpty(type), source = getOperand(0);
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, type, ValueRange(), init,
             builder.getMultiDimIdentityMap(type.getRank()), loops,
             [&](OpBuilder &b, Location loc, ValueRange) {
               SmallVector<Value> at;
               for (int64_t dim = 0; dim < type.getRank(); ++dim) {
                 Value index = linalg::IndexOp::create(b, loc, dim);
                 if (llvm::is_contained(*dims, dim)) {
                   Value last = arith::ConstantIndexOp::create(
                       b, loc, type.getDimSize(dim) - 1);
                   index = arith::SubIOp::create(b, loc, last, index);
                 }
                 at.push_back(index);
               }
               Value element = tensor::ExtractOp::create(b, loc, source, at);
               linalg::YieldOp::create(b, loc, element);
             })
      .getResult(0);
}

/// Gathers slices that begin at indices, which are clamped so that the slices
/// are inside.
Value Converter::createGather() {
  auto text = dyn_cast_or_null<StringAttr>(getAttribute("dimension_numbers"));
  auto sliceSizes = getNumbers("slice_sizes");
  if (!text || !sliceSizes)
    return fail("lacks its dimension numbers");
  StringRef numbers = text.getValue();
  if (!getListInText(numbers, "operand_batching_dims").empty())
    return fail("with batching dimensions is not supported");
  SmallVector<int64_t> offsetDims = getListInText(numbers, "offset_dims"),
                       collapsed =
                           getListInText(numbers, "collapsed_slice_dims"),
                       startMap = getListInText(numbers, "start_index_map");
  int64_t vectorDim = 0;
  StringRef rest = numbers.split("index_vector_dim").second.ltrim(" =");
  if (rest.consumeInteger(10, vectorDim))
    vectorDim = 0;
  Value operand = getOperand(0), starts = getOperand(1);
  RankedTensorType source = getType(operand), startType = getType(starts),
                   type = getResultType();
  if (int64_t(sliceSizes->size()) != source.getRank())
    return fail("has slice sizes of another rank than its operand");
  Value init = createEmpty(type);
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, type, ValueRange(), init,
             builder.getMultiDimIdentityMap(type.getRank()), loops,
             [&](OpBuilder &b, Location loc, ValueRange) {
               SmallVector<Value> batch, offsets;
               for (int64_t dim = 0; dim < type.getRank(); ++dim) {
                 Value index = linalg::IndexOp::create(b, loc, dim);
                 (llvm::is_contained(offsetDims, dim) ? offsets : batch)
                     .push_back(index);
               }
               auto constant = [&](int64_t value) -> Value {
                 return arith::ConstantIndexOp::create(b, loc, value);
               };
               auto getStart = [&](int64_t number, int64_t max) -> Value {
                 SmallVector<Value> at(batch);
                 if (vectorDim < startType.getRank())
                   at.insert(at.begin() + vectorDim, constant(number));
                 Value start = tensor::ExtractOp::create(b, loc, starts, at);
                 start = arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                                    start);
                 start = arith::MaxSIOp::create(b, loc, start, constant(0));
                 return arith::MinSIOp::create(b, loc, start, constant(max));
               };
               SmallVector<Value> at;
               unsigned nextOffset = 0;
               for (int64_t dim = 0; dim < source.getRank(); ++dim) {
                 Value index;
                 if (!llvm::is_contained(collapsed, dim) &&
                     nextOffset < offsets.size())
                   index = offsets[nextOffset++];
                 auto *it = llvm::find(startMap, dim);
                 if (it != startMap.end()) {
                   Value start =
                       getStart(it - startMap.begin(),
                                source.getDimSize(dim) - (*sliceSizes)[dim]);
                   index =
                       index
                           ? Value(arith::AddIOp::create(b, loc, start, index))
                           : start;
                 }
                 at.push_back(index ? index : constant(0));
               }
               Value element = tensor::ExtractOp::create(b, loc, operand, at);
               linalg::YieldOp::create(b, loc, element);
             })
      .getResult(0);
}
