//===- Quantized.cpp - operators on packed weights ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MatMulNBits and GatherBlockQuantized of com.microsoft.
//
//===----------------------------------------------------------------------===//

#include "BlockCodes.h"
#include "Scalars.h"
#include "posenc/IR/Weights.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

/// Whether codes of that many bits are supported, in blocks of that size.
static LogicalResult checkBlocks(NodeImporter &node, int64_t bits,
                                 int64_t blockSize) {
  if (bits != 2 && bits != 4 && bits != 8)
    return node.emitError() << "'bits' is " << bits << ", expected 2, 4 or 8";
  if (blockSize < 16 || blockSize > (1 << 20) ||
      !llvm::isPowerOf2_64(blockSize))
    return node.emitError() << "'block_size' is " << blockSize
                            << ", expected a power of two from 16";
  return success();
}

/// Returns the constant value of an input with that many elements.
static FailureOr<ElementsAttr> getConstant(NodeImporter &node, unsigned input,
                                           StringRef what, int64_t count) {
  ElementsAttr elements = getStoredElements(node.getInput(input));
  if (!elements)
    return node.emitError() << "the " << what << " must be constant";
  if (elements.getNumElements() != count)
    return node.emitError() << "expected " << count << " " << what << ", found "
                            << elements.getNumElements();
  return elements;
}

/// Unpacks codes. Their number of bits is known to the compiler, which then
/// needs no division: models have a billion codes.
template <unsigned bits>
static void unpackCodes(ArrayRef<char> bytes, MutableArrayRef<uint8_t> codes) {
  constexpr size_t parts = 8 / bits;
  auto read = [](char byte, size_t part) -> uint8_t {
    return (static_cast<uint8_t>(byte) >> (part * bits)) & ((1 << bits) - 1);
  };
  size_t whole = codes.size() / parts, rest = codes.size() % parts;
  for (size_t i = 0; i < whole; ++i)
    for (size_t part = 0; part < parts; ++part)
      codes[i * parts + part] = read(bytes[i], part);
  for (size_t part = 0; part < rest; ++part)
    codes[whole * parts + part] = read(bytes[whole], part);
}

/// Unpacks a row of codes, which begins with a byte of its own.
static void unpackRow(ElementsAttr attr, int64_t row, unsigned bits,
                      MutableArrayRef<uint8_t> codes) {
  ArrayRef<char> bytes = *getStoredBytes(attr);
  size_t stride = llvm::divideCeil(codes.size(), 8 / bits);
  std::vector<char> repeated;
  if (attr.isSplat()) {
    repeated.assign(stride, bytes.front());
    bytes = repeated;
  } else {
    bytes = bytes.slice(row * stride, stride);
  }
  if (bits == 2)
    unpackCodes<2>(bytes, codes);
  else if (bits == 4)
    unpackCodes<4>(bytes, codes);
  else
    unpackCodes<8>(bytes, codes);
}

/// Sets the codes of a matrix to elements of bytes, a row for each column.
static void setCodes(BlockCodes &matrix, ElementsAttr codes) {
  matrix.readColumn = [codes, bits = matrix.bits](int64_t column,
                                                  MutableArrayRef<uint8_t> to) {
    unpackRow(codes, column, bits, to);
  };
  matrix.codesKey = getElementsKey(codes);
}

/// Sets the zero points of a matrix to packed ones, likewise.
static void setZeroPoints(BlockCodes &matrix, ElementsAttr codes) {
  int64_t blocks = matrix.getNumBlocks();
  matrix.zeroPoints.resize(matrix.columns * blocks);
  for (int64_t column = 0; column < matrix.columns; ++column)
    unpackRow(
        codes, column, matrix.bits,
        MutableArrayRef(matrix.zeroPoints).slice(column * blocks, blocks));
  matrix.zeroPointsKey = getElementsKey(codes);
}

static LogicalResult importMatMulNBits(NodeImporter &node) {
  constexpr int64_t maxSize = int64_t(1) << 31;
  BlockCodes matrix;
  matrix.depth = node.getInt("K", 0);
  matrix.columns = node.getInt("N", 0);
  int64_t bits = node.getInt("bits", 4);
  matrix.blockSize = node.getInt("block_size", 0);
  if (failed(checkBlocks(node, bits, matrix.blockSize)))
    return failure();
  matrix.bits = bits;
  if (matrix.depth < 1 || matrix.columns < 1 || matrix.depth > maxSize ||
      matrix.columns > maxSize)
    return node.emitError() << "'K' and 'N' must be sizes of a matrix";
  // Level 4 permits rows in integers of 8 bits; the others are computed in f32.
  int64_t level = node.getInt("accuracy_level", 0);
  if (level < 0 || level > 4)
    return node.emitError()
           << "'accuracy_level' is " << level << ", expected 0 to 4";
  if (node.getInt("weight_prepacked", 0))
    return node.emitError() << "attribute 'weight_prepacked' is not supported";
  if (node.hasInput(4))
    return node.emitError() << "input g_idx is not supported";
  Tensor &left = node.getInput(0), &scales = node.getInput(2);
  Type element = left.element;
  if (!left.isFloat() || element.isF64())
    return node.emitError()
           << "expected floats of at most 32 bits, found " << element;
  Type byte =
      getElementType(node.getContext(), static_cast<int64_t>(DataType::Uint8));
  int64_t blocks = matrix.getNumBlocks();
  int64_t numCodes = matrix.columns * blocks * matrix.blockSize;
  FailureOr<ElementsAttr> codes =
      getConstant(node, 1, "bytes of weights", numCodes * bits / 8);
  if (failed(codes))
    return failure();
  if (node.getInput(1).element != byte)
    return node.emitError() << "expected weights of type uint8, found "
                            << node.getInput(1).element;
  FailureOr<ElementsAttr> scaleAttr =
      getConstant(node, 2, "scales", matrix.columns * blocks);
  if (failed(scaleAttr))
    return failure();
  if (scales.element != element)
    return node.emitError() << "the scales have another type than the input";
  matrix.scales = *scaleAttr;
  matrix.zeroPoint = 1 << (bits - 1);
  setCodes(matrix, *codes);
  if (node.hasInput(3)) {
    Type type = node.getInput(3).element;
    if (type != byte && type != element)
      return node.emitError() << "zero points have type " << type
                              << ", expected uint8 or that of the input";
    int64_t count = type == byte ? llvm::divideCeil(blocks, 8 / bits) : blocks;
    FailureOr<ElementsAttr> attr =
        getConstant(node, 3, "zero points", matrix.columns * count);
    if (failed(attr))
      return failure();
    if (type == byte)
      setZeroPoints(matrix, *attr);
    else
      matrix.floatZeroPoints = *attr;
  }
  bool isInteger = level == 4 && matrix.blockSize <= kMaxIntegerBlock;
  FailureOr<Tensor> product = multiplyCodes(
      node, left, matrix, isInteger ? BlockSum::Integers : BlockSum::Floats);
  if (failed(product) || !node.hasInput(5))
    return node.setResult(
        failed(product) ? product : convertTensor(node, *product, element));
  Tensor &bias = node.getInput(5);
  if (bias.element != element || bias.getRank() != 1 ||
      !requireEqual(node, bias.shape[0], matrix.columns))
    return node.emitError() << "expected a bias of " << matrix.columns
                            << " elements of the input's type";
  Tensor *operands[] = {&*product, &bias};
  return node.setResult(
      mapElements(node, operands, element, [](Scalars &s, ValueRange args) {
        return s.add(s.convert(args[0]), s.convert(args[1]));
      }));
}

/// Returns the first `count` codes of each row at the indices as floats: (rows,
/// count). A byte has 8 / bits unsigned codes, or one of a type with 4 bits.
static FailureOr<Tensor> gatherCodes(NodeImporter &node, Tensor &data,
                                     Tensor &indices, int64_t count,
                                     unsigned bits) {
  bool isPacked = data.element.isUnsignedInteger(8);
  int64_t parts = isPacked ? 8 / bits : 1;
  Size rows = getProduct(indices.shape), bytes = data.shape[1];
  FailureOr<Tensor> codes =
      gather(node, data, indices, 0, NegativeIndex::Wraps);
  if (failed(codes) ||
      failed(assign(*codes, reshape(node, *codes, {rows, bytes, Size(1)}))))
    return failure();
  Tensor unpacked = mapElementsTo(
      node, &*codes, {rows, bytes, Size(parts)}, node.getF32Type(),
      [&](Scalars &s, ValueRange args) -> Value {
        if (!isPacked)
          return s.convert(args[0]);
        Value part = s.convert(linalg::IndexOp::create(s, 2), s.getI32Type());
        Value width = createScalar(s, s.getI32Type(), bits);
        return unpackCode(s, args[0], bits, s.mul(part, width));
      });
  if (failed(assign(unpacked,
                    reshape(node, unpacked, {rows, bytes * Size(parts)}))))
    return failure();
  return slice(node, unpacked, {0, 0}, {rows, Size(count)});
}

/// Returns the matrix of a table in bytes whose codes a product reads, too, so
/// that they are stored once.
static std::optional<BlockCodes> getTiedMatrix(NodeImporter &node,
                                               int64_t depth, int64_t blockSize,
                                               unsigned bits) {
  Tensor &data = node.getInput(0);
  ElementsAttr codes = getStoredElements(data),
               scales = getStoredElements(node.getInput(2));
  if (!codes || !scales || !data.shape[0].getConstant() ||
      !node.graph.areCodesOfProduct(getElementsKey(codes)))
    return std::nullopt;
  BlockCodes matrix;
  matrix.depth = depth;
  matrix.columns = *data.shape[0].getConstant();
  matrix.blockSize = blockSize;
  matrix.bits = bits;
  matrix.scales = scales;
  matrix.zeroPoint = 1 << (bits - 1);
  setCodes(matrix, codes);
  if (node.hasInput(3)) {
    ElementsAttr zeroPoints = getStoredElements(node.getInput(3));
    if (!zeroPoints)
      return std::nullopt;
    setZeroPoints(matrix, zeroPoints);
  }
  return matrix;
}

/// Rows of codes of a matrix at indices, which are scaled.
static LogicalResult importGatherBlocks(NodeImporter &node) {
  Tensor &data = node.getInput(0), &indices = node.getInput(1);
  Tensor &scales = node.getInput(2);
  int64_t bits = node.getInt("bits", 4), rank = data.getRank();
  int64_t blockSize = node.getInt("block_size", 128);
  if (failed(checkBlocks(node, bits, blockSize)))
    return failure();
  FailureOr<int64_t> axis = node.getAxis(node.getInt("gather_axis", 0), rank),
                     depthAxis =
                         node.getAxis(node.getInt("quantize_axis", 1), rank);
  if (failed(axis) || failed(depthAxis))
    return failure();
  if (rank != 2 || *axis != 0 || *depthAxis != 1)
    return node.emitError()
           << "only rows of matrices are supported: 'gather_axis' 0 and "
              "'quantize_axis' 1 of rank 2";
  if (!indices.element.isInteger(32) && !indices.element.isInteger(64))
    return node.emitError()
           << "expected indices of 32 or 64 bits, found " << indices.element;
  bool isPacked = data.element.isUnsignedInteger(8);
  if (!isPacked && data.element.getIntOrFloatBitWidth() != 4)
    return node.emitError() << "data has type " << data.element
                            << ", expected uint8, uint4 or int4";
  if (!isPacked && bits != 4)
    return node.emitError() << "'bits' is " << bits << ", but data has 4";
  int64_t parts = isPacked ? 8 / bits : 1;
  std::optional<int64_t> bytes = data.shape[1].getConstant();
  Type element = scales.element;
  if (!scales.isFloat() || element.isF64() || scales.getRank() != 2 || !bytes)
    return node.emitError() << "expected scales of rank 2, of f32, f16 or bf16";
  int64_t depth = *bytes * parts, blocks = depth / blockSize;
  if (depth % blockSize)
    return node.emitError()
           << "rows of " << depth << " codes are no multiple of the blocks";
  if (scales.shape != SmallVector<Size>{data.shape[0], Size(blocks)})
    return node.emitError() << "expected " << blocks << " scales for each row";
  if (node.hasInput(3)) {
    Tensor &given = node.getInput(3);
    int64_t count = llvm::divideCeil(blocks, parts);
    if (given.element != data.element ||
        given.shape != SmallVector<Size>{data.shape[0], Size(count)})
      return node.emitError() << "expected zero points of " << data.element
                              << ", " << count << " for each row";
  }
  if (isPacked)
    if (auto matrix = getTiedMatrix(node, depth, blockSize, bits))
      return node.setResult(gatherColumns(node, indices, *matrix));
  // Without zero points, codes in bytes are around the middle.
  double zeroPoint = isPacked ? 1 << (bits - 1) : 0;
  Size rows = getProduct(indices.shape);
  SmallVector<Size> column{rows, Size(blocks), Size(1)},
      shape{rows, Size(blocks), Size(blockSize)};
  FailureOr<Tensor> codes = gatherCodes(node, data, indices, depth, bits),
                    factors =
                        gather(node, scales, indices, 0, NegativeIndex::Wraps);
  if (failed(codes) || failed(factors) ||
      failed(assign(*codes, reshape(node, *codes, shape))) ||
      failed(assign(*factors, reshape(node, *factors, column))))
    return failure();
  SmallVector<Tensor *> operands{&*codes, &*factors};
  Tensor zeros;
  if (node.hasInput(3)) {
    if (failed(assign(zeros, gatherCodes(node, node.getInput(3), indices,
                                         blocks, bits))) ||
        failed(assign(zeros, reshape(node, zeros, column))))
      return failure();
    operands.push_back(&zeros);
  }
  Tensor result = mapElementsTo(
      node, operands, shape, element, [&](Scalars &s, ValueRange args) {
        Value zero = args.size() > 2 ? args[2] : s.get(zeroPoint);
        return s.mul(s.sub(args[0], zero), s.convert(args[1]));
      });
  SmallVector<Size> whole(indices.shape);
  whole.push_back(depth);
  return node.setResult(reshape(node, result, whole));
}

void onnx::addQuantizedOperators(OperatorTable &table) {
  table["com.microsoft/MatMulNBits"] = {3, 6, 1, importMatMulNBits,
                                        CodeUse::Read};
  table["com.microsoft/GatherBlockQuantized"] = {3, 4, 1, importGatherBlocks,
                                                 CodeUse::Read};
}
