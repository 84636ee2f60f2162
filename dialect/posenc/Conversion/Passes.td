//===- Passes.td - conversions to linalg -------------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CONVERSION_PASSES_TD
#define POSENC_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

class Posenc_ToLinalgPass<string flag> : Pass<flag> {
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def ConvertPosencRopeToLinalgPass
    : Posenc_ToLinalgPass<"convert-posenc-rope-to-linalg"> {
  let summary = "Convert sincos and rotate on tensors to linalg";
  let description = [{
    `posenc.sincos` becomes a generic with two results, of the exact phase in
    integer arithmetic; `posenc.rotate` a generic over pairs with two results,
    which are the lanes of the pair. Ropes are decomposed first, by
    `posenc-decompose-rope`.
  }];
}

def ConvertPosencSinusoidalToLinalgPass
    : Posenc_ToLinalgPass<"convert-posenc-sinusoidal-to-linalg"> {
  let summary = "Convert sinusoidal on tensors to linalg";
  let description = [{
    A generic over pairs with two results, the sines and the cosines, inserted
    into the table in its order.
  }];
}

def ConvertPosencAttentionToLinalgPass
    : Posenc_ToLinalgPass<"convert-posenc-attention-to-linalg"> {
  let summary = "Convert tiles of attention on tensors to linalg";
  let description = [{
    `posenc.online_attention` becomes generics, of scores as (keys, rows), where
    heads and queries are rows: the products of keys and queries, summed in the
    type of the sums; scale, score region and mask in one; masks by place, where
    they take a key of the tile out; maxima; weights by `math.exp`; and the
    weighted values, which are a product of matrices if all values are finite.
    Biases by distance outside of the regions of attention become arithmetic. An
    attention is decomposed first, by `posenc-decompose-attention`.
  }];
  let options = [
    Option<"bf16Weights", "bf16-weights", "bool", /*default=*/"false",
           "Round the weights of values of bf16 to bf16">
  ];
}

#endif // POSENC_CONVERSION_PASSES_TD
