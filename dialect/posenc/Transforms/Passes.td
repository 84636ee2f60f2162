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

def PosencFoldConversionsPass : Pass<"posenc-fold-conversions"> {
  let summary = "Make dequantization a part of attention";
  let description = [{
    Where each of the keys and the values of a `posenc.attention` is the result
    of a `linalg.generic` that converts elements of i8, f8, f16 or bf16 to the
    type of the sums, the attention reads what is stored instead, and converts
    where it loads. Elements of i8 and f8 may be multiplied by a constant or by
    scales of f32, which are indexed by batch entry, head and token, or by some
    of these in this order: they become `key_scales` and `value_scales`.

    The last bits of results may change: attention multiplies scores by scales,
    not keys, and adds products of keys of 8 or 16 bits in another order. Left
    alone are conversions to other types, keys and values of which only one is
    converted, and keys that are normed over all heads of a token.

    ```mlir
    func.func @decode(%q: tensor<1x1x8x64xf32>, %k: tensor<1x2x?x64xi8>, %s: tensor<1x2x?xf32>, %e: tensor<1x2x?x64xf32>) -> tensor<1x1x8x64xf32> {
      %f = linalg.generic {indexing_maps = [affine_map<(b, h, k, d) -> (b, h, k, d)>, affine_map<(b, h, k, d) -> (b, h, k)>, affine_map<(b, h, k, d) -> (b, h, k, d)>],
          iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%k, %s : tensor<1x2x?x64xi8>, tensor<1x2x?xf32>) outs(%e : tensor<1x2x?x64xf32>) {
        ^bb0(%a: i8, %b: f32, %c: f32):
          %x = arith.sitofp %a : i8 to f32
          %y = arith.mulf %x, %b : f32
          linalg.yield %y : f32
      } -> tensor<1x2x?x64xf32>
      %r = posenc.attention key_layout = head_major ins(%q, %f, %f : tensor<1x1x8x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>) outs(%q : tensor<1x1x8x64xf32>)
      return %r : tensor<1x1x8x64xf32>
    }
    ```
    becomes
    ```mlir
    func.func @decode(%q: tensor<1x1x8x64xf32>, %k: tensor<1x2x?x64xi8>, %s: tensor<1x2x?xf32>, %e: tensor<1x2x?x64xf32>) -> tensor<1x1x8x64xf32> {
      %r = posenc.attention key_layout = head_major ins(%q, %k, %k : tensor<1x1x8x64xf32>, tensor<1x2x?x64xi8>, tensor<1x2x?x64xi8>)
        key_scales(%s : tensor<1x2x?xf32>) value_scales(%s : tensor<1x2x?xf32>) outs(%q : tensor<1x1x8x64xf32>)
      return %r : tensor<1x1x8x64xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def PosencFoldRotationsPass : Pass<"posenc-fold-rotations"> {
  let summary = "Make ropes a part of attention and kv_append";
  let description = [{
    A rope whose result is only read by one `posenc.attention` of f32 or f64, as
    its queries or keys, or by one `posenc.kv_append`, as its keys, becomes the
    `query_rotation`, `key_rotation` or `rotation` of that operation. Results
    have the same bits. Left alone are inverse ropes, scalar positions, positions
    of type `index`, rows that are normed afterwards, keys of attention that
    `convert-posenc-attention-to-vector` does not serve, and attention of f16 and
    bf16, which need not round what it has rotated.

    ```mlir
    func.func @append(%k: tensor<?x?x8x64xf32>, %v: tensor<?x?x8x64xf32>, %p: tensor<?x?xi64>, %n: tensor<?xi64>, %kc: tensor<?x?x8x64xf32>, %vc: tensor<?x?x8x64xf32>) -> (tensor<?x?x8x64xf32>, tensor<?x?x8x64xf32>) {
      %x = posenc.rope half #posenc.frequencies<dim = 64> ins(%k : tensor<?x?x8x64xf32>)
        positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%k : tensor<?x?x8x64xf32>)
      %r:2 = posenc.kv_append ins(%x, %v : tensor<?x?x8x64xf32>, tensor<?x?x8x64xf32>)
        lengths(%n : tensor<?xi64>) outs(%kc, %vc : tensor<?x?x8x64xf32>, tensor<?x?x8x64xf32>)
      return %r#0, %r#1 : tensor<?x?x8x64xf32>, tensor<?x?x8x64xf32>
    }
    ```
    becomes
    ```mlir
    func.func @append(%k: tensor<?x?x8x64xf32>, %v: tensor<?x?x8x64xf32>, %p: tensor<?x?xi64>, %n: tensor<?xi64>, %kc: tensor<?x?x8x64xf32>, %vc: tensor<?x?x8x64xf32>) -> (tensor<?x?x8x64xf32>, tensor<?x?x8x64xf32>) {
      %r:2 = posenc.kv_append rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 64>>
        ins(%k, %v : tensor<?x?x8x64xf32>, tensor<?x?x8x64xf32>) positions(%p : tensor<?x?xi64>)
        lengths(%n : tensor<?xi64>) outs(%kc, %vc : tensor<?x?x8x64xf32>, tensor<?x?x8x64xf32>)
      return %r#0, %r#1 : tensor<?x?x8x64xf32>, tensor<?x?x8x64xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::posenc::PosencDialect",
                           "::mlir::tensor::TensorDialect"];
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

def PosencExpandIndexCastsPass : Pass<"posenc-expand-index-casts"> {
  let summary = "Cast indices to narrow integers by way of i64";
  let description = [{
    `arith.index_cast` and `arith.index_castui` of an index to less than 64 bits
    become a cast to i64 and an `arith.trunci`. Upstream's canonicalizer takes
    `index_cast(index_cast(i) : i8) : index` for `i`, though it wraps; so this
    pass has to run before it, as it does in Posenc's pipelines. A module that
    was canonicalized before that has lost the casts already.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def PosencDecomposeSoftmaxPass : Pass<"posenc-decompose-softmax"> {
  let summary = "Split linalg.softmax on tensors into generics";
  let description = [{
    As `linalg.softmax` decomposes itself: maxima, exponentials, sums, quotients.
    That of f16 and bf16 is computed in f32, and its results are rounded once. A
    row of minus infinity only is NaN, as in PyTorch, JAX and ONNX; attention
    whose masks leave a row no keys is `posenc.attention`, where it is 0.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

class Posenc_DecomposeHeadsPass<string flag> : Pass<flag> {
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::posenc::PosencDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencDecomposeAttentionPass
    : Posenc_DecomposeHeadsPass<"posenc-decompose-attention"> {
  let summary = "Split attention on tensors into loops of tiles";
  let description = [{
    An `scf.forall` over batch entries, query heads and queries, in it an
    `scf.for` over tiles of keys, and in that one over groups of queries, of
    `posenc.online_attention`; norms and rotations, of queries before the loops
    and of keys in the first, are operations of their own; the division by the
    sums comes last. Tiles of keys that `causal` and the windows leave empty are
    not visited. Paged keys are gathered.

    A group has `rows` rows: query heads of one key head, and queries. A task
    has at most `groups` groups, and 128 KiB of queries. Groups and tiles of
    keys are copied to a constant size, with zeros where there is nothing.
  }];
  let options = [
    Option<"rowsPerGroup", "rows", "int64_t", /*default=*/"16",
           "Query heads times queries of a group">,
    Option<"groupsPerTask", "groups", "int64_t", /*default=*/"1",
           "Groups of queries that share each tile of keys">,
    Option<"keysPerTile", "keys", "int64_t", /*default=*/"32",
           "Keys of a tile">,
    Option<"exceptVectors", "except-vectors", "bool", /*default=*/"false",
           "Leave what convert-posenc-attention-to-vector converts">
  ];
}

def PosencDecomposeKvAppendPass
    : Posenc_DecomposeHeadsPass<"posenc-decompose-kv-append"> {
  let summary = "Split kv_append on tensors into a loop over new tokens";
  let description = [{
    An `scf.forall` over the new tokens, which inserts the rows of one into both
    caches, or rows of no token where its slot is negative; the norm and the
    rotation of keys are operations of their own.
  }];
}

#endif // POSENC_TRANSFORMS_PASSES_TD
