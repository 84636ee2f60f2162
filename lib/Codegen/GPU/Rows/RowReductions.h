//===- RowReductions.h - reductions that a team can divide ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ROWS_ROWREDUCTIONS_H
#define POSENC_LIB_CODEGEN_GPU_ROWS_ROWREDUCTIONS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::posenc {

/// Returns the operation that adds an element to the partial result number
/// `result`, if it is the only one that reads the partial result, and partial
/// results can be combined in any grouping; else null.
Operation *findCombiner(linalg::LinalgOp op, unsigned result);

/// Whether threads can reduce parts of a row; otherwise each row is reduced in
/// order, by one thread.
bool hasTeamReduction(linalg::LinalgOp op);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ROWS_ROWREDUCTIONS_H
