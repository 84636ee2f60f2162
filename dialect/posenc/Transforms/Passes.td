//===- Passes.td - passes within the posenc dialect --------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TRANSFORMS_PASSES_TD
#define POSENC_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def PosencFuseRopesPass : Pass<"posenc-fuse-ropes"> {
  let summary = "Share the cos and sin of positions";
  let description = [{
    Turns `rotate(x, sincos(positions))` into a rope, and ropes of one block
    that differ in their tensors only into one rope of several tensors, so that
    the cos and sin of a position are computed once for all heads.
  }];
  let dependentDialects = ["::mlir::posenc::PosencDialect"];
}

def PosencDecomposeRopePass : Pass<"posenc-decompose-rope"> {
  let summary = "Split ropes on tensors into sincos and rotate";
  let description = [{
    `rope(x, p) = rotate(x, sincos(p))`, with one table for all tensors of the
    rope. For an inverse rope with an attention factor `att` other than 1, whose
    tables have the factor `1/att` that no frequencies of the op have, the
    tables are multiplied by `1/att^2` in between, by a linalg.generic.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::posenc::PosencDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // POSENC_TRANSFORMS_PASSES_TD
