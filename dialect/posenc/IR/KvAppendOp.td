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
    once to their type.

    New rows are `(batch, tokens, heads, dim)` with `layout = token_major`, the
    default, or `(batch, heads, tokens, dim)` with `head_major`; caches, with
    `cache_layout`, likewise. Slots are given by one of

    - `lengths`: the valid keys of each batch entry, the new ones included, as
      `posenc.attention` takes them afterwards: token `t` of `T` goes to slot
      `lengths[b] - T + t` of cache entry `b`. Without `positions` this is its
      position, too.
    - `slots`: `(batch, tokens)`, or `(tokens)` if the rows have no batch. Slot
      `s` is row `s mod n` of cache entry `s / n`, with `n` the tokens of an
      entry, so that caches may be pages.

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

    Constraints:
    - (kv_append_c1) there are two destinations.
    - (kv_append_c2) all tensors of floats have one element type.
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
  }];
  let arguments = (ins
    Posenc_Floats:$key,
    Posenc_Floats:$value,
    Optional<Posenc_Indices>:$positions,
    Optional<Posenc_Floats>:$norm,
    Optional<Posenc_Indices>:$lengths,
    Optional<Posenc_Indices>:$slots,
    Variadic<Posenc_Floats>:$inits,
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
    /// The dimensions of heads and of tokens, in the new rows and the caches.
    unsigned getHeadDim();
    unsigned getTokenDim();
    unsigned getCacheHeadDim();
    unsigned getCacheTokenDim();
  }];
}

#endif // POSENC_IR_KVAPPENDOP_TD
