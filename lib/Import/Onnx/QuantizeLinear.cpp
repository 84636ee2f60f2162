//===- QuantizeLinear.cpp - quantization of tensors -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, MatMulInteger and
// QLinearMatMul. Codes are computed in f32: x / scale is rounded to an even
// integer, to which the zero point is added; the sum is saturated.
//
//===----------------------------------------------------------------------===//

#include "BlockCodes.h"
#include "Products.h"
#include "Scalars.h"
#include "posenc/IR/Weights.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

/// Maximum number of matrices of a tensor whose codes products read.
constexpr int64_t kMaxCodeMatrices = 64;

/// Whether the type is that of codes, signed ones of 8 bits included.
static bool isQuantized(Type type) { return isCode(type) || type.isInteger(8); }

/// Extends a code to 32 bits.
static Value extend(Scalars &s, Value code, Type type) {
  return extendCode(s, s.getLoc(), code, type);
}

/// Returns a code as an f32.
static Value toFloat(Scalars &s, Value code, Type type) {
  return arith::SIToFPOp::create(s, s.getF32Type(), extend(s, code, type));
}

/// Returns round(x) + zero, saturated to the codes of the type. NaN becomes the
/// lowest code.
static Value saturate(Scalars &s, Value x, Value zero, Type type) {
  auto integer = cast<IntegerType>(type);
  unsigned width = integer.getWidth();
  double lowest = integer.isUnsigned() ? 0 : -std::ldexp(1, width - 1);
  double greatest = std::ldexp(1, integer.isUnsigned() ? width : width - 1) - 1;
  Value rounded = s.add(math::RoundEvenOp::create(s, x), zero);
  Value low = arith::MaxNumFOp::create(s, rounded, s.get(lowest));
  Value code = arith::MinNumFOp::create(s, low, s.get(greatest));
  return arith::FPToSIOp::create(s, s.getI32Type(), code);
}

namespace {
/// The scales and zero points of a tensor, and the shape that it gets for them:
/// an axis of blocks is two dimensions.
struct Quantization {
  Tensor scale, zero;
  bool hasZero = false;
  int64_t axis = 0;
  /// 0 for none.
  int64_t blockSize = 0;
  SmallVector<Size> shape;
};
} // namespace

/// Whether a scale or zero point is that of all elements.
static bool isForAll(const Tensor &given) {
  return given.getRank() == 0 ||
         (given.getRank() == 1 && given.shape[0].isConstant(1));
}

/// Makes scales or zero points broadcast to the shape of the quantization.
static FailureOr<Tensor> spread(NodeImporter &node, Tensor &given,
                                const Tensor &data, const Quantization &q) {
  int64_t rank = data.getRank();
  if (q.blockSize) {
    SmallVector<Size> shape(given.shape);
    shape.insert(shape.begin() + q.axis + 1, Size(1));
    return reshape(node, given, shape);
  }
  if (isForAll(given))
    return reshape(node, given, {});
  FailureOr<int64_t> axis = node.getAxis(q.axis, rank);
  if (failed(axis))
    return failure();
  if (given.getRank() != 1 ||
      !requireEqual(node, given.shape[0], data.shape[*axis]))
    return node.emitError() << "expected a scale and a zero point for all "
                               "elements or for each index of the axis";
  SmallVector<Size> shape(rank, Size(1));
  shape[*axis] = given.shape[0];
  return reshape(node, given, shape);
}

/// Reads the scale and the zero point, inputs 1 and 2.
static FailureOr<Quantization> getQuantization(NodeImporter &node,
                                               const Tensor &data) {
  Quantization q;
  q.shape = data.shape;
  q.axis = node.getInt("axis", 1);
  q.blockSize = node.getInt("block_size", 0);
  // It concerns floats of 8 bits.
  node.ignore("saturate");
  Tensor &scale = node.getInput(1);
  if (!scale.isFloat() || scale.element.isF64())
    return node.emitError()
           << "expected scales of f32, f16 or bf16, found " << scale.element;
  if (q.blockSize) {
    int64_t rank = data.getRank();
    FailureOr<int64_t> axis = node.getAxis(q.axis, rank);
    if (failed(axis))
      return failure();
    q.axis = *axis;
    std::optional<int64_t> length = data.shape[q.axis].getConstant();
    if (q.blockSize < 1 || !length || *length % q.blockSize)
      return node.emitError() << "the axis must have a constant number of "
                                 "whole blocks of "
                              << q.blockSize;
    SmallVector<Size> blocks(data.shape);
    blocks[q.axis] = *length / q.blockSize;
    if (scale.shape.size() != blocks.size() ||
        !llvm::all_of(llvm::zip_equal(scale.shape, blocks), [&](auto sizes) {
          return requireEqual(node, std::get<0>(sizes), std::get<1>(sizes));
        }))
      return node.emitError() << "expected a scale for each block";
    q.shape = blocks;
    q.shape.insert(q.shape.begin() + q.axis + 1, Size(q.blockSize));
  }
  if (failed(assign(q.scale, spread(node, scale, data, q))))
    return failure();
  if (!node.hasInput(2))
    return q;
  Tensor &zero = node.getInput(2);
  q.hasZero = true;
  // ONNX Runtime's quantizer writes one scale in a tensor of rank 1, and its
  // zero point in one of rank 0.
  bool isOne = !q.blockSize && isForAll(scale) && isForAll(zero);
  if (zero.shape != scale.shape && !isOne)
    return node.emitError() << "scale and zero point differ in shape";
  if (failed(assign(q.zero, spread(node, zero, data, q))))
    return failure();
  q.zero.element = zero.element;
  return q;
}

//===----------------------------------------------------------------------===//
// DequantizeLinear
//===----------------------------------------------------------------------===//

/// Returns part `number` of `count` equal ones of the elements of a constant.
static DenseElementsAttr getPart(DenseElementsAttr attr, int64_t number,
                                 int64_t count, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, attr.getElementType());
  if (attr.isSplat())
    return attr.resizeSplat(type);
  ArrayRef<char> bytes = attr.getRawData();
  size_t size = bytes.size() / count;
  return DenseElementsAttr::getFromRawBuffer(type,
                                             bytes.slice(number * size, size));
}

/// Remembers how matrices were dequantized if products can read their codes:
/// they are constant, with blocks along the dimension that is summed.
static void keepCodes(NodeImporter &node, Tensor &result) {
  Tensor &data = node.getInput(0), &scale = node.getInput(1);
  bool hasZero = node.hasInput(2);
  unsigned width = data.element.getIntOrFloatBitWidth();
  int64_t rank = data.getRank();
  if (rank < 2 || !data.constant || data.constant.empty() || !scale.constant ||
      (hasZero && !node.getInput(2).constant) || width > 8)
    return;
  ArrayRef<int64_t> shape = data.constant.getType().getShape();
  int64_t count = ShapedType::getNumElements(shape.drop_back(2));
  int64_t axis = node.getInt("axis", 1),
          blockSize = node.getInt("block_size", 0);
  axis += axis < 0 ? rank : 0;
  bool isForAll = scale.getRank() == 0 || scale.constant.getNumElements() == 1;
  bool isOfMatrix = !isForAll && !blockSize && axis < rank - 2;
  if (count > kMaxCodeMatrices || (blockSize && axis < rank - 2))
    return;
  // The number of matrices for each index of an axis before them.
  int64_t inner =
      isOfMatrix
          ? ShapedType::getNumElements(shape.slice(axis + 1, rank - 3 - axis))
          : 1;
  auto getScales = [&](DenseElementsAttr attr, int64_t number) {
    if (blockSize)
      return getPart(attr, number, count,
                     attr.getType().getShape().take_back(2));
    if (isOfMatrix)
      return getPart(attr, number / inner % shape[axis], shape[axis], {});
    return attr;
  };
  std::vector<CodesOrigin> matrices;
  for (int64_t number = 0; number < count; ++number)
    matrices.push_back(
        {getPart(data.constant, number, count, shape.take_back(2)),
         getScales(scale.constant, number),
         hasZero ? getScales(node.getInput(2).constant, number)
                 : DenseElementsAttr(),
         data.element, isForAll || isOfMatrix ? -1 : axis - (rank - 2),
         blockSize});
  result.codes =
      std::make_shared<std::vector<CodesOrigin>>(std::move(matrices));
}

static LogicalResult importDequantize(NodeImporter &node) {
  Tensor data = node.getInput(0);
  if (!isQuantized(data.element) && !data.element.isInteger(32))
    return node.emitError()
           << "elements of type " << data.element << " are not supported";
  FailureOr<Quantization> q = getQuantization(node, data);
  if (failed(q))
    return failure();
  Type element = q->scale.element;
  if (int64_t number = node.getInt("output_dtype", 0)) {
    element = getElementType(node.getContext(), number);
    if (!element || !isa<FloatType>(element))
      return node.emitError()
             << "'output_dtype' is " << describeDataType(number)
             << ", expected a float type";
  }
  bool isWide = data.element.isInteger(32);
  if (q->hasZero && q->zero.element != data.element)
    return node.emitError() << "the zero point has another type than the input";
  if (q->hasZero && isWide) {
    auto zero = dyn_cast_or_null<IntegerAttr>(getSplat(q->zero));
    if (!zero || !zero.getValue().isZero())
      return node.emitError() << "integers of 32 bits need a zero point of 0";
    q->hasZero = false;
  }
  Type code = data.element;
  Tensor split;
  if (failed(assign(split, reshape(node, data, q->shape))))
    return failure();
  SmallVector<Tensor *> operands{&split, &q->scale};
  if (q->hasZero)
    operands.push_back(&q->zero);
  Tensor result = mapElementsTo(
      node, operands, q->shape, element, [&](Scalars &s, ValueRange args) {
        Scalars f(s, s.getF32Type());
        Value x = toFloat(f, args[0], code);
        if (q->hasZero)
          x = f.sub(x, toFloat(f, args[2], code));
        return s.convert(f.mul(x, f.convert(args[1])));
      });
  if (failed(assign(result, reshape(node, result, data.shape))))
    return failure();
  keepCodes(node, result);
  return node.setResult(std::move(result));
}

//===----------------------------------------------------------------------===//
// QuantizeLinear and DynamicQuantizeLinear
//===----------------------------------------------------------------------===//

static LogicalResult importQuantize(NodeImporter &node) {
  Tensor &data = node.getInput(0);
  if ((!data.isFloat() || data.element.isF64()) && !data.element.isInteger(32))
    return node.emitError()
           << "elements of type " << data.element << " are not supported";
  FailureOr<Quantization> q = getQuantization(node, data);
  if (failed(q))
    return failure();
  int64_t number = node.getInt("output_dtype", 0);
  int64_t precision = node.getInt("precision", 0);
  if (precision && precision != static_cast<int64_t>(DataType::Float))
    return node.emitError() << "'precision' is " << describeDataType(precision)
                            << ", expected float";
  Type type = number ? getElementType(node.getContext(), number)
              : q->hasZero
                  ? q->zero.element
                  : getElementType(node.getContext(),
                                   static_cast<int64_t>(DataType::Uint8));
  if (!type || !isQuantized(type))
    return node.emitError() << "codes of type " << describeDataType(number)
                            << " are not supported";
  if (q->hasZero && q->zero.element != type)
    return node.emitError() << "the zero point has type " << q->zero.element
                            << ", but codes have " << type;
  Tensor split;
  if (failed(assign(split, reshape(node, data, q->shape))))
    return failure();
  SmallVector<Tensor *> operands{&split, &q->scale};
  if (q->hasZero)
    operands.push_back(&q->zero);
  Tensor result =
      mapElementsTo(node, operands, q->shape, getStorageType(type),
                    [&](Scalars &s, ValueRange args) {
                      Scalars f(s, s.getF32Type());
                      Value x = f.div(f.convert(args[0]), f.convert(args[1]));
                      Value zero =
                          q->hasZero ? toFloat(f, args[2], type) : f.get(0);
                      return s.convert(saturate(f, x, zero, type));
                    });
  if (failed(assign(result, reshape(node, result, data.shape))))
    return failure();
  result.element = type;
  return node.setResult(std::move(result));
}

/// Codes of 8 bits, whose scale and zero point follow from the range of the
/// input and 0.
static LogicalResult importDynamicQuantize(NodeImporter &node) {
  Tensor &data = node.getInput(0);
  Type f32 = node.getF32Type(), i8 = node.getI8Type();
  Type byte =
      getElementType(node.getContext(), static_cast<int64_t>(DataType::Uint8));
  if (!data.element.isF32())
    return node.emitError()
           << "expected floats of 32 bits, found " << data.element;
  SmallVector<int64_t> axes =
      llvm::to_vector(llvm::seq<int64_t>(0, data.getRank()));
  Tensor high = reduce(node, data, axes, Combiner::Max, f32),
         low = reduce(node, data, axes, Combiner::Min, f32);
  Tensor *range[] = {&low, &high};
  Tensor scale =
      mapElementsTo(node, range, {}, f32, [&](Scalars &s, ValueRange args) {
        Value low = s.min(args[0], s.get(0)), high = s.max(args[1], s.get(0));
        Value width = s.sub(high, low);
        // Any scale does if all elements are 0.
        return s.select(s.equal(width, s.get(0)), s.get(1),
                        s.div(width, s.get(255)));
      });
  Tensor *bounds[] = {&low, &scale};
  Tensor zero =
      mapElementsTo(node, bounds, {}, i8, [&](Scalars &s, ValueRange args) {
        Scalars f(s, f32);
        Value x = f.div(f.neg(f.min(args[0], f.get(0))), args[1]);
        return s.convert(saturate(f, x, f.get(0), byte));
      });
  Tensor *operands[] = {&data, &scale, &zero};
  Tensor result = mapElementsTo(
      node, operands, data.shape, i8, [&](Scalars &s, ValueRange args) {
        Scalars f(s, f32);
        Value x = f.div(args[0], args[1]);
        return s.convert(saturate(f, x, toFloat(f, args[2], byte), byte));
      });
  result.element = zero.element = byte;
  node.setOutput(1, std::move(scale));
  node.setOutput(2, std::move(zero));
  return node.setResult(std::move(result));
}

//===----------------------------------------------------------------------===//
// MatMulInteger and QLinearMatMul
//===----------------------------------------------------------------------===//

/// Requires that each size of a tensor is 1 or that of a shape, and returns
/// false if it never is.
static bool requireBroadcast(NodeImporter &node, const Tensor &tensor,
                             ArrayRef<Size> shape) {
  if (tensor.shape.size() > shape.size())
    return false;
  for (auto [size, to] :
       llvm::zip_equal(tensor.shape, shape.take_back(tensor.shape.size())))
    if (!size.isConstant(1) && !requireEqual(node, size, to))
      return false;
  return true;
}

/// Returns the zero points of codes in a shape that broadcasts to them: one, or
/// one for each row of the left matrix or each column of the right one.
static FailureOr<Tensor> getZeroPoints(NodeImporter &node, unsigned input,
                                       const Tensor &codes, bool isLeft) {
  Tensor zero = node.getInput(input);
  if (zero.element != codes.element)
    return node.emitError() << "the zero point has type " << zero.element
                            << ", but codes have " << codes.element;
  if (zero.getRank() == 1) {
    bool isOne = zero.shape[0].isConstant(1);
    SmallVector<Size> column{zero.shape[0], Size(1)};
    if ((isOne || isLeft) &&
        failed(
            assign(zero, reshape(node, zero,
                                 isOne ? ArrayRef<Size>() : ArrayRef(column)))))
      return failure();
  }
  // Products sum along the last dimension on the left, and the one before on
  // the right.
  SmallVector<Size> shape(codes.shape);
  if (size_t rank = shape.size())
    shape[isLeft || rank == 1 ? rank - 1 : rank - 2] = Size(1);
  if (!requireBroadcast(node, zero, shape))
    return node.emitError() << "expected one zero point, or one for each "
                            << (isLeft ? "row" : "column");
  return zero;
}

/// Returns the codes of an input minus the zero point of another one, as
/// integers of 32 bits. There may be a zero point for each row, or column.
static FailureOr<Tensor> center(NodeImporter &node, unsigned input,
                                unsigned zeroInput, bool isLeft) {
  Tensor &data = node.getInput(input);
  Type type = data.element, i32 = node.getI32Type();
  if (!isQuantized(type) || type.getIntOrFloatBitWidth() != 8)
    return node.emitError() << "expected codes of 8 bits, found " << type;
  SmallVector<Tensor *> operands{&data};
  Tensor zero;
  if (node.hasInput(zeroInput)) {
    if (failed(assign(zero, getZeroPoints(node, zeroInput, data, isLeft))))
      return failure();
    operands.push_back(&zero);
  }
  return mapElementsTo(node, operands, data.shape, i32,
                       [&](Scalars &s, ValueRange args) {
                         Value x = extend(s, args[0], type);
                         if (args.size() > 1)
                           x = s.sub(x, extend(s, args[1], type));
                         return x;
                       });
}

/// Returns a constant matrix of an input, whose unsigned codes of 8 bits a
/// product reads, in a few blocks of equal size; nullopt if it is no constant,
/// or has more dimensions.
static std::optional<BlockCodes> getCodeMatrix(const Tensor &data) {
  constexpr int64_t maxBlock = 1024, quad = 4;
  ElementsAttr codes = getStoredElements(data);
  if (!codes || data.getRank() != 2 || !isQuantized(data.element) ||
      data.element.getIntOrFloatBitWidth() != 8 || codes.getNumElements() == 0)
    return std::nullopt;
  BlockCodes matrix;
  matrix.depth = codes.getShapedType().getDimSize(0);
  matrix.columns = codes.getShapedType().getDimSize(1);
  int64_t blocks = llvm::divideCeil(matrix.depth, maxBlock);
  matrix.blockSize =
      llvm::alignTo(llvm::divideCeil(matrix.depth, blocks), quad);
  matrix.bits = 8;
  uint8_t flip = data.element.isUnsignedInteger() ? 0 : 0x80;
  matrix.readColumn = [codes, flip, depth = matrix.depth,
                       columns = matrix.columns](int64_t column,
                                                 MutableArrayRef<uint8_t> to) {
    ArrayRef<char> bytes = *getStoredBytes(codes);
    for (int64_t k = 0; k < depth; ++k)
      to[k] = bytes[codes.isSplat() ? 0 : k * columns + column] ^ flip;
  };
  matrix.codesKey = getElementsKey(codes);
  return matrix;
}

/// Multiplies integers by a constant matrix whose zero points are constants:
///
///   sum (a - za) (b - zb)
///     = sum a' b' - zb' sum a' - za' sum b' + depth za' zb'
///
/// where a' is signed and b' unsigned, and integers of the other signedness
/// move by 128 with their zero point. Returns nullopt if it is not constant.
static FailureOr<std::optional<Tensor>>
multiplyConstant(NodeImporter &node, unsigned left, unsigned leftZero,
                 unsigned right, unsigned rightZero) {
  Tensor &a = node.getInput(left), &b = node.getInput(right);
  std::optional<BlockCodes> matrix = getCodeMatrix(b);
  Type i32 = node.getI32Type();
  if (!matrix || !isQuantized(a.element) ||
      a.element.getIntOrFloatBitWidth() != 8 || a.shape.empty())
    return std::optional<Tensor>();
  ElementsAttr zeros;
  if (node.hasInput(rightZero)) {
    Tensor &given = node.getInput(rightZero);
    zeros = getStoredElements(given);
    if (!zeros || given.element != b.element ||
        (zeros.getNumElements() != 1 &&
         (given.getRank() != 1 || zeros.getNumElements() != matrix->columns)))
      return std::optional<Tensor>();
  }
  int32_t offset = b.element.isUnsignedInteger() ? 0 : 128;
  SmallVector<int32_t> columnZeros(matrix->columns, offset), sums;
  std::vector<uint8_t> column(matrix->getNumBlocks() * matrix->blockSize);
  for (auto [n, zero] : llvm::enumerate(columnZeros)) {
    if (zeros) {
      uint8_t code = (*getStoredBytes(
          zeros))[zeros.isSplat() || zeros.getNumElements() == 1 ? 0 : n];
      zero = code ^ (offset ? 0x80 : 0);
    }
    matrix->readColumn(n, column);
    // The sum of (code - zero point) is the factor of the zero points of a.
    uint32_t sum = 0;
    for (uint8_t code : column)
      sum += code;
    sums.push_back(sum - static_cast<uint32_t>(matrix->depth) * zero);
  }
  auto product = multiplyIntegers(node, a, a.element, *matrix);
  if (failed(product))
    return failure();
  auto createColumns = [&](ArrayRef<int32_t> values) {
    return createConstant(DenseElementsAttr::get(
        RankedTensorType::get({matrix->columns}, i32), values));
  };
  Tensor zeroPoints = createColumns(columnZeros),
         columnSums = createColumns(sums), zero;
  SmallVector<Tensor *> operands{&product->sums, &product->rowSums, &zeroPoints,
                                 &columnSums};
  bool isUnsigned = a.element.isUnsignedInteger();
  if (node.hasInput(leftZero)) {
    if (failed(assign(zero, getZeroPoints(node, leftZero, a, /*isLeft=*/true))))
      return failure();
    operands.push_back(&zero);
  }
  Tensor result = mapElementsTo(
      node, operands, product->sums.shape, i32,
      [&](Scalars &s, ValueRange args) {
        Value sum = s.sub(args[0], s.mul(args[1], args[2]));
        Value x = args.size() > 4 ? extend(s, args[4], a.element) : s.get(0);
        if (isUnsigned)
          x = s.sub(x, s.get(128));
        return s.sub(sum, s.mul(x, args[3]));
      });
  return std::optional<Tensor>(std::move(result));
}

static FailureOr<Tensor> multiplyCentered(NodeImporter &node, unsigned left,
                                          unsigned leftZero, unsigned right,
                                          unsigned rightZero) {
  FailureOr<std::optional<Tensor>> product =
      multiplyConstant(node, left, leftZero, right, rightZero);
  if (failed(product))
    return failure();
  if (*product)
    return std::move(**product);
  FailureOr<Tensor> a = center(node, left, leftZero, /*isLeft=*/true),
                    b = center(node, right, rightZero, /*isLeft=*/false);
  if (failed(a) || failed(b))
    return failure();
  return multiply(node, *a, *b);
}

static LogicalResult importMatMulInteger(NodeImporter &node) {
  return node.setResult(multiplyCentered(node, 0, 2, 1, 3));
}

static LogicalResult importQLinearMatMul(NodeImporter &node) {
  FailureOr<Tensor> product = multiplyCentered(node, 0, 2, 3, 5);
  if (failed(product))
    return failure();
  Tensor scales[3];
  unsigned numbers[] = {1, 4, 6};
  for (auto [scale, number] : llvm::zip_equal(scales, numbers)) {
    scale = node.getInput(number);
    if (!scale.isFloat() || scale.element.isF64())
      return node.emitError()
             << "expected scales of f32, f16 or bf16, found " << scale.element;
    // A scale for each row of the left matrix.
    if (scale.getRank() == 1 && !scale.shape[0].isConstant(1) && number == 1 &&
        failed(assign(scale, reshape(node, scale, {scale.shape[0], Size(1)}))))
      return failure();
    if (scale.getRank() == 1 && scale.shape[0].isConstant(1) &&
        failed(assign(scale, reshape(node, scale, {}))))
      return failure();
  }
  Tensor zero = node.getInput(7);
  Type type = zero.element;
  if (!isQuantized(type) || type.getIntOrFloatBitWidth() != 8 ||
      scales[2].getRank() != 0)
    return node.emitError() << "expected one scale and zero point of 8 bits "
                               "for the result";
  if (zero.constant && zero.constant.getNumElements() == 1 &&
      failed(assign(zero, reshape(node, zero, {}))))
    return failure();
  Tensor *operands[] = {&*product, &scales[0], &scales[1], &scales[2], &zero};
  for (Tensor *operand : operands)
    if (!requireBroadcast(node, *operand, product->shape))
      return node.emitError() << "expected one scale, or one for each row or "
                                 "column of the result";
  Tensor result = mapElementsTo(
      node, operands, product->shape, node.getI8Type(),
      [&](Scalars &s, ValueRange args) {
        Scalars f(s, s.getF32Type());
        Value factor = f.div(f.mul(f.convert(args[1]), f.convert(args[2])),
                             f.convert(args[3]));
        Value x = f.mul(f.convert(args[0]), factor);
        return s.convert(saturate(f, x, toFloat(f, args[4], type), type));
      });
  result.element = type;
  return node.setResult(std::move(result));
}

void onnx::addQuantizeLinearOperators(OperatorTable &table) {
  table["DequantizeLinear"] = {2, 3, 1, importDequantize, CodeUse::Read};
  table["QuantizeLinear"] = {2, 3, 1, importQuantize, CodeUse::Read};
  table["DynamicQuantizeLinear"] = {1, 1, 3, importDynamicQuantize};
  table["MatMulInteger"] = {2, 4, 1, importMatMulInteger, CodeUse::Read};
  table["QLinearMatMul"] = {8, 8, 1, importQLinearMatMul, CodeUse::Read};
}
