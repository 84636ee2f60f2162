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
    Input: `posenc.sincos` and `posenc.rotate` on tensors. Output: a sincos becomes
    a `linalg.generic` with two results, which computes the exact phase in integer
    arithmetic. A rotate becomes a `linalg.generic` over pairs, whose two results
    are the lanes of the pairs, and insertions into the tensor. Left alone: ropes,
    which `posenc-decompose-rope` decomposes first.

    ```
    %t:2 = posenc.sincos #f positions(%p : tensor<?xi64>) outs(...)
    %r = posenc.rotate half ins(%x : ...) tables(%t#0, %t#1 : ...) dims = [0] outs(...)
    ```
    becomes
    ```
    %t:2 = linalg.generic ins(%p : tensor<?xi64>) outs(... : tensor<?x32xf32>, ...) { ... }
    %l:2 = linalg.generic ins(%first, %second, %t#0, %t#1 : ...) outs(...) {
      ... linalg.yield x * c - y * s, x * s + y * c
    }
    %0 = tensor.insert_slice %l#0 into ...
    %r = tensor.insert_slice %l#1 into %0 ...
    ```
  }];
  let options = [
    Option<"onlyFullTables", "only-full-tables", "bool", "false",
      "Convert only rotations with full_tables, which kernels do not have">
  ];
}

def ConvertPosencSinusoidalToLinalgPass
    : Posenc_ToLinalgPass<"convert-posenc-sinusoidal-to-linalg"> {
  let summary = "Convert sinusoidal on tensors to linalg";
  let description = [{
    Input: `posenc.sinusoidal` on tensors. Output: a `linalg.generic` over pairs
    with two results, the sines and the cosines, which are inserted into the
    table in its order. Left alone: all other operations.

    ```
    %r = posenc.sinusoidal sin_cos #f positions(%p : tensor<?xi64>) outs(... : tensor<?x64xf32>)
    ```
    becomes
    ```
    %t:2 = linalg.generic ins(%p : tensor<?xi64>) outs(... : tensor<?x32xf32>, ...) { ... }
    %0 = tensor.insert_slice %t#0 into ... [0, 0] [%n, 32] [1, 1]
    %r = tensor.insert_slice %t#1 into %0[0, 32] [%n, 32] [1, 1]
    ```
  }];
}

def ConvertPosencTurnsToLinalgPass
    : Posenc_ToLinalgPass<"convert-posenc-turns-to-linalg"> {
  let summary = "Convert frequencies that are known at run time to linalg";
  let description = [{
    Input: `posenc.turns`. Output: a `linalg.generic` over pairs with two results.
    For longrope it selects one of two constant lists; for dynamic NTK scaling and
    for given values it computes the turns in double-double arithmetic. Left
    alone: all other operations.

    ```
    %high, %low = posenc.turns values(%f : tensor<32xf32>)
    ```
    becomes
    ```
    %r:2 = linalg.generic ins(%f : tensor<32xf32>) outs(... : tensor<32xi64>, tensor<32xi64>) { ... }
    ```
  }];
}

def ConvertPosencAttentionToLinalgPass
    : Posenc_ToLinalgPass<"convert-posenc-attention-to-linalg"> {
  let summary = "Convert tiles of attention on tensors to linalg";
  let description = [{
    Input: `posenc.online_attention` on tensors, and `posenc.alibi` and
    `posenc.t5_bucket` outside of the regions of attention. Output:
    `linalg.generic`s on scores of shape (keys, rows), where a row is a head and
    query: the product of keys and queries in the accumulator type; one operation
    for scale, score region, mask operand and mask region; position masks, if they
    mask a key of the tile; the running max; weights by `math.exp`; and the product
    of weights and values, which is a matrix product if all values are finite.
    Biases become arith operations. Left alone: `posenc.attention`, which
    `posenc-decompose-attention` decomposes first.

    ```
    %r:3 = posenc.online_attention ins(%q, %k, %v : ...) outs(%acc, %max, %sum : ...)
    ```
    becomes
    ```
    %s = linalg.generic ins(%k, %q : ...) { arith.mulf, arith.addf }
    %m = linalg.generic ins(%s : ...) outs(%max : ...) { arith.maximumf }
    %w = linalg.generic ins(%s, %m : ...) { arith.subf, math.exp }
    %l = linalg.generic ins(%w : ...) outs(%sum : ...) { arith.addf }
    %a = linalg.generic ins(%w, %v : ...) outs(%acc : ...) { arith.mulf, arith.addf }
    ```
  }];
  let options = [
    Option<"bf16Weights", "bf16-weights", "bool", /*default=*/"false",
           "Round the weights to bf16 if queries and values are bf16">
  ];
}

#endif // POSENC_CONVERSION_PASSES_TD
