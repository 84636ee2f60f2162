//===- Ops.cpp - emission of elementwise operations and reductions --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scalars.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "llvm/Support/MathExtras.h"

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
    value = tensor::CastOp::create(node, type, value);
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

/// Whether a size cannot overflow 64 bits, if its symbols are sizes of tensors
/// in memory.
static bool hasSmallCoefficients(const Size &size) {
  return size.isValid() && llvm::all_of(size.getTerms(), [](const auto &term) {
           return llvm::isInt<33>(term.second);
         });
}

/// Whether integers of the type hold a range of sizes, which entry points check
/// for types of 32 bits. Narrower types do not.
static bool requireFit(NodeImporter &node, Type element, const Size &low,
                       const Size &high) {
  unsigned width = element.getIntOrFloatBitWidth();
  return width > 32 || (width == 32 && requireAtMost(node, INT32_MIN, low) &&
                        requireAtMost(node, high, INT32_MAX));
}

std::optional<Tensor> onnx::createResults(NodeImporter &node, Type element,
                                          ArrayRef<Size> elements,
                                          int64_t rank) {
  unsigned width = element.getIntOrFloatBitWidth();
  SmallVector<Size> results(elements);
  for (Size &size : results) {
    if (std::optional<int64_t> constant = size.getConstant()) {
      size = width == 1 ? int64_t(*constant != 0)
                        : llvm::SignExtend64(*constant, width);
      continue;
    }
    if (!hasSmallCoefficients(size))
      return std::nullopt;
  }
  for (const Size &size : results) {
    std::optional<int64_t> max = node.sizes.getMax(size);
    bool isBit = max && *max <= 1 && node.sizes.isNonNegative(size);
    if (!size.getConstant() && !isBit && !requireFit(node, element, size, size))
      return std::nullopt;
  }
  return createElements(element, results, rank);
}

Value onnx::createEmpty(NodeImporter &node, ArrayRef<Size> shape,
                        Type element) {
  return tensor::EmptyOp::create(node, node.getMixed(shape),
                                 getStorageType(element));
}

Value onnx::createScalar(ImplicitLocOpBuilder &b, Type type, double value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  return arith::ConstantOp::create(
      b, b.getIntegerAttr(type, static_cast<int64_t>(value)));
}

Value onnx::createFilled(NodeImporter &node, ArrayRef<Size> shape,
                         Value scalar) {
  Value empty = createEmpty(node, shape, scalar.getType());
  return linalg::FillOp::create(node, scalar, empty).getResult(0);
}

Value onnx::createFilled(NodeImporter &node, ArrayRef<Size> shape, Type element,
                         double value) {
  return createFilled(node, shape, createScalar(node, element, value));
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

Value onnx::extendCode(OpBuilder &builder, Location loc, Value code,
                       Type type) {
  Type i32 = builder.getI32Type();
  if (type.isInteger(32))
    return code;
  if (cast<IntegerType>(type).isUnsigned())
    return arith::ExtUIOp::create(builder, loc, i32, code);
  return arith::ExtSIOp::create(builder, loc, i32, code);
}

Value onnx::convertScalar(ImplicitLocOpBuilder &b, Value value, Type type) {
  Type from = value.getType();
  if (from == type)
    return value;
  auto isFloat = [](Type t) { return isa<FloatType>(t); };
  unsigned fromWidth = from.isIndex() ? 64 : from.getIntOrFloatBitWidth();
  unsigned toWidth = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  if (isFloat(from) && isFloat(type)) {
    if (toWidth > fromWidth)
      return arith::ExtFOp::create(b, type, value);
    // f16 and bf16.
    if (toWidth == fromWidth)
      value = arith::ExtFOp::create(b, b.getF32Type(), value);
    return arith::TruncFOp::create(b, type, value);
  }
  if (type.isInteger(1)) {
    Value zero = createScalar(b, from, 0);
    if (isFloat(from))
      return arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, value, zero);
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, zero);
  }
  if (isFloat(from)) {
    if (fromWidth < 32)
      value = arith::ExtFOp::create(b, b.getF32Type(), value);
    return arith::FPToSIOp::create(b, type, value);
  }
  bool isBool = from.isInteger(1);
  if (isFloat(type)) {
    Type wide = getWideType(type);
    Value number = isBool ? Value(arith::UIToFPOp::create(b, wide, value))
                          : Value(arith::SIToFPOp::create(b, wide, value));
    return convertScalar(b, number, type);
  }
  if (from.isIndex() || type.isIndex())
    return arith::IndexCastOp::create(b, type, value);
  if (toWidth < fromWidth)
    return arith::TruncIOp::create(b, type, value);
  return isBool ? Value(arith::ExtUIOp::create(b, type, value))
                : Value(arith::ExtSIOp::create(b, type, value));
}

//===----------------------------------------------------------------------===//
// Requirements on sizes
//===----------------------------------------------------------------------===//

/// Asserts what is not known of two sizes, unless that has been done.
static void assertSizes(NodeImporter &node, Importer::SizeCheck check,
                        const Size &left, const Size &right) {
  if (!node.graph.checkedSizes.insert({check, left, right}).second)
    return;
  Value a = node.materialize(left), b = node.materialize(right);
  auto compare = [&](arith::CmpIPredicate predicate, Value other) -> Value {
    return arith::CmpIOp::create(node, predicate, a, other);
  };
  if (check == Importer::SizeCheck::Broadcast) {
    Value isOne = compare(arith::CmpIPredicate::eq, node.materialize(1));
    a = arith::SelectOp::create(node, isOne, b, a);
  }
  Value holds =
      compare(check == Importer::SizeCheck::AtMost ? arith::CmpIPredicate::sle
                                                   : arith::CmpIPredicate::eq,
              b);
  cf::AssertOp::create(node, holds, node.describe("sizes do not agree"));
}

bool onnx::requireEqual(NodeImporter &node, const Size &left,
                        const Size &right) {
  if (left == right)
    return true;
  if (!left.isValid() || !right.isValid() || !mayBeEqual(node, left, right))
    return false;
  assertSizes(node, Importer::SizeCheck::Equal, left, right);
  return true;
}

bool onnx::requireAtMost(NodeImporter &node, const Size &left,
                         const Size &right) {
  if (node.sizes.isAtMost(left, right))
    return true;
  if (!left.isValid() || !right.isValid() ||
      node.sizes.isAtMost(right + 1, left))
    return false;
  assertSizes(node, Importer::SizeCheck::AtMost, left, right);
  return true;
}

bool onnx::requireBroadcast(NodeImporter &node, const Size &size,
                            const Size &to) {
  if (size.isConstant(1))
    return true;
  if (size == to || size.getConstant() || !mayBeEqual(node, size, 1))
    return requireEqual(node, size, to);
  if (!size.isValid() || !to.isValid())
    return false;
  assertSizes(node, Importer::SizeCheck::Broadcast, size, to);
  return true;
}

bool onnx::isAtMostOne(NodeImporter &node, const Size &size) {
  std::optional<int64_t> max = node.sizes.getMax(size);
  return !size.getConstant() && max && *max <= 1;
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
  // The last of these is the size of the result: a constant makes more of the
  // program static.
  auto getOrder = [&](const Size &size) {
    return size.isConstant(1)        ? 0
           : isAtMostOne(node, size) ? 1
           : !size.getConstant()     ? 2
                                     : 3;
  };
  auto visit = [&](auto &&visitDim) {
    for (Tensor *operand : operands) {
      size_t first = rank - operand->shape.size();
      for (auto [number, size] : llvm::enumerate(operand->shape))
        visitDim(size, first + number);
    }
  };
  visit([&](const Size &size, size_t dim) {
    if (getOrder(size) > getOrder(shape[dim]))
      shape[dim] = size;
  });
  std::optional<size_t> wrong;
  visit([&](const Size &size, size_t dim) {
    bool fits =
        isAtMostOne(node, size)
            ? requireBroadcast(node, size, shape[dim])
            : size.isConstant(1) || requireEqual(node, size, shape[dim]);
    if (!fits && !wrong)
      wrong = dim;
  });
  if (wrong)
    return node.emitError() << "the shapes of the inputs differ in dimension "
                            << *wrong << " of the result";
  return shape;
}

Tensor onnx::createGeneric(NodeImporter &node, ValueRange inputs, Value init,
                           ArrayRef<AffineMap> maps,
                           ArrayRef<utils::IteratorType> loops,
                           ArrayRef<Size> shape, Body body) {
  Type element = getElementTypeOrSelf(init.getType());
  Value result =
      posenc::createGeneric(node, inputs, init, maps, loops,
                            [&](ImplicitLocOpBuilder &b, ValueRange args) {
                              Scalars s(b, element);
                              return body(s, args);
                            });
  return createTensor(node, result, shape);
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
  return tensor::CollapseShapeOp::create(node, value, groups);
}

/// Repeats elements along the dimensions whose size is 1 at run time: those
/// that are at most 1, and if `isExpanded`, any other that is not that of the
/// shape.
static Tensor stretch(NodeImporter &node, Tensor &tensor, ArrayRef<Size> shape,
                      bool isExpanded) {
  int64_t first = shape.size() - tensor.getRank();
  Value source = node.getValue(tensor);
  SmallVector<Value> ends;
  for (const Size &size : tensor.shape)
    ends.push_back(node.materialize(size - 1));
  return mapElementsTo(
      node, {}, shape, tensor.element, [&](Scalars &s, ValueRange) -> Value {
        SmallVector<Value> indices;
        for (auto [dim, size] : llvm::enumerate(tensor.shape)) {
          Value index = linalg::IndexOp::create(s, first + dim);
          if (size.isConstant(1) || isAtMostOne(node, size))
            index = arith::ConstantIndexOp::create(s, 0);
          else if (isExpanded && size != shape[first + dim])
            index = s.min(index, ends[dim]);
          indices.push_back(index);
        }
        return tensor::ExtractOp::create(s, source, indices);
      });
}

FailureOr<Tensor> onnx::expand(NodeImporter &node, Tensor &tensor,
                               ArrayRef<Size> shape) {
  int64_t first = shape.size() - tensor.getRank();
  bool isStatic = true;
  for (auto [dim, size] : llvm::enumerate(tensor.shape)) {
    const Size &to = shape[first + dim];
    if (!requireBroadcast(node, size, to))
      return node.emitError() << "dimension " << dim
                              << " of the input can be neither expanded nor "
                                 "kept";
    isStatic &= size == to || size.getConstant();
  }
  return isStatic ? broadcast(node, tensor, shape)
                  : stretch(node, tensor, shape, /*isExpanded=*/true);
}

Tensor onnx::mapElementsTo(NodeImporter &node, ArrayRef<Tensor *> operands,
                           ArrayRef<Size> shape, Type element, Body body) {
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
      Value index = node.materialize(operand->elements->front());
      scalars.back() = convertScalar(node, index, operand->element);
      continue;
    }
    SmallVector<bool> kept;
    SmallVector<AffineExpr> exprs;
    int64_t first = rank - operand->getRank();
    Tensor stretched;
    if (llvm::any_of(llvm::enumerate(operand->shape), [&](auto dim) {
          return isAtMostOne(node, dim.value()) &&
                 dim.value() != shape[first + dim.index()];
        })) {
      stretched = stretch(node, *operand, shape, /*isExpanded=*/false);
      operand = &stretched;
      first = 0;
    }
    for (auto [dim, size] : llvm::enumerate(operand->shape)) {
      kept.push_back(!size.isConstant(1) || shape[first + dim].isConstant(1));
      if (kept.back())
        exprs.push_back(node.getAffineDimExpr(first + dim));
    }
    numbers.back() = inputs.size();
    inputs.push_back(dropDims(node, node.getValue(*operand), kept));
    maps.push_back(AffineMap::get(rank, 0, exprs, node.getContext()));
  }
  maps.push_back(node.getMultiDimIdentityMap(rank));
  Value init = createEmpty(node, shape, element);
  auto create = [&](Scalars &s, ValueRange args) {
    SmallVector<Value> values;
    for (auto [number, scalar, constant] :
         llvm::zip_equal(numbers, scalars, constants)) {
      if (number)
        values.push_back(args[*number]);
      else if (constant)
        values.push_back(arith::ConstantOp::create(s, constant));
      else
        values.push_back(scalar);
    }
    Scalars wide(s, getWideType(element));
    return s.convert(body(wide, values));
  };
  return createGeneric(node, inputs, init, maps, /*loops=*/{}, shape, create);
}

FailureOr<Tensor> onnx::mapElements(NodeImporter &node,
                                    ArrayRef<Tensor *> operands, Type element,
                                    Body body) {
  FailureOr<SmallVector<Size>> shape = broadcastShapes(node, operands);
  if (failed(shape))
    return failure();
  return mapElementsTo(node, operands, *shape, element, body);
}

FailureOr<Tensor> onnx::mapToFirst(NodeImporter &node,
                                   ArrayRef<Tensor *> operands, Body body) {
  const Tensor &first = *operands.front();
  FailureOr<SmallVector<Size>> shape = broadcastShapes(node, operands);
  if (failed(shape))
    return failure();
  bool isLarger = shape->size() != first.shape.size();
  for (size_t dim = 0; !isLarger && dim < shape->size(); ++dim)
    isLarger = first.shape[dim].isConstant(1) && !(*shape)[dim].isConstant(1);
  if (isLarger)
    return node.emitError() << "an input does not broadcast to the shape of "
                               "the first one";
  return mapElementsTo(node, operands, *shape, first.element, body);
}

Tensor onnx::broadcast(NodeImporter &node, Tensor &tensor,
                       ArrayRef<Size> shape) {
  Tensor result =
      mapElementsTo(node, &tensor, shape, tensor.element,
                    [](Scalars &, ValueRange args) { return args[0]; });
  result.range = tensor.range;
  return result;
}

/// Converts from or to codes. Those of 8 bits that do not hold a number keep
/// its lowest bits.
static Tensor convertCodes(NodeImporter &node, Tensor &tensor, Type element) {
  Type from = tensor.element;
  Tensor result =
      mapElementsTo(node, &tensor, tensor.shape, getStorageType(element),
                    [&](Scalars &s, ValueRange args) {
                      Value x = isCode(from)
                                    ? extendCode(s, s.getLoc(), args[0], from)
                                    : args[0];
                      // A float above 127 does not fit in i8.
                      if (isCode(element) && isa<FloatType>(x.getType()))
                        x = s.convert(x, s.getI32Type());
                      return x;
                    });
  result.element = element;
  return result;
}

Tensor onnx::convertTensor(NodeImporter &node, Tensor &tensor, Type element) {
  if (tensor.element == element)
    return tensor;
  bool isInteger = isa<IntegerType>(element);
  if (isCode(element) || isCode(tensor.element))
    return convertCodes(node, tensor, element);
  if (tensor.elements && isInteger)
    if (std::optional<Tensor> converted =
            createResults(node, element, *tensor.elements, tensor.getRank()))
      return *converted;
  Tensor result =
      mapElementsTo(node, &tensor, tensor.shape, element,
                    [](Scalars &, ValueRange args) { return args[0]; });
  if (isInteger && tensor.range &&
      requireFit(node, element, tensor.range->first, tensor.range->second))
    result.range = tensor.range;
  return result;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Tensor onnx::reduce(NodeImporter &node, Tensor &tensor, ArrayRef<int64_t> axes,
                    Combiner combiner, Type element, Body transform) {
  ReductionLoops loops(node.getContext(), tensor.shape, axes);
  Value start = arith::ConstantOp::create(node, getNeutral(combiner, element));
  Value init = createFilled(node, loops.shape, start);
  auto body = [&](Scalars &s, ValueRange args) {
    Value x = s.convert(args[0]);
    if (transform)
      x = transform(s, x);
    return combine(s, combiner, args[1], x);
  };
  return createGeneric(node, node.getValue(tensor), init,
                       {loops.all, loops.kept}, loops.kinds, loops.shape, body);
}

Value onnx::createCount(NodeImporter &node, const Tensor &tensor,
                        ArrayRef<int64_t> axes, Type element) {
  Size count(1);
  for (int64_t axis : axes)
    count = count * tensor.shape[axis];
  if (std::optional<int64_t> constant = count.getConstant())
    return createScalar(node, element, *constant);
  Value index = count.isValid() ? node.materialize(count)
                                : createScalar(node, node.getIndexType(), 1);
  Value integer = convertScalar(node, index, node.getI64Type());
  return convertScalar(node, integer, element);
}
