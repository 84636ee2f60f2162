//===- Weights.h - weights of a module that are in a file -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_WEIGHTS_H
#define POSENC_IR_WEIGHTS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace mlir::posenc {

/// The attribute of a module with its weights: a dictionary from the symbols of
/// globals without a value to their elements or, after the weights have got
/// their places in a file, to their numbers in it (i64). On a function, a unit
/// attribute: it reads such weights, or calls a function that does.
inline constexpr llvm::StringLiteral kWeightsAttrName = "posenc.weights";

/// Minimum bytes of constants that are treated as weights: the compiler neither
/// copies nor reads their elements, except to pack them.
inline constexpr int64_t kMinWeightBytes = 4096;

/// Returns the bytes of a tensor of these elements, each of which has at least
/// one; nullopt if they overflow 63 bits or the elements are no numbers.
std::optional<int64_t> getNumBytes(ShapedType type);

/// Returns the name of an element type in the safetensors format, or "" if the
/// format has none whose elements are stored as kernels read them.
llvm::StringRef getSafetensorsType(Type type);

/// Returns the bytes of elements in memory, without a copy: of all of them, or
/// of one if all are equal. nullopt if they are stored in another form.
std::optional<llvm::ArrayRef<char>> getStoredBytes(ElementsAttr elements);

/// Returns the elements of this type that the context has under a key, or null.
DenseResourceElementsAttr lookupWeights(RankedTensorType type,
                                        llvm::StringRef key);

/// Returns elements that `fill` writes, under a key that says what they are: if
/// the context has elements of this type under the key, it returns these. They
/// are in memory that the system can write to a temporary file.
DenseResourceElementsAttr
getOrCreateWeights(RankedTensorType type, llvm::StringRef key,
                   llvm::function_ref<void(llvm::MutableArrayRef<char>)> fill);

/// How a matrix is stored as panels: tensor[p, i, j] is row i of column
/// `columns` * p + j, or 0 behind the last column. With pairs, it is a 32-bit
/// word of two rows of 16-bit elements: row 64 * (i / 32) + i % 32 in the lower
/// half, and the one 32 rows after it in the upper half. Of quantized matrices,
/// tensor[p, b, j] is the scale or the zero point of block b of that column,
/// and tensor[p, b, i, j] word i, of 32 bits, of its codes: the lowest `bits`
/// bits of all words have the first part of the block, and so on.
struct PanelPacking {
  /// Rows and columns of the matrix, and columns of a panel.
  int64_t rows, matrixColumns, columns;
  /// Bits of a code and rows of a block; 0 if the elements are numbers.
  int64_t bits = 0, blockSize = 0;
  bool hasPairs = false;

  /// Returns the name of the layout: `panels<C>`, `pairs<C>` or `codes<C>`.
  std::string getLayout() const;
};

/// Returns the key of a matrix that is packed so. `columnsDim` is the dimension
/// of the elements under `key` that has the columns.
std::string getPackedKey(llvm::StringRef key, PanelPacking packing,
                         unsigned columnsDim);
/// Returns how the elements of such a key are packed, and sets `matrix`, if it
/// is not null, to the key of the matrix.
std::optional<PanelPacking> parsePackedKey(llvm::StringRef key,
                                           llvm::StringRef *matrix = nullptr);
/// Returns the key for the elements of a tensor with that name in a file: the
/// beginning of the name, or another text for a name that is empty or would be
/// the key of a packed matrix.
llvm::StringRef getWeightsKey(llvm::StringRef name);

} // namespace mlir::posenc

#endif // POSENC_IR_WEIGHTS_H
