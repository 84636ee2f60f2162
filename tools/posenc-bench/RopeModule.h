//===- RopeModule.h - rope modules of the suite -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_ROPEMODULE_H
#define POSENC_TOOLS_BENCH_ROPEMODULE_H

#include "Case.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::posenc {

/// Formats a type such as `tensor<?x?x32x128xf32>`; sizes of -1 are dynamic.
std::string formatTensorType(llvm::ArrayRef<int64_t> sizes,
                             llvm::StringRef type);

/// Formats the frequencies of `dim` channels with the suite's base, 500000.
std::string formatFrequencies(int64_t dim);

/// A rope problem of queries and keys.
struct RopeForm {
  enum Layout {
    BSHD, ///< [batch, sequence, head, dim]
    THD,  ///< [token, head, dim]
    BHSD  ///< [batch, head, sequence, dim]
  };
  const char *pairing = "half";
  posenc_dtype dtype = POSENC_F32;
  Layout layout = BSHD;
  int64_t queryHeads = 32;
  /// 0 for a single tensor with the query heads.
  int64_t keyHeads = 8;
  int64_t headDim = 128;
  /// Number of rotated channels, the first of each head.
  int64_t rotaryDim = 128;
  /// Parameters of #posenc.axes, such as `<contiguous, [16, 24, 24]>`; empty
  /// for positions with one axis (numAxes is 0).
  const char *axes = "";
  int64_t numAxes = 0;
  CaseInput::Values positions = CaseInput::Iota;
  /// Whether queries and keys are strided views of fused rows [q | k | v].
  bool isView = false;
};

/// Sets the module, function (`rope`) and inputs of a rope over `tokens`
/// tokens, and appends element type and shape to the name.
void setRope(const RopeForm &form, int64_t tokens, Case &to);

/// Sets the case up for the function `sinusoidal`: a table of `tokens` rows and
/// `dim` columns.
void setSinusoidal(posenc_dtype dtype, int64_t dim, int64_t tokens, Case &to);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_ROPEMODULE_H
