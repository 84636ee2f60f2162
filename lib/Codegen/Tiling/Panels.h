//===- Panels.h - panel packing of the right-hand matrix --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_TILING_PANELS_H
#define POSENC_LIB_CODEGEN_TILING_PANELS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::posenc {

/// Columns of a panel of an argument, for every element type and target: two
/// f32 vectors of AVX-512, and a multiple of the register tile's columns on
/// every CPU.
constexpr int64_t kPanelColumns = 32;

/// Name of the layout in the `posenc.packed` attribute and in descriptions.
constexpr llvm::StringLiteral kPanelsLayout = "panels32";

/// Returns the packed type of a matrix of static shape: panels x k x
/// `panelColumns`. `columnsDim` is the dimension of the matrix that has the
/// columns; the other one is k.
RankedTensorType getPanelsType(RankedTensorType matrix, unsigned columnsDim,
                               int64_t panelColumns = kPanelColumns);

/// Whether the source of the operation has a panel layout: panels x k x tile,
/// with a static tile of columns.
bool arePanels(linalg::UnPackOp op, unsigned columnsDim);

/// Emits the linalg.unpack that restores the matrix from its panels.
Value unpackPanels(OpBuilder &builder, Location loc, Value panels,
                   RankedTensorType matrix, unsigned columnsDim);

/// Emits the linalg.pack of a matrix into panels; the columns after the last
/// one are zeros.
Value packPanels(OpBuilder &builder, Location loc, Value matrix,
                 unsigned columnsDim);

/// Packs a constant likewise, into panels of `panelColumns` columns: those of a
/// register tile, which then reads consecutive cache lines. Returns panels of
/// twice as many if they exist already. A constant of more dimensions is a
/// batch of matrices, its last two, whose panels are one behind the other.
/// `columnsDim` is a dimension of a matrix, 0 or 1.
ElementsAttr packPanels(ElementsAttr matrices, unsigned columnsDim,
                        int64_t panelColumns);

/// Makes reads of elements of a constant matrix read its panels, so that the
/// matrix is not stored twice: an embedding that is tied to the output layer.
/// If other operations read the matrix, there are no changes.
void readTableFromPanels(RewriterBase &rewriter, Operation *function,
                         ElementsAttr matrix, ElementsAttr panels,
                         unsigned columnsDim);

/// Packs a constant of 16-bit floats, or a batch, into such panels of 32-bit
/// words, pairs of rows as packDotWords (ProductTiling.h) makes them. A column
/// has `words` words; those behind the last row are zeros.
ElementsAttr packPairs(ElementsAttr matrices, unsigned columnsDim,
                       int64_t panelColumns, int64_t words);

/// Whether packPanels() and packPairs() can pack these elements.
bool canPackPanels(ElementsAttr matrices);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_TILING_PANELS_H
