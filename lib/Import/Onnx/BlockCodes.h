//===- BlockCodes.h - matrices of few bits --------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A quantized matrix stays packed in the library. Codes are constants of 32-bit
// words in the order in which a product reads them:
//
//   panels x blocks x words of a block x 64 columns
//
// A word has 32 / bits codes of one column. Those in its lowest bits are the
// first part of the block, and so on, so each part of a block multiplies
// consecutive elements of a row. Scales and zero points are panels x blocks x
// 64 columns.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IMPORT_ONNX_BLOCKCODES_H
#define POSENC_LIB_IMPORT_ONNX_BLOCKCODES_H

#include "Ops.h"

#include <functional>

namespace mlir::posenc::onnx {

/// A constant matrix, depth x columns, whose elements are (code - zero point) *
/// scale. Blocks of consecutive elements of a column have one scale and one
/// zero point.
struct BlockCodes {
  int64_t depth, columns, blockSize;
  /// Bits of a code: 2, 4 or 8.
  unsigned bits;
  /// Writes the unsigned codes of a column, blocks x blockSize; those beyond
  /// the depth are multiplied by 0.
  std::function<void(int64_t column, llvm::MutableArrayRef<uint8_t> codes)>
      readColumn;
  /// Elements of a float type, columns x blocks, of which the bytes are stored.
  ElementsAttr scales;
  /// Zero points, columns x blocks: integers of a byte, or floats. If there are
  /// none, all zero points are `zeroPoint`.
  std::vector<uint8_t> zeroPoints;
  ElementsAttr floatZeroPoints;
  double zeroPoint = 0;
  /// getElementsKey() of the elements that codes and zero points are from.
  StringRef codesKey, zeroPointsKey;

  int64_t getNumBlocks() const { return (depth + blockSize - 1) / blockSize; }
};

/// Returns the elements of a constant, which need not be known while importing,
/// or null.
ElementsAttr getStoredElements(const Tensor &tensor);
/// Returns the key of elements that are in the memory of the model's files; ""
/// for others.
StringRef getElementsKey(ElementsAttr elements);

/// How a product computes the sum of a block: of floats in f32, or of rows that
/// are rounded to integers of 8 bits, in i32.
enum class BlockSum { Floats, Integers };
/// The largest block whose products of integers fit 32 bits.
constexpr int64_t kMaxIntegerBlock = int64_t(1) << 16;

/// Multiplies a tensor (..., depth) by a matrix. The elements of the result are
/// f32: each is a sum over blocks of scaled sums, in f32.
FailureOr<Tensor> multiplyCodes(NodeImporter &node, Tensor left,
                                const BlockCodes &right,
                                BlockSum sum = BlockSum::Floats);

/// Multiplies a tensor (..., depth) of integers of 8 bits, signed or unsigned
/// as `leftType` says, by a matrix of codes without scales and zero points: the
/// sums of the products of code and code, of type i32, and the sum of each row,
/// (..., 1). Unsigned integers are 128 less in both.
struct IntegerProduct {
  Tensor sums, rowSums;
};
FailureOr<IntegerProduct> multiplyIntegers(NodeImporter &node, Tensor left,
                                           Type leftType,
                                           const BlockCodes &right);

/// The constants of a matrix: codes as above, scales, and zero points, which
/// have no shape if all are `zeroPoint`.
struct CodePanels {
  Tensor codes, scales, zeroPoints;
};
CodePanels packCodes(NodeImporter &node, const BlockCodes &matrix);
/// The codes alone.
Tensor createCodes(NodeImporter &node, const BlockCodes &matrix);

/// Rows (m, blocks, block size) in integers of 8 bits: row / scale,
/// rounded to even. `words` are 32-bit words (m, blocks, words of a block), one
/// tensor for each shift of the words of codes by a number of bits below 8. The
/// integers of a block have the scale, an f32, and the sum, an i32, (m,
/// blocks).
struct IntegerRows {
  std::vector<Tensor> words;
  Tensor scales, sums;
};
IntegerRows quantizeRows(NodeImporter &node, Tensor &rows,
                         const BlockCodes &matrix);

/// Returns those words for integers of 8 bits.
std::vector<Tensor> packWords(NodeImporter &node, Tensor &rows,
                              const BlockCodes &matrix);

/// Sums over the elements k of blocks: (m, panels, blocks, columns of a panel),
/// of the type `sum`. `body` gets elements of the rows (m, blocks, k), of the
/// codes (panels, blocks, k, columns), of the zero points (panels, blocks,
/// columns) unless they are null, and the sum so far.
Tensor sumOverBlocks(NodeImporter &node, MutableArrayRef<Tensor> rows,
                     Tensor &codes, Tensor *zeroPoints, Type sum, Body body);

/// Divides the blocks of rows (m, blocks, block size) into parts, which are
/// slices of a tensor: it has the first elements of all parts, then the second
/// ones, and so on, in the order in which sums add them.
std::vector<Tensor> interleaveParts(NodeImporter &node, Tensor &rows,
                                    int64_t parts);

/// Sums the products of integer rows and codes in each block, as i32: (m,
/// panels, blocks, 64).
Tensor sumIntegers(NodeImporter &node, MutableArrayRef<Tensor> words,
                   Tensor &codes, unsigned bits);

/// Adds zeros to the last dimension, of `depth` elements, up to whole blocks,
/// and divides it: (rows, blocks, block size).
FailureOr<Tensor> divideRows(NodeImporter &node, Tensor left,
                             const BlockCodes &matrix);

/// Returns the columns of a matrix at indices as rows (..., depth) of its
/// element type. Each is (code - zero point) * scale in f32, which is rounded.
FailureOr<Tensor> gatherColumns(NodeImporter &node, Tensor &indices,
                                const BlockCodes &matrix);

/// Returns the codes of a matrix that is dequantized, or nullopt if its blocks
/// are not along the dimension that a product sums.
std::optional<BlockCodes> getBlockCodes(const CodesOrigin &origin);

/// Returns the unsigned code in the bits of a byte or word from `firstBit` on,
/// an i32, as an f32.
Value unpackCode(Scalars &s, Value word, unsigned bits, Value firstBit);

} // namespace mlir::posenc::onnx

#endif // POSENC_LIB_IMPORT_ONNX_BLOCKCODES_H
