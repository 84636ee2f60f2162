//===- BlockCodes.cpp - products with matrices of few bits ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product is two operations, which posenc-tile-block-sums tiles together:
//
//   partial[m, panel, block, n] = sum over the block of a * (code - zero point)
//   result[m, panel, n] = sum over blocks of partial * scale
//
//===----------------------------------------------------------------------===//

#include "BlockCodes.h"
#include "Scalars.h"
#include "posenc/IR/Weights.h"

#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

/// Columns of a panel: a cache line of bytes, and four vectors of AVX-512.
static constexpr int64_t kPanelColumns = 64;

StringRef onnx::getElementsKey(ElementsAttr elements) {
  auto weights = dyn_cast<DenseResourceElementsAttr>(elements);
  return weights ? StringRef(weights.getRawHandle().getKey()) : "";
}

Value onnx::unpackCode(Scalars &s, Value byte, unsigned bits, Value firstBit) {
  Type i32 = s.getI32Type();
  Value code = arith::ExtUIOp::create(s, i32, byte);
  if (bits < 8) {
    code = arith::ShRUIOp::create(s, code, firstBit);
    code =
        arith::AndIOp::create(s, code, createScalar(s, i32, (1 << bits) - 1));
  }
  return arith::SIToFPOp::create(s, s.getF32Type(), code);
}

/// Returns a constant whose bytes, zeros before, `fill` writes. With a key that
/// says what they are, they are in memory that the system can write to a file.
static Tensor createPanels(RankedTensorType type, StringRef key,
                           function_ref<void(MutableArrayRef<char>)> fill) {
  int64_t bytes = *getNumBytes(type);
  if (!key.empty() && bytes >= kMinWeightBytes)
    return createWeights(getOrCreateWeights(type, key, fill));
  std::vector<char> elements(bytes);
  fill(elements);
  return createConstant(DenseElementsAttr::getFromRawBuffer(type, elements));
}

/// Returns the key of elements under `key`, codes, scales or zero points of a
/// matrix, in panels; empty if `key` is.
static std::string getPanelsKey(const BlockCodes &matrix, StringRef key) {
  if (key.empty())
    return "";
  return getPackedKey(key,
                      {matrix.depth, matrix.columns, kPanelColumns, matrix.bits,
                       matrix.blockSize},
                      /*columnsDim=*/0);
}

/// Moves elements of `width` bytes, columns x blocks, to panels x blocks x
/// columns of a panel. Columns beyond the last one are 0. `key` is
/// that of the elements, or empty.
static Tensor moveToPanels(ArrayRef<char> bytes, Type element,
                           const BlockCodes &matrix, StringRef key) {
  int64_t blocks = matrix.getNumBlocks();
  int64_t panels = llvm::divideCeil(matrix.columns, kPanelColumns);
  size_t width = element.getIntOrFloatBitWidth() / 8;
  // A splat has one element.
  size_t step = bytes.size() == width ? 0 : width;
  auto fill = [&](MutableArrayRef<char> moved) {
    for (int64_t column = 0; column < matrix.columns; ++column)
      for (int64_t block = 0; block < blocks; ++block) {
        int64_t to = (column / kPanelColumns * blocks + block) * kPanelColumns +
                     column % kPanelColumns;
        std::memcpy(&moved[to * width],
                    &bytes[(column * blocks + block) * step], width);
      }
  };
  auto type = RankedTensorType::get({panels, blocks, kPanelColumns}, element);
  return createPanels(type, getPanelsKey(matrix, key), fill);
}

static Tensor moveToPanels(ElementsAttr elements, const BlockCodes &matrix) {
  return moveToPanels(*getStoredBytes(elements), elements.getElementType(),
                      matrix, getElementsKey(elements));
}

/// Packs the codes into panels.
static Tensor createCodes(NodeImporter &node, const BlockCodes &matrix) {
  int64_t blocks = matrix.getNumBlocks(), parts = 8 / matrix.bits;
  int64_t panels = llvm::divideCeil(matrix.columns, kPanelColumns);
  int64_t bytes = matrix.blockSize / parts;
  auto fill = [&](MutableArrayRef<char> packed) {
    std::vector<uint8_t> codes(blocks * matrix.blockSize);
    for (int64_t column = 0; column < matrix.columns; ++column) {
      matrix.readColumn(column, codes);
      for (int64_t block = 0; block < blocks; ++block) {
        const uint8_t *from = &codes[block * matrix.blockSize];
        char *to = &packed[(column / kPanelColumns * blocks + block) * bytes *
                               kPanelColumns +
                           column % kPanelColumns];
        for (int64_t i = 0; i < bytes; ++i)
          for (int64_t part = 0; part < parts; ++part)
            to[i * kPanelColumns] |= from[part * bytes + i]
                                     << (part * matrix.bits);
      }
    }
  };
  auto type = RankedTensorType::get({panels, blocks, bytes, kPanelColumns},
                                    node.getI8Type());
  return createPanels(type, getPanelsKey(matrix, matrix.codesKey), fill);
}

CodePanels onnx::packCodes(NodeImporter &node, const BlockCodes &matrix) {
  CodePanels panels{createCodes(node, matrix),
                    moveToPanels(matrix.scales, matrix), Tensor()};
  if (matrix.floatZeroPoints)
    panels.zeroPoints = moveToPanels(matrix.floatZeroPoints, matrix);
  else if (!matrix.zeroPoints.empty())
    panels.zeroPoints = moveToPanels(
        ArrayRef(reinterpret_cast<const char *>(matrix.zeroPoints.data()),
                 matrix.zeroPoints.size()),
        node.getI8Type(), matrix, matrix.zeroPointsKey);
  return panels;
}

/// Returns the zero point that a stored one is, or that of all codes if it is
/// null, as an f32.
static Value createZeroPoint(Scalars &s, const BlockCodes &matrix,
                             Value given) {
  if (!given)
    return createScalar(s, s.getF32Type(), matrix.zeroPoint);
  return isa<FloatType>(given.getType())
             ? s.convert(given, s.getF32Type())
             : unpackCode(s, given, 8, /*firstBit=*/Value());
}

/// Adds zeros to the last dimension of a matrix.
static FailureOr<Tensor> padColumns(NodeImporter &node, Tensor &matrix,
                                    int64_t count) {
  if (count == 0)
    return matrix;
  SmallVector<Size> shape{matrix.shape[0], Size(count)};
  Tensor zeros = createTensor(
      node, createFilled(node, shape, matrix.element, /*value=*/0), shape);
  return concat(node, {&matrix, &zeros}, 1);
}

/// Sums the products of rows (m, blocks, blockSize) and codes in each block:
/// (m, panels, blocks, columns of a panel).
static Tensor sumBlocks(NodeImporter &node, Tensor &rows,
                        const BlockCodes &matrix, CodePanels &packed) {
  Type f32 = node.getF32Type();
  Tensor &codes = packed.codes, &zeroPoints = packed.zeroPoints;
  int64_t parts = 8 / matrix.bits, bytes = matrix.blockSize / parts;
  MLIRContext *context = node.getContext();
  AffineExpr m, panel, block, n, k;
  bindDims(context, m, panel, block, n, k);
  auto getMap = [&](ArrayRef<AffineExpr> results) {
    return AffineMap::get(5, 0, results, context);
  };
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (int64_t part = 0; part < parts; ++part) {
    SmallVector<Size> shape = rows.shape;
    shape[2] = bytes;
    Tensor slice = onnx::slice(node, rows, {0, 0, part * bytes}, shape);
    inputs.push_back(node.getValue(slice));
    maps.push_back(getMap({m, block, k}));
  }
  inputs.push_back(node.getValue(codes));
  maps.push_back(getMap({panel, block, k, n}));
  bool hasZeroPoints = !zeroPoints.shape.empty();
  if (hasZeroPoints) {
    inputs.push_back(node.getValue(zeroPoints));
    maps.push_back(getMap({panel, block, n}));
  }
  maps.push_back(getMap({m, panel, block, n}));
  SmallVector<Size> shape{rows.shape[0], codes.shape[0], codes.shape[1],
                          kPanelColumns};
  Value init = createFilled(node, shape, f32, 0);
  SmallVector<utils::IteratorType> loops(5, utils::IteratorType::parallel);
  loops.back() = utils::IteratorType::reduction;
  return createGeneric(
      node, inputs, init, maps, loops, shape, [&](Scalars &s, ValueRange args) {
        Value byte = args[parts], sum = args.back();
        Value zero = createZeroPoint(s, matrix,
                                     hasZeroPoints ? args[parts + 1] : Value());
        for (int64_t part = 0; part < parts; ++part) {
          Value firstBit = createScalar(s, s.getI32Type(), part * matrix.bits);
          Value code = unpackCode(s, byte, matrix.bits, firstBit);
          sum = s.fma(args[part], s.sub(code, zero), sum);
        }
        return sum;
      });
}

FailureOr<Tensor> onnx::multiplyCodes(NodeImporter &node, Tensor left,
                                      const BlockCodes &right) {
  Type f32 = node.getF32Type();
  if (left.shape.empty() || !requireEqual(node, left.shape.back(), right.depth))
    return node.emitError()
           << "expected rows of " << right.depth << " elements";
  SmallVector<Size> shape(left.shape);
  shape.back() = right.columns;
  Size rows = getProduct(ArrayRef(left.shape).drop_back());
  int64_t blocks = right.getNumBlocks();
  left = convertTensor(node, left, f32);
  if (failed(assign(left, reshape(node, left, {rows, Size(right.depth)}))) ||
      failed(assign(left, padColumns(node, left,
                                     blocks * right.blockSize - right.depth))))
    return failure();
  if (failed(
          assign(left, reshape(node, left,
                               {rows, Size(blocks), Size(right.blockSize)}))))
    return failure();
  CodePanels packed = packCodes(node, right);
  Tensor partial = sumBlocks(node, left, right, packed);
  Tensor &scales = packed.scales;
  MLIRContext *context = node.getContext();
  AffineExpr m, panel, n, block;
  bindDims(context, m, panel, n, block);
  auto getMap = [&](ArrayRef<AffineExpr> results) {
    return AffineMap::get(4, 0, results, context);
  };
  SmallVector<Size> panels{rows, scales.shape[0], kPanelColumns};
  SmallVector<utils::IteratorType> loops(4, utils::IteratorType::parallel);
  loops.back() = utils::IteratorType::reduction;
  Tensor result =
      createGeneric(node, {node.getValue(partial), node.getValue(scales)},
                    createFilled(node, panels, f32, 0),
                    {getMap({m, panel, block, n}), getMap({panel, block, n}),
                     getMap({m, panel, n})},
                    loops, panels, [](Scalars &s, ValueRange args) {
                      return s.fma(args[0], s.convert(args[1]), args[2]);
                    });
  Size all = scales.shape[0] * kPanelColumns;
  if (failed(assign(result, reshape(node, result, {rows, all}))))
    return failure();
  result = slice(node, result, {0, 0}, {rows, Size(right.columns)});
  return reshape(node, result, shape);
}

FailureOr<Tensor> onnx::gatherColumns(NodeImporter &node, Tensor &indices,
                                      const BlockCodes &matrix) {
  CodePanels packed = packCodes(node, matrix);
  Value codes = node.getValue(packed.codes),
        scales = node.getValue(packed.scales), zeroPoints;
  if (!packed.zeroPoints.shape.empty())
    zeroPoints = node.getValue(packed.zeroPoints);
  int64_t bytes = matrix.blockSize * matrix.bits / 8;
  Type f32 = node.getF32Type();
  auto divide = [](Scalars &s, Value value, int64_t divisor) {
    Value by = arith::ConstantIndexOp::create(s, divisor);
    return std::pair<Value, Value>(arith::DivUIOp::create(s, value, by),
                                   arith::RemUIOp::create(s, value, by));
  };
  FailureOr<Tensor> result = readRows(
      node, indices, matrix.columns, {Size(matrix.depth)}, f32,
      NegativeIndex::Wraps, [&](Scalars &s, Value row, ValueRange others) {
        auto [panel, lane] = divide(s, row, kPanelColumns);
        auto [block, number] = divide(s, others[0], matrix.blockSize);
        auto [part, at] = divide(s, number, bytes);
        Value byte = tensor::ExtractOp::create(
            s, codes, ValueRange{panel, block, at, lane});
        Value firstBit = s.mul(s.convert(part, s.getI32Type()),
                               createScalar(s, s.getI32Type(), matrix.bits));
        Value code = unpackCode(s, byte, matrix.bits, firstBit);
        Value place[] = {panel, block, lane};
        Value given;
        if (zeroPoints)
          given = tensor::ExtractOp::create(s, zeroPoints, place);
        Value zero = createZeroPoint(s, matrix, given);
        Value scale = tensor::ExtractOp::create(s, scales, place);
        return s.mul(s.sub(code, zero), s.convert(scale));
      });
  if (succeeded(result))
    result = convertTensor(node, *result, matrix.scales.getElementType());
  return result;
}

std::optional<BlockCodes> onnx::getBlockCodes(const CodesOrigin &origin) {
  auto type = cast<RankedTensorType>(origin.codes.getType());
  int64_t depthDim = origin.isTransposed ? 1 : 0;
  BlockCodes matrix;
  matrix.depth = type.getDimSize(depthDim);
  matrix.columns = type.getDimSize(1 - depthDim);
  bool hasBlocks = origin.blockSize && origin.axis >= 0;
  // Scales belong to columns, blocks of them, or the matrix.
  if (matrix.depth == 0 || matrix.columns == 0 ||
      (origin.axis >= 0 && (origin.axis == depthDim) != hasBlocks))
    return std::nullopt;
  matrix.blockSize = hasBlocks ? origin.blockSize : matrix.depth;
  unsigned width = origin.element.getIntOrFloatBitWidth();
  matrix.bits = width == 4 && matrix.blockSize % 2 == 0 ? 4 : 8;
  int offset = origin.element.isUnsignedInteger() ? 0 : 1 << (width - 1);
  int64_t blocks = matrix.getNumBlocks();
  // Returns the number of element (k, n) of a matrix with the layout of the
  // codes.
  auto at = [isTransposed = origin.isTransposed,
             columns = matrix.columns](int64_t k, int64_t n, int64_t depth) {
    return isTransposed ? n * depth + k : k * columns + n;
  };
  matrix.readColumn = [=, codes = origin.codes, depth = matrix.depth](
                          int64_t column, MutableArrayRef<uint8_t> to) {
    ArrayRef<char> bytes = codes.getRawData();
    for (int64_t k = 0; k < depth; ++k)
      to[k] = bytes[codes.isSplat() ? 0 : at(k, column, depth)] + offset;
  };
  // The number of the scale of a block.
  auto find = [&](int64_t block, int64_t n) {
    return origin.axis < 0 ? 0 : hasBlocks ? at(block, n, blocks) : n;
  };
  ArrayRef<char> scales = origin.scales.getRawData();
  Type scale = origin.scales.getElementType();
  size_t step = scale.getIntOrFloatBitWidth() / 8;
  std::vector<char> moved;
  for (int64_t n = 0; n < matrix.columns; ++n)
    for (int64_t block = 0; block < blocks; ++block) {
      int64_t number = find(block, n);
      const char *from = &scales[origin.scales.isSplat() ? 0 : number * step];
      moved.insert(moved.end(), from, from + step);
      int code = 0;
      if (origin.zeroPoints) {
        bool isOne = origin.zeroPoints.isSplat();
        code = origin.zeroPoints.getRawData()[isOne ? 0 : number];
      }
      matrix.zeroPoints.push_back(code + offset);
    }
  matrix.scales = DenseElementsAttr::getFromRawBuffer(
      RankedTensorType::get({matrix.columns, blocks}, scale), moved);
  return matrix;
}
