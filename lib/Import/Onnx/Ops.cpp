//===- Ops.cpp - emission of elementwise operations and reductions --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scalars.h"

#include "posenc/IR/CreateGeneric.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Tensor onnx::createTensor(NodeImporter &node, Value value,
                          ArrayRef<Size> shape) {
  Tensor tensor;
  tensor.element = getElementTypeOrSelf(value.getType());
  tensor.shape.assign(shape.begin(), shape.end());
  RankedTensorType type = node.graph.getType(shape, tensor.element);
  if (value.getType() != type)
    value = tensor::CastOp::create(node.builder, node.loc, type, value);
  tensor.value = value;
  return tensor;
}

Tensor onnx::createElements(Type element, ArrayRef<Size> elements,
                            int64_t rank) {
  Tensor tensor;
  tensor.element = element;
  if (rank == 1)
    tensor.shape.push_back(static_cast<int64_t>(elements.size()));
  tensor.elements.emplace(elements.begin(), elements.end());
  return tensor;
}

Value onnx::createEmpty(NodeImporter &node, ArrayRef<Size> shape,
                        Type element) {
  return tensor::EmptyOp::create(
      node.builder, node.loc,
      node.sizes.getMixed(node.builder, node.loc, shape), element);
}

Value onnx::createScalar(OpBuilder &builder, Location loc, Type type,
                         double value) {
  if (auto floatType = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(builder, loc,
                                     builder.getFloatAttr(floatType, value));
  return arith::ConstantOp::create(
      builder, loc, builder.getIntegerAttr(type, static_cast<int64_t>(value)));
}

/// Returns a tensor filled with a scalar.
static Value fill(NodeImporter &node, ArrayRef<Size> shape, Value scalar) {
  Value empty = createEmpty(node, shape, scalar.getType());
  return linalg::FillOp::create(node.builder, node.loc, scalar, empty)
      .getResult(0);
}

Value onnx::createFilled(NodeImporter &node, ArrayRef<Size> shape, Type element,
                         double value) {
  return fill(node, shape,
              createScalar(node.builder, node.loc, element, value));
}

TypedAttr onnx::getSplat(const Tensor &tensor) {
  if (!tensor.constant || tensor.constant.empty())
    return nullptr;
  if (!tensor.constant.isSplat() && tensor.constant.getNumElements() != 1)
    return nullptr;
  return cast<TypedAttr>(*tensor.constant.getValues<Attribute>().begin());
}

Type onnx::getWideType(Type type) {
  if (type.isF16() || type.isBF16())
    return Float32Type::get(type.getContext());
  return type;
}

Value onnx::convertScalar(OpBuilder &builder, Location loc, Value value,
                          Type type) {
  Type from = value.getType();
  if (from == type)
    return value;
  auto isFloat = [](Type t) { return isa<FloatType>(t); };
  unsigned fromWidth = from.isIndex() ? 64 : from.getIntOrFloatBitWidth();
  unsigned toWidth = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  if (isFloat(from) && isFloat(type)) {
    if (toWidth > fromWidth)
      return arith::ExtFOp::create(builder, loc, type, value);
    if (toWidth < fromWidth)
      return arith::TruncFOp::create(builder, loc, type, value);
    // f16 and bf16.
    Value wide =
        arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
    return arith::TruncFOp::create(builder, loc, type, wide);
  }
  if (type.isInteger(1)) {
    Value zero = createScalar(builder, loc, from, 0);
    if (isFloat(from))
      return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE,
                                   value, zero);
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, value,
                                 zero);
  }
  if (isFloat(from)) {
    if (fromWidth < 32)
      value = arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
    return arith::FPToSIOp::create(builder, loc, type, value);
  }
  bool isBool = from.isInteger(1);
  if (isFloat(type)) {
    Type wide = getWideType(type);
    Value number =
        isBool ? arith::UIToFPOp::create(builder, loc, wide, value).getResult()
               : arith::SIToFPOp::create(builder, loc, wide, value).getResult();
    return convertScalar(builder, loc, number, type);
  }
  if (from.isIndex() || type.isIndex())
    return arith::IndexCastOp::create(builder, loc, type, value);
  if (toWidth < fromWidth)
    return arith::TruncIOp::create(builder, loc, type, value);
  return isBool ? arith::ExtUIOp::create(builder, loc, type, value).getResult()
                : arith::ExtSIOp::create(builder, loc, type, value).getResult();
}

//===----------------------------------------------------------------------===//
// Elementwise operations
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Size>>
onnx::broadcastShapes(NodeImporter &node, ArrayRef<Tensor *> operands) {
  size_t rank = 0;
  for (Tensor *operand : operands)
    rank = std::max(rank, operand->shape.size());
  SmallVector<Size> shape(rank, Size(1));
  for (Tensor *operand : operands) {
    size_t first = rank - operand->shape.size();
    for (auto [number, size] : llvm::enumerate(operand->shape)) {
      Size &result = shape[first + number];
      if (size == result || size.isConstant(1))
        continue;
      if (result.isConstant(1)) {
        result = size;
        continue;
      }
      if (!mayBeEqual(node, size, result))
        return node.emitError() << "the shapes of the inputs differ in "
                                   "dimension "
                                << first + number << " of the result";
      // A constant makes more of the program static.
      if (size.getConstant())
        result = size;
    }
  }
  return shape;
}

Tensor onnx::createGeneric(
    NodeImporter &node, ValueRange inputs, Value init, ArrayRef<AffineMap> maps,
    ArrayRef<utils::IteratorType> loops, ArrayRef<Size> shape,
    function_ref<void(OpBuilder &, Location, ValueRange)> body) {
  auto op = linalg::GenericOp::create(node.builder, node.loc, init.getType(),
                                      inputs, init, maps, loops, body);
  return createTensor(node, op.getResult(0), shape);
}

/// Drops the dimensions of a value that have size 1 and are not in `kept`.
static Value dropDims(NodeImporter &node, Value value, ArrayRef<bool> kept) {
  if (llvm::all_of(kept, [](bool isKept) { return isKept; }))
    return value;
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices leading;
  for (auto [dim, isKept] : llvm::enumerate(kept)) {
    if (isKept) {
      groups.push_back(leading);
      leading.clear();
      groups.back().push_back(dim);
    } else if (groups.empty()) {
      leading.push_back(dim);
    } else {
      groups.back().push_back(dim);
    }
  }
  return tensor::CollapseShapeOp::create(node.builder, node.loc, value, groups);
}

Tensor onnx::mapElementsTo(NodeImporter &node, ArrayRef<Tensor *> operands,
                           ArrayRef<Size> shape, Type element, Body body) {
  OpBuilder &builder = node.builder;
  MLIRContext *context = builder.getContext();
  int64_t rank = shape.size();
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  // For each operand: an input, a scalar from outside, or a constant.
  SmallVector<std::optional<unsigned>> numbers;
  SmallVector<Value> scalars;
  SmallVector<TypedAttr> constants;
  for (Tensor *operand : operands) {
    numbers.emplace_back();
    scalars.emplace_back();
    constants.push_back(getSplat(*operand));
    if (constants.back())
      continue;
    if (operand->elements && operand->elements->size() == 1 &&
        !operand->isBool()) {
      Value index =
          node.sizes.materialize(builder, node.loc, operand->elements->front());
      scalars.back() =
          convertScalar(builder, node.loc, index, operand->element);
      continue;
    }
    SmallVector<bool> kept;
    SmallVector<AffineExpr> exprs;
    int64_t first = rank - operand->getRank();
    for (auto [dim, size] : llvm::enumerate(operand->shape)) {
      kept.push_back(!size.isConstant(1) || shape[first + dim].isConstant(1));
      if (kept.back())
        exprs.push_back(builder.getAffineDimExpr(first + dim));
    }
    numbers.back() = inputs.size();
    inputs.push_back(dropDims(node, node.getValue(*operand), kept));
    maps.push_back(AffineMap::get(rank, 0, exprs, context));
  }
  maps.push_back(builder.getMultiDimIdentityMap(rank));
  Value init = createEmpty(node, shape, element);
  auto create = [&](OpBuilder &b, Location loc, ValueRange args) {
    SmallVector<Value> values;
    for (auto [number, scalar, constant] :
         llvm::zip_equal(numbers, scalars, constants)) {
      if (number)
        values.push_back(args[*number]);
      else if (constant)
        values.push_back(arith::ConstantOp::create(b, loc, constant));
      else
        values.push_back(scalar);
    }
    Scalars s(b, loc, getWideType(element));
    return s.convert(body(s, values), element);
  };
  Value result =
      createParallelGeneric(builder, node.loc, inputs, init, maps, create);
  return createTensor(node, result, shape);
}

FailureOr<Tensor> onnx::mapElements(NodeImporter &node,
                                    ArrayRef<Tensor *> operands, Type element,
                                    Body body) {
  FailureOr<SmallVector<Size>> shape = broadcastShapes(node, operands);
  if (failed(shape))
    return failure();
  return mapElementsTo(node, operands, *shape, element, body);
}

Tensor onnx::broadcast(NodeImporter &node, Tensor &tensor,
                       ArrayRef<Size> shape) {
  return mapElementsTo(node, &tensor, shape, tensor.element,
                       [](Scalars &, ValueRange args) { return args[0]; });
}

Tensor onnx::convertTensor(NodeImporter &node, Tensor &tensor, Type element) {
  if (tensor.element == element)
    return tensor;
  auto integer = dyn_cast<IntegerType>(element);
  if (tensor.elements && integer && integer.getWidth() >= 32)
    return createElements(element, *tensor.elements, tensor.getRank());
  return mapElementsTo(node, &tensor, tensor.shape, element,
                       [](Scalars &, ValueRange args) { return args[0]; });
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Returns the value that a reduction starts with.
static Value createNeutral(NodeImporter &node, Reduction kind, Type element) {
  OpBuilder &b = node.builder;
  if (kind == Reduction::Sum || kind == Reduction::Product)
    return createScalar(b, node.loc, element, kind == Reduction::Product);
  bool isMax = kind == Reduction::Max;
  if (auto type = dyn_cast<FloatType>(element))
    return arith::ConstantOp::create(
        b, node.loc,
        b.getFloatAttr(type, APFloat::getInf(type.getFloatSemantics(), isMax)));
  unsigned width = element.getIntOrFloatBitWidth();
  APInt limit = element.isInteger(1) ? APInt(1, !isMax)
                : isMax              ? APInt::getSignedMinValue(width)
                                     : APInt::getSignedMaxValue(width);
  return arith::ConstantOp::create(b, node.loc,
                                   b.getIntegerAttr(element, limit));
}

static Value combine(OpBuilder &b, Location loc, Reduction kind, Value x,
                     Value y) {
  bool isFloat = isa<FloatType>(x.getType());
  bool isBool = x.getType().isInteger(1);
  switch (kind) {
  case Reduction::Sum:
    return isFloat ? arith::AddFOp::create(b, loc, x, y).getResult()
                   : arith::AddIOp::create(b, loc, x, y).getResult();
  case Reduction::Product:
    return isFloat ? arith::MulFOp::create(b, loc, x, y).getResult()
                   : arith::MulIOp::create(b, loc, x, y).getResult();
  case Reduction::Max:
    return isFloat  ? arith::MaximumFOp::create(b, loc, x, y).getResult()
           : isBool ? arith::OrIOp::create(b, loc, x, y).getResult()
                    : arith::MaxSIOp::create(b, loc, x, y).getResult();
  case Reduction::Min:
    return isFloat  ? arith::MinimumFOp::create(b, loc, x, y).getResult()
           : isBool ? arith::AndIOp::create(b, loc, x, y).getResult()
                    : arith::MinSIOp::create(b, loc, x, y).getResult();
  }
  return x;
}

Tensor onnx::reduce(NodeImporter &node, Tensor &tensor, ArrayRef<int64_t> axes,
                    Reduction kind, Type element, Body transform) {
  OpBuilder &builder = node.builder;
  int64_t rank = tensor.getRank();
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  for (int64_t axis : axes)
    loops[axis] = utils::IteratorType::reduction;
  SmallVector<AffineExpr> kept;
  SmallVector<Size> shape;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (loops[dim] == utils::IteratorType::parallel) {
      kept.push_back(builder.getAffineDimExpr(dim));
      shape.push_back(tensor.shape[dim]);
    }
  AffineMap maps[] = {builder.getMultiDimIdentityMap(rank),
                      AffineMap::get(rank, 0, kept, builder.getContext())};
  Value init = fill(node, shape, createNeutral(node, kind, element));
  auto create = [&](OpBuilder &b, Location loc, ValueRange args) {
    Scalars s(b, loc, element);
    Value x = s.convert(args[0]);
    if (transform)
      x = transform(s, x);
    linalg::YieldOp::create(b, loc, combine(b, loc, kind, args[1], x));
  };
  return createGeneric(node, node.getValue(tensor), init, maps, loops, shape,
                       create);
}

Value onnx::createCount(NodeImporter &node, const Tensor &tensor,
                        ArrayRef<int64_t> axes, Type element) {
  Size count(1);
  for (int64_t axis : axes)
    count = count * tensor.shape[axis];
  if (std::optional<int64_t> constant = count.getConstant())
    return createScalar(node.builder, node.loc, element, *constant);
  Value index = count.isValid()
                    ? node.sizes.materialize(node.builder, node.loc, count)
                    : createScalar(node.builder, node.loc,
                                   node.builder.getIndexType(), 1);
  Value integer =
      convertScalar(node.builder, node.loc, index, node.builder.getI64Type());
  return convertScalar(node.builder, node.loc, integer, element);
}
