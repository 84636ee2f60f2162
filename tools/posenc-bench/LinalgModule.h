//===- LinalgModule.h - linalg modules of the suite -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_LINALGMODULE_H
#define POSENC_TOOLS_BENCH_LINALGMODULE_H

#include "Case.h"

namespace mlir::posenc {

/// A matrix product of the shapes m x k and k x n.
struct ProductForm {
  posenc_dtype dtype = POSENC_F32;
  int64_t m = 512, k = 512, n = 512;
  /// Whether the caller passes the second matrix packed in column panels.
  bool isPacked = false;
  /// Whether the product is followed by a bias and a rope with heads of 64
  /// channels.
  bool hasRope = false;
};

// Each of these functions sets the module, function and inputs of a case, and
// appends element type and shape to its name.

void setProduct(const ProductForm &form, Case &to);

/// An f32 matrix of `size` x `size` times a vector.
void setMatvec(int64_t size, Case &to);

/// An operation on the rows of an f32 tensor of `rows` x `columns`.
enum class RowWork { BiasSilu, Residual, RmsNorm, Softmax, ToBF16 };
void setRows(RowWork work, int64_t rows, int64_t columns, Case &to);

/// A sinusoidal table that is added to an f32 tensor, in place.
void setAddSinusoidal(int64_t batch, int64_t tokens, int64_t dim, Case &to);

/// An RMS norm over the channels of each head, then a rope, in place. All in
/// f32.
void setNormRope(int64_t tokens, int64_t heads, int64_t headDim, Case &to);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_LINALGMODULE_H
