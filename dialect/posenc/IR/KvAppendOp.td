//===- KvAppendOp.td - new rows of caches ------------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_KVAPPENDOP_TD
#define POSENC_IR_KVAPPENDOP_TD

include "posenc/IR/AttentionOps.td"

def Posenc_KvAppendOp : Posenc_DestinationOp<"kv_append"> {
  let summary = "writes new keys and values into caches";
  let description = [{
    Writes each token's row of every key head into a slot of the caches, in the
    same slot of both; other rows stay. Keys are first normed with `norm` and
    then rotated at `positions`, as in `posenc.attention`; the result is rounded
    once to the type of the caches, which may be another one.

    New rows are `(batch, tokens, heads, dim)` with `layout = token_major`, the
    default, or `(batch, heads, tokens, dim)` with `head_major`; caches, with
    `cache_layout`, likewise. Slots are given by one of

    - `lengths`: the valid keys of each sequence, the new ones included, as
      `posenc.attention` takes them afterwards: token `t` of `T` goes to slot
      `lengths[b] - T + t` of sequence of the cache `b`. Without `positions` this is its
      position, too.
    - `slots`: `(batch, tokens)`, or `(tokens)` if the rows have no batch. Slot
      `s` is row `s mod n` of sequence of the cache `s / n`, with `n` the tokens of an
      sequence, so that caches may be pages.

    A negative slot is not written. A slot beyond the cache, and two rows for
    one slot, are undefined.

    ```mlir
    func.func @append(%k: tensor<?x?x8x128xf16>, %v: tensor<?x?x8x128xf16>, %n: tensor<?xi64>, %kc: tensor<?x8x?x128xf16>, %vc: tensor<?x8x?x128xf16>) -> (tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>) {
      %r:2 = posenc.kv_append cache_layout = head_major
        rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 128, base = 5.000000e+05>>
        ins(%k, %v : tensor<?x?x8x128xf16>, tensor<?x?x8x128xf16>) lengths(%n : tensor<?xi64>)
        outs(%kc, %vc : tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>)
      return %r#0, %r#1 : tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>
    }
    ```

    **Quantized caches** of `i8`, `f8E4M3FN` or `f8E5M2` have two more
    destinations, the scales of keys and of values: `(sequences or pages,
    heads, tokens)`, whatever the layout is. The scale of a row, that is of one
    token and head, is `max|x| / 127` for `i8`, else `max|x|` divided by the
    largest finite number of the type, 448 or 57344; all in f32, of the row
    after norm and rotation. The row is `x / scale`, rounded to nearest, ties to
    even, and held between plus and minus that number. A row of zeros, or of
    numbers so small that their scale is 0, has the scale 0 and zeros. A row
    with an infinity or NaN has the scale infinity or NaN and zeros, so that
    who reads it gets NaN in every channel.

    ```mlir
    func.func @append_quantized(%k: tensor<?x?x8x128xbf16>, %v: tensor<?x?x8x128xbf16>, %n: tensor<?xi64>, %kc: tensor<?x8x?x128xi8>, %vc: tensor<?x8x?x128xi8>, %ks: tensor<?x8x?xf32>, %vs: tensor<?x8x?xf32>) -> (tensor<?x8x?x128xi8>, tensor<?x8x?x128xi8>, tensor<?x8x?xf32>, tensor<?x8x?xf32>) {
      %r:4 = posenc.kv_append cache_layout = head_major
        ins(%k, %v : tensor<?x?x8x128xbf16>, tensor<?x?x8x128xbf16>) lengths(%n : tensor<?xi64>)
        outs(%kc, %vc, %ks, %vs : tensor<?x8x?x128xi8>, tensor<?x8x?x128xi8>, tensor<?x8x?xf32>, tensor<?x8x?xf32>)
      return %r#0, %r#1, %r#2, %r#3 : tensor<?x8x?x128xi8>, tensor<?x8x?x128xi8>, tensor<?x8x?xf32>, tensor<?x8x?xf32>
    }
    ```

    Constraints:
    - (kv_append_c1) there are two destinations, or four if the caches are
      quantized.
    - (kv_append_c2) new rows and `norm` have one element type, and both caches
      have one, not wider than f32 unless new rows are f64.
    - (kv_append_c3) caches have rank 4, new rows have rank 4, or 3 with
      `slots`; all have a static last dimension between 1 and 65536.
    - (kv_append_c4) static sizes agree.
    - (kv_append_c5) there are either `lengths`, of rank 1, or `slots`, of the
      rank of the new rows less 2.
    - (kv_append_c6) the rotary window lies within the last dimension of the
      keys.
    - (kv_append_c7) positions come with a rotation; they have the shape of
      `slots`, or `(batch, tokens)` with `lengths`, after a first dimension of
      axes if the rotation has `axes`. A rotation with `axes` or with `slots`
      needs positions.
    - (kv_append_c8) `norm` has rank 1; `norm_eps` is there if it is, and is
      finite and not negative.
    - (kv_append_c9) operands are all tensors or all memrefs, and there is a
      result for each tensor destination, of its type.
    - (kv_append_c10) scales are tensors of f32 of rank 3.
  }];
  let arguments = (ins
    Posenc_Floats:$key,
    Posenc_Floats:$value,
    Optional<Posenc_Indices>:$positions,
    Optional<Posenc_Floats>:$norm,
    Optional<Posenc_Indices>:$lengths,
    Optional<Posenc_Indices>:$slots,
    Variadic<Posenc_CacheElements>:$inits,
    DefaultValuedAttr<Posenc_HeadLayoutAttr, "::mlir::posenc::HeadLayout::TokenMajor">:$layout,
    DefaultValuedAttr<Posenc_HeadLayoutAttr, "::mlir::posenc::HeadLayout::TokenMajor">:$cache_layout,
    OptionalAttr<Posenc_RotationAttr>:$rotation,
    OptionalAttr<F64Attr>:$norm_eps);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    oilist(
      `layout` `=` custom<HeadLayout>($layout)
      | `cache_layout` `=` custom<HeadLayout>($cache_layout)
      | `norm_eps` `=` custom<Real>($norm_eps)
      | `rotation` `=` custom<Rotation>($rotation))
    `ins` `(` $key `,` $value `:` type($key) `,` type($value) `)`
    oilist(
      `positions` `(` $positions `:` type($positions) `)`
      | `norm` `(` $norm `:` type($norm) `)`
      | `lengths` `(` $lengths `:` type($lengths) `)`
      | `slots` `(` $slots `:` type($slots) `)`)
    custom<Destinations>($inits, type($inits), type($results)) attr-dict
  }];
  let extraClassDeclaration = baseDeclaration # [{
    /// Overrides the interface's.
    bool readsDestinations() { return true; }
    /// Whether new rows have no batch.
    bool arePackedRows();
    /// Whether the caches are of i8 or f8, and have scales.
    bool isQuantized();
    /// The dimensions of heads and of tokens, in the new rows and the caches.
    unsigned getHeadDim();
    unsigned getTokenDim();
    unsigned getCacheHeadDim();
    unsigned getCacheTokenDim();
  }];
}

#endif // POSENC_IR_KVAPPENDOP_TD
