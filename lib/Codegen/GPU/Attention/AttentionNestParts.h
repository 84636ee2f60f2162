//===- AttentionNestParts.h - the parts of an attention nest ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ATTENTION_ATTENTIONNESTPARTS_H
#define POSENC_LIB_CODEGEN_GPU_ATTENTION_ATTENTIONNESTPARTS_H

#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <optional>

namespace mlir::posenc {

/// The operations of the loops that `createAttentionNest` emits.
struct AttentionNestParts {
  scf::ForallOp loops;
  /// The loop over tiles of keys, which carries accumulators, maxima and sums.
  scf::ForOp keys;
  /// The tile; where `where` is known to be true for some tiles, the one that
  /// evaluates it.
  OnlineAttentionOp tile;
  /// The branches around the tile: skips tiles that `where` masks, and selects
  /// the tiles for which `where` is true; null if there is none.
  scf::IfOp isVisible, isFull;
  /// The elementwise operation that computes a result from the state, and where
  /// it goes.
  struct Output {
    linalg::GenericOp compute;
    tensor::ParallelInsertSliceOp insert;
    /// For each input of `compute`, the number of the state's part.
    SmallVector<int64_t> parts;

    Value getDestination() const {
      return tensor::ParallelInsertSliceOp(insert).getDest();
    }
  };
  SmallVector<Output> outputs;

  /// Finds the parts; nullopt if the loops have another form.
  static std::optional<AttentionNestParts> find(scf::ForallOp loops);
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ATTENTION_ATTENTIONNESTPARTS_H
