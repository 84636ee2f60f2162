//===- RowsToGpu.h - loops over rows that have GPU kernels ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ROWS_ROWSTOGPU_H
#define POSENC_LIB_CODEGEN_GPU_ROWS_ROWSTOGPU_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::posenc {

/// Returns an operation of a loop over rows that has no form in a GPU kernel;
/// the loop itself if its buffers do not fit in shared memory; null if there is
/// a kernel.
Operation *findUnsupportedInRows(scf::ForallOp loop);

/// Whether there is a GPU kernel for a linalg operation on memrefs that is not
/// in a loop: a reduction, or one with elements for which ElementsToGpu has no
/// kernel.
bool hasGridKernel(linalg::LinalgOp op);

/// Whether elements of the type can be copied.
bool isRowElement(Type type);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ROWS_ROWSTOGPU_H
