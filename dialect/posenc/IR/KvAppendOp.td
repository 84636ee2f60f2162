//===- KvAppendOp.td - writes to KV caches -----------------*- tablegen -*-===//
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
  let summary = "writes new keys and values into a KV cache";
  let description = [{
    Writes each token's row of every key head into a slot of the key cache and
    the same slot of the value cache; all other rows are unchanged. Keys are
    first normed with `norm` (to whose weights `norm_offset` is added) and then
    rotated at `positions`, as in `posenc.attention`; the result is rounded once to the element type of the
    caches, which may differ from that of the new rows.

    New rows are `(batch, tokens, heads, dim)` with `layout = token_major`, the
    default, or `(batch, heads, tokens, dim)` with `head_major`. Caches have the
    same shapes, selected by `cache_layout`. Exactly one of these operands gives
    the slots:

    - `lengths`: the number of valid keys of each sequence, including the new
      ones, as `posenc.attention` takes it afterwards. Token `t` of `T` goes to
      slot `lengths[b] - T + t` of sequence `b` of the cache. Without
      `positions`, this slot is also the token's position.
    - `slots`: `(batch, tokens)`, or `(tokens)` if the rows have no batch
      dimension. Slot `s` is row `s mod n` of sequence (or page) `s / n` of the
      cache, where `n` is the number of tokens of a sequence of the cache.

    `turns` has the frequencies of the rotation if they are computed at run time
    by `posenc.turns`, as in `posenc.rope`.

    A token with a negative slot is not written. Behaviour is undefined for a
    slot beyond the end of the cache, and for two rows with the same slot.

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
    heads, tokens)` for either layout. A row (one token and head) has one scale:
    `max|x| / 127` for `i8`, otherwise `max|x|` divided by the largest finite
    number of the type, 448 or 57344. It is computed in f32 from the row after
    norm and rotation. The stored row is `x / scale`, rounded to nearest, ties to
    even, and clamped to plus and minus that number. A row of zeros, or of
    numbers so small that the scale is 0, has the scale 0 and elements 0. A row
    with an infinity or NaN has an infinite or NaN scale and elements 0, so
    readers get NaN in every channel.

    ```mlir
    func.func @append_quantized(%k: tensor<?x?x8x128xbf16>, %v: tensor<?x?x8x128xbf16>, %n: tensor<?xi64>, %kc: tensor<?x8x?x128xi8>, %vc: tensor<?x8x?x128xi8>, %ks: tensor<?x8x?xf32>, %vs: tensor<?x8x?xf32>) -> (tensor<?x8x?x128xi8>, tensor<?x8x?x128xi8>, tensor<?x8x?xf32>, tensor<?x8x?xf32>) {
      %r:4 = posenc.kv_append cache_layout = head_major
        ins(%k, %v : tensor<?x?x8x128xbf16>, tensor<?x?x8x128xbf16>) lengths(%n : tensor<?xi64>)
        outs(%kc, %vc, %ks, %vs : tensor<?x8x?x128xi8>, tensor<?x8x?x128xi8>, tensor<?x8x?xf32>, tensor<?x8x?xf32>)
      return %r#0, %r#1, %r#2, %r#3 : tensor<?x8x?x128xi8>, tensor<?x8x?x128xi8>, tensor<?x8x?xf32>, tensor<?x8x?xf32>
    }
    ```

    **Given scales.** With `key_scales` and `value_scales`, quantized caches have
    two destinations only. There is one scale for each head, or one for all
    heads, which all tokens of the cache share, so that `posenc.attention` takes
    the same operands afterwards. The stored element is `x / scale`, computed in
    f32, rounded to nearest, ties to even, and clamped to plus and minus the
    largest number; NaN is stored as NaN in f8 and as 0 in `i8`.

    ```mlir
    func.func @append_scaled(%k: tensor<?x8x128xbf16>, %v: tensor<?x8x128xbf16>, %s: tensor<?xi64>, %ks: tensor<1x1x1xf32>, %vs: tensor<1x1x1xf32>, %kc: tensor<?x8x16x128xf8E4M3FN>, %vc: tensor<?x8x16x128xf8E4M3FN>) -> (tensor<?x8x16x128xf8E4M3FN>, tensor<?x8x16x128xf8E4M3FN>) {
      %r:2 = posenc.kv_append cache_layout = head_major
        ins(%k, %v : tensor<?x8x128xbf16>, tensor<?x8x128xbf16>) slots(%s : tensor<?xi64>)
        key_scales(%ks : tensor<1x1x1xf32>) value_scales(%vs : tensor<1x1x1xf32>)
        outs(%kc, %vc : tensor<?x8x16x128xf8E4M3FN>, tensor<?x8x16x128xf8E4M3FN>)
      return %r#0, %r#1 : tensor<?x8x16x128xf8E4M3FN>, tensor<?x8x16x128xf8E4M3FN>
    }
    ```

    Constraints:
    - (kv_append_c1) there are two destinations, or four if the caches are
      quantized and scales are not given.
    - (kv_append_c2) new rows and `norm` have the same element type; both caches
      have the same element type, not wider than f32 unless new rows are f64.
    - (kv_append_c3) caches have rank 4, new rows have rank 4, or 3 with
      `slots`; all have a static last dimension between 1 and 65536.
    - (kv_append_c4) static sizes agree.
    - (kv_append_c5) there is either `lengths`, of rank 1, or `slots`, whose rank
      is that of the new rows minus 2.
    - (kv_append_c6) the rotary window lies within the last dimension of the
      keys.
    - (kv_append_c7) `positions` requires a rotation. Positions have the shape of
      `slots`, or `(batch, tokens)` with `lengths`, preceded by a dimension of
      axes if the rotation has `axes`. A rotation with `axes` or with `slots`
      requires `positions`.
    - (kv_append_c8) `norm` has rank 1; `norm_eps` is present if and only if
      `norm` is, and is finite and not negative; `norm_offset` is present only if
      `norm` is, and is finite.
    - (kv_append_c9) operands are all tensors or all memrefs, and there is a
      result for each tensor destination, of its type.
    - (kv_append_c10) scales are tensors of f32 of rank 3.
    - (kv_append_c11) `turns` has two lists of one element for each pair of the
      rotation, or none; frequencies that depend on the length require them. With
      `turns`, positions are integers and angles are not rounded.
    - (kv_append_c12) `key_scales` and `value_scales` are both present or both
      absent, and require quantized caches; they have rank 3, a static size of 1
      in the first and last dimension, and one scale for each head or one scale.
  }];
  let arguments = (ins
    Posenc_Floats:$key,
    Posenc_Floats:$value,
    Optional<Posenc_TokenPositions>:$positions,
    Optional<Posenc_Floats>:$norm,
    Optional<Posenc_Indices>:$lengths,
    Optional<Posenc_Indices>:$slots,
    Variadic<Posenc_Turns>:$turns,
    Optional<Posenc_CacheScales>:$key_scales,
    Optional<Posenc_CacheScales>:$value_scales,
    Variadic<Posenc_CacheElements>:$inits,
    DefaultValuedAttr<Posenc_HeadLayoutAttr, "::mlir::posenc::HeadLayout::TokenMajor">:$layout,
    DefaultValuedAttr<Posenc_HeadLayoutAttr, "::mlir::posenc::HeadLayout::TokenMajor">:$cache_layout,
    OptionalAttr<Posenc_RotationAttr>:$rotation,
    OptionalAttr<F64Attr>:$norm_eps,
    OptionalAttr<F64Attr>:$norm_offset);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    oilist(
      `layout` `=` custom<HeadLayout>($layout)
      | `cache_layout` `=` custom<HeadLayout>($cache_layout)
      | `norm_eps` `=` custom<Real>($norm_eps)
      | `norm_offset` `=` custom<Real>($norm_offset)
      | `rotation` `=` custom<Rotation>($rotation))
    `ins` `(` $key `,` $value `:` type($key) `,` type($value) `)`
    oilist(
      `positions` `(` $positions `:` type($positions) `)`
      | `norm` `(` $norm `:` type($norm) `)`
      | `lengths` `(` $lengths `:` type($lengths) `)`
      | `slots` `(` $slots `:` type($slots) `)`
      | `turns` `(` $turns `:` type($turns) `)`
      | `key_scales` `(` $key_scales `:` type($key_scales) `)`
      | `value_scales` `(` $value_scales `:` type($value_scales) `)`)
    custom<Destinations>($inits, type($inits), type($results)) attr-dict
  }];
  let extraClassDeclaration = baseDeclaration # [{
    /// Overrides the method of PositionalOpInterface.
    bool readsDestinations() { return true; }
    /// Whether new rows have no batch dimension.
    bool hasRaggedRows();
    /// Returns the number that is added to the weights of the norm, 0 if
    /// `norm_offset` is absent.
    double getNormWeightOffset();
    /// Whether the caches are i8 or f8, and have scales.
    bool isQuantized();
    /// Whether each row of quantized caches gets a scale of its own, which is
    /// computed and written.
    bool computesScales() { return isQuantized() && !getKeyScales(); }
    /// Return the dimensions of heads and of tokens in the new rows and in the
    /// caches.
    unsigned getHeadDim();
    unsigned getTokenDim();
    unsigned getCacheHeadDim();
    unsigned getCacheTokenDim();
  }];
}

#endif // POSENC_IR_KVAPPENDOP_TD
