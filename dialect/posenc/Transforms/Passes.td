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
  let summary = "Fuse ropes with equal positions";
  let description = [{
    Input: `posenc.rotate` by tables of `posenc.sincos`, and ropes of one block
    with the same frequencies and positions. Output: one `posenc.rope` of several
    tensors, so the cos and sin of a position are computed once for all heads.
    Left alone: tables of other types than a rope uses, and ropes that depend on
    each other.

    ```
    %q1 = posenc.rope half #f ins(%q : tensor<?x8x64xf32>) positions(%p : tensor<?xi64>) ...
    %k1 = posenc.rope half #f ins(%k : tensor<?x2x64xf32>) positions(%p : tensor<?xi64>) ...
    ```
    becomes
    ```
    %r:2 = posenc.rope half #f ins(%q, %k : tensor<?x8x64xf32>, tensor<?x2x64xf32>)
      positions(%p : tensor<?xi64>) ...
    ```
  }];
  let dependentDialects = ["::mlir::posenc::PosencDialect"];
}

def PosencTabulateRopesPass : Pass<"posenc-tabulate-ropes"> {
  let summary = "Rewrite ropes that need tables to rotations";
  let description = [{
    Input: `posenc.rope` on tensors. Output: a rope with a `scale` becomes a
    `posenc.rotate` by tables that have its factors. A rope of a rope that
    canonicalization does not compose, as frequencies or axes differ, becomes one
    rotation by the sum of the angles:
    `cos(a+b) = cos(a)cos(b) - sin(a)sin(b)` and `sin(a+b) = sin(a)cos(b) +
    cos(a)sin(b)`. So cached keys move from one scaling of the frequencies to
    another, and two axes with their own frequencies for each pair (RoPE-Mixed) are
    two ropes, with a single pass over the rows in both cases. Left alone are other
    ropes, and ropes of ropes with scalar positions, in different blocks, with
    other users of the inner rope, or with fewer than `min-rows` rows for each
    position, for which two passes are faster. The tables are in the workspace of
    the function, with `8*d/2` bytes for each position, twice for two ropes.

    Tables are f32, or f64 for f64 rows; those of a sum are off by at most 3 units
    in the last place of the factor.

    ```
    %a = posenc.rope inverse half #f ins(%x : tensor<?x8x64xf32>) positions(%p : tensor<?xi64>) ...
    %b = posenc.rope half #g ins(%a : tensor<?x8x64xf32>) positions(%q : tensor<?xi64>) ...
    ```
    becomes
    ```
    %s:2 = posenc.sincos #f positions(%p : tensor<?xi64>) ...
    %t:2 = posenc.sincos #g positions(%q : tensor<?xi64>) ...
    %u:2 = linalg.generic ... ins(%s#0, %s#1 : ...) outs(%t#0, %t#1 : ...) { ... }
    %b = posenc.rotate half ins(%x : tensor<?x8x64xf32>) tables(%u#0, %u#1 : ...) ...
    ```
  }];
  let options = [
    Option<"minRows", "min-rows", "int64_t", /*default=*/"8",
           "rows for each position from which two ropes are composed">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::posenc::PosencDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencFoldConversionsPass : Pass<"posenc-fold-conversions"> {
  let summary = "Fold dequantization into attention";
  let description = [{
    Input: a `posenc.attention` whose keys and values are results of
    `linalg.generic`s that convert i8, f8, f16 or bf16 elements to the accumulator
    type. Output: the attention reads the stored elements and converts them when
    it loads them. i8 and f8 elements may be multiplied by a constant or by f32
    scales, which are indexed by sequence, head and token, or by some of these in
    this order; the scales become `key_scales` and `value_scales`.

    The last bits of results may change: attention multiplies scores instead of
    keys by the scales, and adds products of 8-bit or 16-bit keys in another
    order. Left alone: conversions to other types, attention with only one of keys
    and values converted, and keys that are normed over all heads of a token.

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

def PosencHeadsToTokensPass : Pass<"posenc-heads-to-tokens"> {
  let summary = "Make the query heads of a key head tokens, where there is one token";
  let description = [{
    Input: `posenc.attention` on tensors with one token for each sequence and more
    than 32 query heads for each key head, as in absorbed latent attention
    (DeepSeek). Output: the same attention with a head for each key head and a
    token for each of its query heads, between reshapes that move no element. Left
    alone: attention whose scores depend on the query head (regions, masks, sinks),
    on the query's position (windows, rotations), or that norms queries or has two
    results.

    ```mlir
    func.func @decode(%q: tensor<?x1x128x64xf32>, %k: tensor<?x?x1x64xf32>, %o: tensor<?x1x128x64xf32>) -> tensor<?x1x128x64xf32> {
      %r = posenc.attention ins(%q, %k, %k : tensor<?x1x128x64xf32>, tensor<?x?x1x64xf32>, tensor<?x?x1x64xf32>) outs(%o : tensor<?x1x128x64xf32>)
      return %r : tensor<?x1x128x64xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def PosencFoldMasksPass : Pass<"posenc-fold-masks"> {
  let summary = "Fold masks by relative position into causal and windows";
  let description = [{
    Input: `posenc.attention` with a region `where`. Output: the conditions of its
    conjunction that limit `i - j` by constants, for the query position `i` and
    the key index `j`, become `causal`, `window_left` and `window_right`, narrowed
    if they were present, and conditions that always hold vanish. A region without
    conditions is erased, so `where` with `j <= i` becomes the same IR as
    `causal`.

    Recognized are signed and unsigned comparisons and absolute values of sums,
    differences and multiples of `i`, `j` and constants, in `index` or in integers
    of at least 32 bits. Positions are assumed to fit in 32 bits if they are cast
    to integers narrower than 64 bits; a condition whose arithmetic could wrap is
    left alone. Also left alone: alternatives (`arith.ori`), limits that no window
    expresses (`j < i` and other windows that do not contain `i`), and limits that
    are not constant. Lowering evaluates those conditions for a tile of pairs, and
    skips tiles that they mask.

    ```mlir
    func.func @attention(%q: tensor<1x?x8x64xf32>, %k: tensor<1x?x8x64xf32>, %o: tensor<1x?x8x64xf32>) -> tensor<1x?x8x64xf32> {
      %window = arith.constant 128 : index
      %r = posenc.attention ins(%q, %k, %k : tensor<1x?x8x64xf32>, tensor<1x?x8x64xf32>, tensor<1x?x8x64xf32>) outs(%o : tensor<1x?x8x64xf32>)
        where(%b, %h, %i, %j) {
          %before = arith.cmpi sle, %j, %i : index
          %relative = arith.subi %i, %j : index
          %near = arith.cmpi slt, %relative, %window : index
          %both = arith.andi %before, %near : i1
          posenc.yield %both : i1
        }
      return %r : tensor<1x?x8x64xf32>
    }
    ```
    becomes
    ```mlir
    func.func @attention(%q: tensor<1x?x8x64xf32>, %k: tensor<1x?x8x64xf32>, %o: tensor<1x?x8x64xf32>) -> tensor<1x?x8x64xf32> {
      %r = posenc.attention causal window_left = 127 ins(%q, %k, %k : tensor<1x?x8x64xf32>, tensor<1x?x8x64xf32>, tensor<1x?x8x64xf32>) outs(%o : tensor<1x?x8x64xf32>)
      return %r : tensor<1x?x8x64xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def PosencFoldRotationsPass : Pass<"posenc-fold-rotations"> {
  let summary = "Fold ropes into attention and kv_append";
  let description = [{
    Input: a rope whose only user is a `posenc.attention` of f32 or f64 that reads
    it as queries or keys, or a `posenc.kv_append` that reads it as keys. Output:
    the rope becomes the `query_rotation`, `key_rotation` or `rotation` of that
    operation. Positions without a batch dimension are broadcast. Results have the
    same bits. Left alone: inverse ropes, scalar
    positions, positions of type `index`, rows that are normed afterwards, keys of
    attention that `convert-posenc-attention-to-vector` does not support, and
    attention on f16 and bf16, because a rope rounds its results and attention
    does not round rotated rows.

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
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencDecomposeRopePass : Pass<"posenc-decompose-rope"> {
  let summary = "Decompose ropes on tensors into sincos and rotate";
  let description = [{
    Input: `posenc.rope` on tensors. Output: `posenc.sincos` and `posenc.rotate`,
    since `rope(x, p) = rotate(x, sincos(p))`, with one table for all tensors of
    the rope. For an inverse rope with an attention factor `att` other than 1, the
    tables need the factor `1/att`, which frequencies cannot express, so a
    `linalg.generic` multiplies them by `1/att^2`. It also multiplies the tables of
    any rope with a `scale` by the factors of the positions. Left alone: ropes on
    memrefs.

    ```
    %r = posenc.rope half #f ins(%x : tensor<?x8x64xf32>) positions(%p : tensor<?xi64>) ...
    ```
    becomes
    ```
    %t:2 = posenc.sincos #f positions(%p : tensor<?xi64>) outs(... : tensor<?x32xf32>, ...)
    %r = posenc.rotate half ins(%x : tensor<?x8x64xf32>) tables(%t#0, %t#1 : ...) ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::posenc::PosencDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencDecomposeConvertPairingPass
    : Pass<"posenc-decompose-convert-pairing"> {
  let summary = "Decompose convert_pairing into a transposition";
  let description = [{
    Input: `posenc.convert_pairing`. Output: the lanes of the window as a matrix,
    of 2 rows for the pairing `half` and of 2 columns for `interleaved`, which
    `linalg.transpose` transposes.

    ```mlir
    func.func @convert(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
      %r = posenc.convert_pairing half to interleaved dim = 64 %x : tensor<?x64xf32>
      return %r : tensor<?x64xf32>
    }
    ```
    becomes
    ```
    %matrix = tensor.expand_shape %x [[0], [1, 2]] ... : tensor<?x64xf32> into tensor<?x2x32xf32>
    %t = linalg.transpose ins(%matrix : tensor<?x2x32xf32>) ... permutation = [0, 2, 1]
    %r = tensor.collapse_shape %t [[0], [1, 2]] : tensor<?x32x2xf32> into tensor<?x64xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencExpandIndexCastsPass : Pass<"posenc-expand-index-casts"> {
  let summary = "Cast indices to narrow integers by way of i64";
  let description = [{
    Input: `arith.index_cast` and `arith.index_castui` of an index to an integer
    of fewer than 64 bits. Output: a cast to i64 and an `arith.trunci`. Upstream's
    canonicalizer folds `index_cast(index_cast(i) : i8) : index` to `i`, although
    the first cast truncates, so Posenc's pipelines run this pass before it. In a
    module that was canonicalized before, such casts are already lost. Left alone:
    all other casts.

    ```
    %r = arith.index_cast %i : index to i32
    ```
    becomes
    ```
    %0 = arith.index_cast %i : index to i64
    %r = arith.trunci %0 : i64 to i32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def PosencDecomposeSoftmaxPass : Pass<"posenc-decompose-softmax"> {
  let summary = "Decompose linalg.softmax on tensors into linalg.generic";
  let description = [{
    Input: `linalg.softmax` on tensors. Output, by upstream's decomposition: four
    operations, which compute the maximum of a row, the exponentials, their sum
    and the quotients. Softmax of f16 and bf16 is computed in f32 and rounded
    once. A row of minus infinity gives NaN, as in PyTorch, JAX and ONNX;
    `posenc.attention` instead gives 0 for a row without keys. Errors: softmax on
    memrefs or on elements that are not floats. Left alone: all other operations.

    ```
    %r = linalg.softmax dimension(1) ins(%x : tensor<8x64xf32>) ...
    ```
    becomes
    ```
    %m = linalg.generic ins(%x : ...) outs(... : tensor<8xf32>) { arith.maxnumf }
    %e = linalg.generic ins(%x, %m : ...) { arith.subf, math.exp }
    %s = linalg.generic ins(%e : ...) outs(... : tensor<8xf32>) { arith.addf }
    %r = linalg.generic ins(%e, %s : ...) { arith.divf }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencSimplifyReductionsPass
    : Pass<"posenc-simplify-reductions", "func::FuncOp"> {
  let summary = "Drop unit dimensions and unused results of reductions";
  let description = [{
    Input: `linalg.generic` on tensors, as other frameworks write reductions.
    Output: operations that the tiling passes vectorize and fuse.

    - Dimensions of size 1 that an operation indexes by the constant 0 are
      dropped from its operands, and become `tensor.expand_shape` of its results.
      So are those of elementwise operations on reductions whose dimensions
      were kept.
    - A result of a reduction that nothing uses, such as the index of a maximum,
      is dropped, unless the other results depend on it.
    - A select that is the maximum or minimum of an element and the result so
      far becomes one operation, whose result for NaN is the same:
      `arith.maxnumf` if a NaN is skipped, for which the initial value must be a
      number, and `arith.maximumf` if a NaN is kept. The sign of a zero may
      differ.

    Left alone: contractions, other dimensions of size 1, and selects whose
    result depends on where in the row a NaN is.

    ```
    %s = linalg.generic {indexing_maps = [(i, j) -> (i, j), (i, j) -> (i, 0)],
                         iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xf32>) outs(%z : tensor<8x1xf32>) { arith.addf }
    ```
    becomes
    ```
    %r = linalg.generic {indexing_maps = [(i, j) -> (i, j), (i, j) -> (i)],
                         iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xf32>) outs(%y : tensor<8xf32>) { arith.addf }
    %s = tensor.expand_shape %r [[0, 1]] : tensor<8xf32> into tensor<8x1xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
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
  let summary = "Decompose attention on tensors into loops over tiles";
  let description = [{
    Input: `posenc.attention` on tensors. Output: an `scf.forall` over the batch,
    query heads and queries, an `scf.for` over tiles of keys inside it, and an
    `scf.for` over register tiles of queries inside that. Its body is a
    `posenc.online_attention` that updates the running max, the running sum and
    the accumulator. Norms and rotations become separate operations: those of
    queries before the loop over keys, those of keys inside it. The division by
    the running sum comes last. Tiles of keys that `causal`, the windows or
    `where` mask completely are skipped, and `where` is not evaluated in tiles for
    which it is known to be true: an interval analysis of the region runs before
    each tile. With `bound-elements` it loads the elements of tensors that the
    region reads; entry points of the result are then stricter about the sizes of
    these tensors. Paged keys are gathered. Left alone: attention on memrefs.

    A register tile has `rows` rows; a row is a query of one of the query heads of
    one key head, or of one head with `one-head`. A task has at most `groups`
    register tiles, and at most 128 KiB of queries. Register tiles and tiles of
    keys are padded with zeros to a static size.

    Tiles of keys begin at the first key that a query of the task may see, and are
    as short as a static number of keys. With `aligned-key-tiles` they begin at
    multiples of `keys` and have that size, so the order in which a query adds its
    keys does not depend on other queries or on the number of keys.

    ```
    %r = posenc.attention ins(%q, %k, %v : ...) outs(%o : ...)
    ```
    becomes
    ```
    %r = scf.forall (%batch, %head, %query) in ... {
      %state:3 = scf.for %key = ... {
        posenc.online_attention ins(%query_tile, %key_tile, %value_tile : ...)
          outs(%acc, %max, %sum : ...)
      }
      ... divide %state#0 by %state#2 ...
    }
    ```
  }];
  let options = [
    Option<"rowsPerQueryTile", "rows", "int64_t", /*default=*/"16",
           "Rows of a register tile: query heads times queries">,
    Option<"queryTilesPerTask", "groups", "int64_t", /*default=*/"1",
           "Register tiles of queries that share each tile of keys">,
    Option<"keysPerTile", "keys", "int64_t", /*default=*/"32",
           "Keys of a tile">,
    Option<"exceptVectors", "except-vectors", "bool", /*default=*/"false",
           "Leave alone attention that convert-posenc-attention-to-vector supports">,
    Option<"boundsElements", "bound-elements", "bool", /*default=*/"false",
           "Skip tiles by the tensor elements that a mask reads, too">,
    Option<"alignedKeyTiles", "aligned-key-tiles", "bool", /*default=*/"false",
           "Begin tiles of keys at multiples of their size">,
    Option<"oneHeadPerTile", "one-head", "bool", /*default=*/"false",
           "Do not combine query heads of a key head in a register tile">
  ];
}

def PosencDecomposeKvAppendPass
    : Posenc_DecomposeHeadsPass<"posenc-decompose-kv-append"> {
  let summary = "Decompose kv_append on tensors into a loop over new tokens";
  let description = [{
    Input: `posenc.kv_append` on tensors. Output: an `scf.forall` over the new
    tokens that inserts the rows of one token into both caches. A token with a
    negative slot is not inserted. The norm and the rotation of keys become
    separate operations. Left alone: kv_append on memrefs.

    ```
    %r:2 = posenc.kv_append ins(%k, %v : ...) lengths(%n : ...) outs(%kc, %vc : ...)
    ```
    becomes
    ```
    %r:2 = scf.forall (%sequence, %token) in ... shared_outs(%a = %kc, %b = %vc) {
      ... rows of the token ...
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %key_rows into %a[...]
        tensor.parallel_insert_slice %value_rows into %b[...]
      }
    }
    ```
  }];
}

def PosencMergeEqualOperationsPass
    : InterfacePass<"posenc-merge-equal-operations", "::mlir::FunctionOpInterface"> {
  let summary = "Keep one operation of those that compute the same";
  let description = [{
    Input: functions on tensors. Output: of operations that have equal operands,
    attributes and regions, the first one whose results the others may use instead;
    and no operations whose results have no uses. This is upstream's `cse` with a hash
    of the regions: the loops of a function often have equal operands, and `cse` compares
    each such loop with all others, which takes time with the square of their number.
    Left alone: operations that read or write memory, and equal operations in different
    blocks of one region.

    ```
    %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) { ... uses %w0 ... }
    %1 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) { ... uses %w1 ... }
    %2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) { ... uses %w0 ... }
    ```
    becomes
    ```
    %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) { ... uses %w0 ... }
    %1 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) { ... uses %w1 ... }
    // users of %2 use %0
    ```
  }];
}

#endif // POSENC_TRANSFORMS_PASSES_TD
