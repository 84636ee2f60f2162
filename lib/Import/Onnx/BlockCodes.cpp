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
#include "llvm/Support/Endian.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

/// Columns of a panel: four vectors of AVX-512.
static constexpr int64_t kPanelColumns = 64;
static constexpr unsigned kWordBits = 32;

ElementsAttr onnx::getStoredElements(const Tensor &tensor) {
  if (tensor.weights && !tensor.hasTransposedWeights)
    return tensor.weights;
  return tensor.constant;
}

StringRef onnx::getElementsKey(ElementsAttr elements) {
  auto weights = dyn_cast<DenseResourceElementsAttr>(elements);
  return weights ? StringRef(weights.getRawHandle().getKey()) : "";
}

Value onnx::unpackCode(Scalars &s, Value word, unsigned bits, Value firstBit) {
  Type i32 = s.getI32Type();
  Value code =
      word.getType() == i32 ? word : arith::ExtUIOp::create(s, i32, word);
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

/// Packs the codes of a block of a column into words, which are a row of a
/// panel apart from each other. The parts of a word are `words` codes apart.
/// The number of bits is known to the compiler, which unrolls the loop over
/// parts.
template <unsigned bits>
static void packBlock(const uint8_t *codes, int64_t words, char *packed) {
  constexpr unsigned parts = kWordBits / bits;
  for (int64_t i = 0; i < words; ++i) {
    uint32_t word = 0;
    for (unsigned part = 0; part < parts; ++part)
      word |= uint32_t(codes[part * words + i]) << (part * bits);
    llvm::support::endian::write32le(
        packed + i * kPanelColumns * sizeof(uint32_t), word);
  }
}

Tensor onnx::createCodes(NodeImporter &node, const BlockCodes &matrix) {
  int64_t blocks = matrix.getNumBlocks(), parts = kWordBits / matrix.bits;
  int64_t panels = llvm::divideCeil(matrix.columns, kPanelColumns);
  int64_t words = matrix.blockSize / parts;
  auto pack = matrix.bits == 2   ? packBlock<2>
              : matrix.bits == 4 ? packBlock<4>
                                 : packBlock<8>;
  auto fill = [&](MutableArrayRef<char> packed) {
    std::vector<uint8_t> codes(blocks * matrix.blockSize);
    for (int64_t column = 0; column < matrix.columns; ++column) {
      matrix.readColumn(column, codes);
      for (int64_t block = 0; block < blocks; ++block)
        pack(&codes[block * matrix.blockSize], words,
             &packed[((column / kPanelColumns * blocks + block) * words *
                          kPanelColumns +
                      column % kPanelColumns) *
                     sizeof(uint32_t)]);
    }
  };
  auto type = RankedTensorType::get({panels, blocks, words, kPanelColumns},
                                    node.getI32Type());
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

/// Takes numbers minus a zero point out of a word of codes.
///
/// Bit b of the mantissa of a float whose exponent is 23 - b is worth 1, so a
/// code at that bit becomes a number without a shift and a conversion: its bits
/// and those of the exponent are the float 2^(23 - b) + code. A few codes fit
/// the 23 bits; the others are shifted there together.
class CodeReader {
public:
  CodeReader(Scalars &s, const BlockCodes &matrix, Value word, Value zeroPoint)
      : s(s), bits(matrix.bits), word(word), zeroPoint(zeroPoint),
        // Another zero point is not exact beside 2^(23 - b).
        isInteger(!matrix.floatZeroPoints) {}

  Value read(unsigned part) {
    unsigned perShift = kMantissaBits / bits;
    if (part % perShift == 0)
      shifted = part ? arith::ShRUIOp::create(s, word, get(part * bits)) : word;
    unsigned first = part % perShift * bits;
    uint32_t exponent = kMantissaBits - first;
    Value number =
        arith::AndIOp::create(s, shifted, get(((1u << bits) - 1) << first));
    number =
        arith::OrIOp::create(s, number, get((exponent + 127) << kMantissaBits));
    number = arith::BitcastOp::create(s, s.getF32Type(), number);
    Value offset = createScalar(s, s.getF32Type(), double(1u << exponent));
    if (isInteger)
      return s.sub(number, s.add(offset, zeroPoint));
    return s.sub(s.sub(number, offset), zeroPoint);
  }

private:
  static constexpr unsigned kMantissaBits = 23;

  Value get(uint32_t value) {
    return arith::ConstantIntOp::create(s, static_cast<int32_t>(value), 32);
  }

  Scalars &s;
  unsigned bits;
  Value word, zeroPoint, shifted;
  bool isInteger;
};

Tensor onnx::sumOverBlocks(NodeImporter &node, MutableArrayRef<Tensor> rows,
                           Tensor &codes, Tensor *zeroPoints, Type sum,
                           Body body) {
  MLIRContext *context = node.getContext();
  AffineExpr m, panel, block, n, k;
  bindDims(context, m, panel, block, n, k);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  auto addMap = [&](ArrayRef<AffineExpr> indices) {
    maps.push_back(AffineMap::get(5, 0, indices, context));
  };
  for (Tensor &part : rows) {
    inputs.push_back(node.getValue(part));
    addMap({m, block, k});
  }
  inputs.push_back(node.getValue(codes));
  addMap({panel, block, k, n});
  if (zeroPoints) {
    inputs.push_back(node.getValue(*zeroPoints));
    addMap({panel, block, n});
  }
  addMap({m, panel, block, n});
  SmallVector<Size> shape{rows[0].shape[0], codes.shape[0], codes.shape[1],
                          codes.shape[3]};
  SmallVector<utils::IteratorType> loops(5, utils::IteratorType::parallel);
  loops.back() = utils::IteratorType::reduction;
  return createGeneric(node, inputs, createFilled(node, shape, sum, 0), maps,
                       loops, shape, body);
}

std::vector<Tensor> onnx::interleaveParts(NodeImporter &node, Tensor &rows,
                                          int64_t parts) {
  if (parts == 1)
    return {rows};
  SmallVector<Size> shape(rows.shape);
  int64_t words = *shape[2].getConstant() / parts;
  Tensor divided =
      *reshape(node, rows, {shape[0], shape[1], Size(parts), Size(words)});
  Tensor transposed = transpose(node, divided, {0, 1, 3, 2});
  Tensor interleaved = *reshape(node, transposed, shape);
  shape[2] = words;
  std::vector<Tensor> slices;
  for (int64_t part = 0; part < parts; ++part)
    slices.push_back(
        slice(node, interleaved, {0, 0, part}, shape, {1, 1, parts}));
  return slices;
}

/// Sums the products of rows (m, blocks, blockSize) and codes in each block:
/// (m, panels, blocks, columns of a panel).
static Tensor sumBlocks(NodeImporter &node, Tensor &rows,
                        const BlockCodes &matrix, CodePanels &packed) {
  int64_t parts = kWordBits / matrix.bits;
  std::vector<Tensor> slices = onnx::interleaveParts(node, rows, parts);
  bool hasZeroPoints = !packed.zeroPoints.shape.empty();
  return sumOverBlocks(
      node, slices, packed.codes, hasZeroPoints ? &packed.zeroPoints : nullptr,
      node.getF32Type(), [&](Scalars &s, ValueRange args) {
        Value sum = args.back();
        Value zero = createZeroPoint(s, matrix,
                                     hasZeroPoints ? args[parts + 1] : Value());
        CodeReader codes(s, matrix, args[parts], zero);
        for (int64_t part = 0; part < parts; ++part)
          sum = s.fma(args[part], codes.read(part), sum);
        return sum;
      });
}

FailureOr<Tensor> onnx::divideRows(NodeImporter &node, Tensor left,
                                   const BlockCodes &matrix) {
  Size rows = getProduct(ArrayRef(left.shape).drop_back());
  int64_t blocks = matrix.getNumBlocks();
  if (failed(assign(left, reshape(node, left, {rows, Size(matrix.depth)}))) ||
      failed(
          assign(left, padColumns(node, left,
                                  blocks * matrix.blockSize - matrix.depth))))
    return failure();
  return reshape(node, left, {rows, Size(blocks), Size(matrix.blockSize)});
}

/// Returns the sum of the products of integers and codes minus zero points, as
/// an f32: `products` minus the zero point times the integers' sum.
static Value subtractZeroPoints(Scalars &s, const BlockCodes &matrix,
                                Value products, Value zeroPoint, Value sum) {
  Type i32 = s.getI32Type(), f32 = s.getF32Type();
  if (matrix.floatZeroPoints) {
    Value zero = s.neg(createZeroPoint(s, matrix, zeroPoint));
    return s.fma(zero, arith::SIToFPOp::create(s, f32, sum),
                 arith::SIToFPOp::create(s, f32, products));
  }
  Value zero = zeroPoint ? arith::ExtUIOp::create(s, i32, zeroPoint)
                         : createScalar(s, i32, matrix.zeroPoint);
  return arith::SIToFPOp::create(s, f32, s.sub(products, s.mul(zero, sum)));
}

/// Adds sums of blocks (m, panels, blocks, columns of a panel) up: (m, panels,
/// columns of a panel), of the type `sum`. `body` gets elements of the sums, of
/// the tensors `ofColumns` (panels, blocks, columns) and `ofRows` (m, blocks),
/// and the sum so far.
static Tensor addBlocks(NodeImporter &node, Tensor &partial,
                        ArrayRef<Tensor *> ofColumns, ArrayRef<Tensor *> ofRows,
                        Type sum, Body body) {
  MLIRContext *context = node.getContext();
  AffineExpr m, panel, n, block;
  bindDims(context, m, panel, n, block);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  auto addMap = [&](ArrayRef<AffineExpr> indices) {
    maps.push_back(AffineMap::get(4, 0, indices, context));
  };
  auto addInput = [&](Tensor &tensor, ArrayRef<AffineExpr> indices) {
    inputs.push_back(node.getValue(tensor));
    addMap(indices);
  };
  addInput(partial, {m, panel, block, n});
  for (Tensor *tensor : ofColumns)
    addInput(*tensor, {panel, block, n});
  for (Tensor *tensor : ofRows)
    addInput(*tensor, {m, block});
  addMap({m, panel, n});
  SmallVector<Size> shape{partial.shape[0], partial.shape[1], kPanelColumns};
  SmallVector<utils::IteratorType> loops(4, utils::IteratorType::parallel);
  loops.back() = utils::IteratorType::reduction;
  return createGeneric(node, inputs, createFilled(node, shape, sum, 0), maps,
                       loops, shape, body);
}

/// Joins the panels of a result (m, panels, columns of a panel), and leaves out
/// columns beyond the last one.
static FailureOr<Tensor> joinPanels(NodeImporter &node, Tensor result,
                                    ArrayRef<Size> shape) {
  Size rows = result.shape[0], all = result.shape[1] * result.shape[2];
  if (failed(assign(result, reshape(node, result, {rows, all}))))
    return failure();
  result = slice(node, result, {0, 0}, {rows, shape.back()});
  return reshape(node, result, shape);
}

FailureOr<Tensor> onnx::multiplyCodes(NodeImporter &node, Tensor left,
                                      const BlockCodes &right, BlockSum kind) {
  Type f32 = node.getF32Type();
  if (left.shape.empty() || !requireEqual(node, left.shape.back(), right.depth))
    return node.emitError()
           << "expected rows of " << right.depth << " elements";
  SmallVector<Size> shape(left.shape);
  shape.back() = right.columns;
  left = convertTensor(node, left, f32);
  if (failed(assign(left, divideRows(node, left, right))))
    return failure();
  CodePanels packed = packCodes(node, right);
  IntegerRows integers;
  Tensor partial;
  if (kind == BlockSum::Integers) {
    integers = quantizeRows(node, left, right);
    partial = sumIntegers(node, integers.words, packed.codes, right.bits);
  } else {
    partial = sumBlocks(node, left, right, packed);
  }
  bool hasZeroPoints = !packed.zeroPoints.shape.empty();
  SmallVector<Tensor *> ofColumns{&packed.scales}, ofRows;
  if (kind == BlockSum::Integers) {
    if (hasZeroPoints)
      ofColumns.push_back(&packed.zeroPoints);
    ofRows = {&integers.scales, &integers.sums};
  }
  Tensor result = addBlocks(
      node, partial, ofColumns, ofRows, f32, [&](Scalars &s, ValueRange args) {
        Value scale = s.convert(args[1]), sum = args.back();
        if (kind == BlockSum::Floats)
          return s.fma(args[0], scale, sum);
        Value zero = hasZeroPoints ? args[2] : Value();
        ValueRange rows = args.drop_back().take_back(2);
        return s.fma(subtractZeroPoints(s, right, args[0], zero, rows[1]),
                     s.mul(scale, rows[0]), sum);
      });
  return joinPanels(node, std::move(result), shape);
}

FailureOr<IntegerProduct> onnx::multiplyIntegers(NodeImporter &node,
                                                 Tensor left, Type leftType,
                                                 const BlockCodes &right) {
  Type i32 = node.getI32Type();
  if (left.shape.empty() || !requireEqual(node, left.shape.back(), right.depth))
    return node.emitError()
           << "expected rows of " << right.depth << " elements";
  SmallVector<Size> shape(left.shape), sumShape(left.shape);
  shape.back() = right.columns;
  sumShape.back() = 1;
  if (leftType.isUnsignedInteger()) {
    Tensor *operand = &left;
    left = mapElementsTo(node, operand, left.shape, node.getI8Type(),
                         [](Scalars &s, ValueRange args) -> Value {
                           return arith::XOrIOp::create(
                               s, args[0],
                               arith::ConstantIntOp::create(s, -128, 8));
                         });
  }
  IntegerProduct product;
  int64_t last = left.getRank() - 1;
  product.rowSums = reduce(node, left, last, Combiner::Add, i32);
  if (failed(
          assign(product.rowSums, reshape(node, product.rowSums, sumShape))) ||
      failed(assign(left, divideRows(node, left, right))))
    return failure();
  Tensor codes = createCodes(node, right);
  std::vector<Tensor> words = packWords(node, left, right);
  Tensor partial = sumIntegers(node, words, codes, right.bits);
  product.sums = addBlocks(
      node, partial, /*ofColumns=*/{}, /*ofRows=*/{}, i32,
      [](Scalars &s, ValueRange args) { return s.add(args[0], args[1]); });
  if (failed(assign(product.sums,
                    joinPanels(node, std::move(product.sums), shape))))
    return failure();
  return product;
}

FailureOr<Tensor> onnx::gatherColumns(NodeImporter &node, Tensor &indices,
                                      const BlockCodes &matrix) {
  CodePanels packed = packCodes(node, matrix);
  Value codes = node.getValue(packed.codes),
        scales = node.getValue(packed.scales), zeroPoints;
  if (!packed.zeroPoints.shape.empty())
    zeroPoints = node.getValue(packed.zeroPoints);
  int64_t words = matrix.blockSize * matrix.bits / kWordBits;
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
        auto [part, at] = divide(s, number, words);
        Value word = tensor::ExtractOp::create(
            s, codes, ValueRange{panel, block, at, lane});
        Value firstBit = s.mul(s.convert(part, s.getI32Type()),
                               createScalar(s, s.getI32Type(), matrix.bits));
        Value code = unpackCode(s, word, matrix.bits, firstBit);
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
  unsigned width = origin.element.getIntOrFloatBitWidth();
  auto fitsWords = [&](unsigned bits) {
    return !hasBlocks || origin.blockSize % (kWordBits / bits) == 0;
  };
  matrix.bits = width == 4 && fitsWords(4) ? 4 : 8;
  // A block has whole words; one of all rows may be longer than them.
  if (!fitsWords(matrix.bits))
    return std::nullopt;
  matrix.blockSize = hasBlocks
                         ? origin.blockSize
                         : llvm::alignTo(matrix.depth, kWordBits / matrix.bits);
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
