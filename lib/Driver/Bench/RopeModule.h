//===- RopeModule.h - modules of the suite ----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_ROPEMODULE_H
#define POSENC_LIB_DRIVER_BENCH_ROPEMODULE_H

#include "Case.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::posenc {

/// `tensor<?x?x32x128xf32>`; sizes of -1 are dynamic.
std::string formatTensorType(llvm::ArrayRef<int64_t> sizes,
                             llvm::StringRef type);

/// Those of so many lanes, by the suite's base.
std::string formatFrequencies(int64_t dim);

/// A rope of queries and keys.
struct RopeForm {
  enum Layout {
    Batch,         ///< batch, sequence, head, dim
    Packed,        ///< token, head, dim
    BatchHeadFirst ///< batch, head, sequence, dim
  };
  const char *pairing = "half";
  posenc_dtype dtype = POSENC_F32;
  Layout layout = Batch;
  int64_t queryHeads = 32;
  /// None if 0: one tensor.
  int64_t keyHeads = 8;
  int64_t headDim = 128;
  /// Lanes that are rotated, the first ones.
  int64_t rotaryDim = 128;
  /// `<contiguous, [16, 24, 24]>`, or empty.
  const char *axes = "";
  int64_t numAxes = 0;
  CaseInput::Values positions = CaseInput::Iota;
  /// Queries and keys are parts of packed rows [q | k | v].
  bool isView = false;
};

/// The module of a rope, its function `rope`, the arguments for a number of
/// tokens and the shape part of the name.
void setRope(const RopeForm &form, int64_t tokens, Case &to);

/// The same for a table of `dim` columns, `sinusoidal`.
void setSinusoidal(posenc_dtype dtype, int64_t dim, int64_t tokens, Case &to);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_ROPEMODULE_H
