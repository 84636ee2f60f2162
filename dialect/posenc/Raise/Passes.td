//===- Passes.td - passes that recognize encodings ---------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_PASSES_TD
#define POSENC_RAISE_PASSES_TD

include "mlir/Pass/PassBase.td"

def PosencRaisePass : Pass<"posenc-raise"> {
  let summary = "Raise rotations, attention and sinusoidal tables to posenc";
  let description = [{
    Input: functions on tensors of `linalg`, `tensor` and `arith`, as exporters
    of frameworks write them. Output: `posenc.rotate` for rotary embeddings,
    `posenc.attention` for softmax attention, `posenc.kv_append` for writes to
    KV caches, and `posenc.sinusoidal` for tables of sines and cosines; the
    operations that they replace are erased if nothing else uses them.

    Nothing is matched by its spelling. A rotation is found by the value of each
    lane of the last dimension as a linear function of the lanes of another
    tensor: `x[i] * cos - x[p(i)] * sin` and `x[p(i)] * cos + x[i] * sin`, with
    equal factors for both lanes of a pair. So concatenated halves, rolled lanes,
    strided slices, stacked pairs, complex numbers and a `tensor.extract` in a
    `linalg.generic` are one case. Attention is found by the weights of a
    contraction, which are `exp(s - m)` divided by its sum over the keys, for any
    `m` that is constant along the keys, where `s` depends on another
    contraction. The operations between the two contractions become the regions
    `score` and `where`, or the operand `mask`. A further logit for each head that
    the sum contains and the contraction does not becomes the operand `sinks`.

    A cache is an argument of the function. If the function writes rows of tokens
    into two caches at the same positions and returns both, the writes become one
    `posenc.kv_append`, which writes in place where the caller passes one buffer
    for a cache and its result.

    A sinusoidal table is found by the lanes of its last dimension: sines and
    cosines of products of one position and a constant for each pair, in an order
    of `posenc.sinusoidal`, and a zero at the end or none. Its angles are those of
    the input, f32 products of positions and frequencies, or exact with
    `precision`.

    The results differ from those of the input by rounding: intermediate
    roundings to narrow types are left out, and a row without visible keys gives
    0 instead of NaN.

    With `precision`, `posenc.rotate` becomes `posenc.rope` where its tables are
    cosines and sines of integer positions and of frequencies that are constant:
    computed in the input, or folded to tables, which are compared with those of
    the frequencies in all rows. `hf_f32` rounds angles as the input does. With
    `exact` they are not rounded, which is another result: 2e-4 at position 4,095.
    Frequencies are given by their base if they agree with one, else by a list.
    Tables of other angles are kept, with a remark.

    Left alone, with a remark: rotations whose factors or signs do not agree,
    pairs that are neither halves nor neighbours, attention whose operands
    cannot be expressed, and sines and cosines with different factors or angles,
    with phases, or in other orders.

    ```
    %x0 = tensor.extract_slice %x[0, 0] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
    %x1 = tensor.extract_slice %x[0, 4] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
    %n = arith.negf %x1 : tensor<4x4xf32>
    %r = tensor.concat dim(1) %n, %x0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
    %a = arith.mulf %x, %cos : tensor<4x8xf32>
    %b = arith.mulf %r, %sin : tensor<4x8xf32>
    %y = arith.addf %a, %b : tensor<4x8xf32>
    ```
    becomes
    ```
    %y = posenc.rotate half full_tables ins(%x : tensor<4x8xf32>)
      tables(%cos, %sin : tensor<4x8xf32>) dims = [0] outs(%x : tensor<4x8xf32>)
    ```
  }];
  let options = [
    Option<"precision", "precision", "std::string", /*default=*/"\"tables\"",
           "angles: tables (those of the input), exact or hf_f32">
  ];
  let dependentDialects = [
    "::mlir::posenc::PosencDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::affine::AffineDialect"
  ];
}

#endif // POSENC_RAISE_PASSES_TD
