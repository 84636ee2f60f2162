//===- TileProductUnits.h - units that compute tile products ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each unit is one file and one row of the table in LowerTileProducts.cpp. Two
// loops serve all units that keep their sums in vectors: `lowerInTile` for sums
// in a tensor or memref, and `lowerInRegisters` for sums that are a vector.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_PRODUCTS_TILEPRODUCTUNITS_H
#define POSENC_LIB_CODEGEN_CPU_PRODUCTS_TILEPRODUCTUNITS_H

#include "posenc/IR/Posenc.h"
#include "posenc/Numerics/ByteDots.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::posenc {

/// The options of posenc-lower-tile-products.
struct ProductTarget {
  /// Whether the target has the bf16 dot product (VDPBF16PS), and AMX-BF16.
  bool hasBF16Dots = false, hasAMXBF16 = false;
  /// Whether it has the dot product of bytes (AVX512-VNNI), and AMX-INT8.
  bool hasInt8Dots = false, hasAMXInt8 = false;
};

/// A unit that multiplies.
struct ProductUnit {
  /// Whether the unit computes the product. Does not change the IR.
  bool (*computes)(TileProductOp op, const ProductTarget &target);
  /// Replaces the product, for which `computes` holds.
  void (*lower)(RewriterBase &rewriter, TileProductOp op);
  /// Whether the unit loads panels and sums from memory, so that products on
  /// tensors have to wait for bufferization.
  bool needsMemory = false;
};

ProductUnit getAMXUnit();
ProductUnit getBF16DotUnit();
ProductUnit getInt8DotUnit();
ProductUnit getFMAUnit();
/// Computes all products on every CPU.
ProductUnit getPortableUnit();

/// Whether a register tile of vectors can hold the sums of the product, and
/// vectors its panels.
bool fitsInVectors(TileProductOp op);

/// Whether such vectors, those of the sums, are whole ones of `lanes`.
bool fitsInVectors(TileProductOp op, int64_t lanes);

/// Returns the length of the vectors that hold a row of B: a divisor of the
/// columns, and all of them unless their number is not a power of two, for
/// which LLVM would split a vector into its elements.
int64_t getLanes(TileProductOp op);

/// Emits a loop over the depth of a product whose sums are a tensor or memref;
/// the loop carries vectors of rows x `lanes` sums, where `lanes` is a divisor
/// of the columns. `step` returns the sums plus the products of a column of A
/// (rows x 1, or 1 x rows if transposed) and a row of B, in vectors of `lanes`.
void lowerInTile(
    RewriterBase &rewriter, TileProductOp op, int64_t lanes,
    function_ref<SmallVector<Value>(ImplicitLocOpBuilder &builder, Value column,
                                    ValueRange row, ValueRange sums)>
        step);

/// For the `step` above: returns `sums` with each vector of a row replaced by
/// what `add` returns for an element of `column`, in all lanes, a vector of
/// `row` and that vector.
SmallVector<Value>
addRows(ImplicitLocOpBuilder &builder, TileProductOp op, Value column,
        ValueRange row, ValueRange sums,
        function_ref<Value(Value factor, Value vector, Value sum)> add);

/// Returns the dot product of words of `a` and `b`, which are quads.
ByteDot getByteDot(TileProductOp op, Value a, Value b, Value sum);

/// Emits a loop over the depth of a product whose sums are a vector; the loop
/// carries one vector of lanes each. `step` returns `sum` plus the products of
/// an element of A, in all lanes, and a vector of B.
void lowerInRegisters(RewriterBase &rewriter, TileProductOp op,
                      function_ref<Value(ImplicitLocOpBuilder &builder,
                                         Value factor, Value vector, Value sum)>
                          step);

/// Returns `sum` + a * b by a fused multiply-add, or, if `skipsZeros`, `sum`
/// where b is 0. All are scalars or vectors of the same type.
Value addFMA(ImplicitLocOpBuilder &builder, Value a, Value b, Value sum,
             bool skipsZeros);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_PRODUCTS_TILEPRODUCTUNITS_H
