//===- PositionTable.h - cos and sin of one position ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the conversions to vectors have in common: the loops over positions, the
// position of an iteration, and its cos and sin vector by vector.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_POSITIONTABLE_H
#define POSENC_LIB_CODEGEN_CPU_POSITIONTABLE_H

#include "posenc/IR/Posenc.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::posenc {

/// Loops over `[0, count)` in steps of `lanes`, then over what is left in ever
/// shorter powers of two. The body gets the first lane and the vector length.
/// `count` is static, so that no tail needs a mask.
void forEachVector(
    OpBuilder &builder, Location loc, int64_t count, int64_t lanes,
    function_ref<void(OpBuilder &, Location, Value, int64_t)> body);

/// The nest of loops over `sizes`; a static 1 needs none. The body gets the
/// indices.
void forEachIndex(OpBuilder &builder, Location loc, ValueRange sizes,
                  function_ref<void(OpBuilder &, Location, ValueRange)> body);

/// The size of a memref's dimension, a constant where it is static.
Value getDimSize(OpBuilder &builder, Location loc, Value memref, int64_t dim);

/// Emits an error unless the operation is in a function, on memrefs whose last
/// dimension is contiguous, and the vector has 16, 32 or 64 bytes.
LogicalResult checkConvertible(Operation *op, int64_t vectorBytes);

/// The sizes of the loops of a positional operation on memrefs.
SmallVector<Value> getLoopSizes(OpBuilder &builder, PositionalOpInterface op);

/// The constants of a frequencies attribute and the cos and sin from them.
class PositionTable {
public:
  /// Puts the constants in front of `op`'s function, in its module.
  PositionTable(OpBuilder &builder, Operation *op, FrequenciesAttr frequencies,
                AxesAttr axes, bool inverse, bool wide);

  /// The position, or one for each axis, at loop indices `indices`, as i64.
  SmallVector<Value> loadPositions(OpBuilder &builder, Location loc,
                                   Value positions, ValueRange indices) const;

  struct Entry {
    Value cos, sin;
  };
  /// cos and sin of `lanes` pairs from `pair` on.
  Entry emit(OpBuilder &builder, Location loc, ValueRange positions, Value pair,
             int64_t lanes) const;

  int64_t getNumPairs() const { return frequencies.getNumPairs(); }

private:
  Value loadConstants(OpBuilder &builder, Location loc, StringRef symbol,
                      Value pair, int64_t lanes) const;

  FrequenciesAttr frequencies;
  AxesAttr axes;
  bool inverse, wide;
  std::string high, low, axisOfPair;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_POSITIONTABLE_H
