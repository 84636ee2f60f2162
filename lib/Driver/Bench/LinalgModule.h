//===- LinalgModule.h - linalg around encodings -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_LINALGMODULE_H
#define POSENC_LIB_DRIVER_BENCH_LINALGMODULE_H

#include "Case.h"

namespace mlir::posenc {

/// A product of an m x k and a k x n matrix.
struct ProductForm {
  posenc_dtype dtype = POSENC_F32;
  int64_t m = 512, k = 512, n = 512;
  /// Whether the second matrix was packed before.
  bool isPacked = false;
  /// Whether a bias and a rope over heads of 64 channels follow.
  bool hasRope = false;
};

/// Sets the module, function and inputs of a case, and adds type and shape to
/// its name.
void setProduct(const ProductForm &form, Case &to);

/// A matrix times a vector.
void setMatvec(int64_t size, Case &to);

/// The work on the rows of an f32 tensor that a case measures.
enum class RowWork { BiasSilu, Residual, RmsNorm, Softmax, ToBF16 };
void setRows(RowWork work, int64_t rows, int64_t columns, Case &to);

/// A table of positions that is added to x, in place.
void setAddSinusoidal(int64_t batch, int64_t tokens, int64_t dim, Case &to);

/// A norm of each head's channels and a rope, in place.
void setNormRope(int64_t tokens, int64_t heads, int64_t headDim, Case &to);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_LINALGMODULE_H
