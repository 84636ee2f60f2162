//===- Panels.h - matrices in the order a product reads them ----*- C++ -*-===//
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

/// The columns of a panel, for every type and target: two vectors of f32 of
/// AVX-512, and whole register tiles of every CPU.
constexpr int64_t kPanelColumns = 32;

/// The name of the layout.
constexpr llvm::StringLiteral kPanelsLayout = "panels32";

/// The type of a matrix of static shape as panels x k x columns of one, where
/// this dimension of the matrix has the columns.
RankedTensorType getPanelsType(RankedTensorType matrix, unsigned columnsDim);

/// Whether the source of the operation is its result as panels.
bool arePanels(linalg::UnPackOp op, unsigned columnsDim);

/// The matrix that the panels are of.
Value unpackPanels(OpBuilder &builder, Location loc, Value panels,
                   RankedTensorType matrix, unsigned columnsDim);

/// A matrix as panels; columns beyond the last are zeros.
Value packPanels(OpBuilder &builder, Location loc, Value matrix,
                 unsigned columnsDim);
DenseElementsAttr packPanels(DenseElementsAttr matrix, unsigned columnsDim);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_TILING_PANELS_H
