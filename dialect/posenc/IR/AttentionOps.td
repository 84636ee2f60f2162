//===- AttentionOps.td - attention and its tile ------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_ATTENTIONOPS_TD
#define POSENC_IR_ATTENTIONOPS_TD

include "mlir/IR/OpAsmInterface.td"
include "posenc/IR/AttentionAttrs.td"
include "posenc/IR/OpBase.td"

def Posenc_Indices : Posenc_Shaped<[I64, I32]>;
def Posenc_Mask : Posenc_Shaped<[I1, F64, F32, F16, BF16]>;
def Posenc_Sums : Posenc_Shaped<[F64, F32]>;
/// Element types of caches. Those of i8 and f8 are quantized and have scales.
def Posenc_CacheElements
    : Posenc_Shaped<[F64, F32, F16, BF16, I8, F8E4M3FN, F8E5M2]>;
def Posenc_CacheScales : Posenc_Shaped<[F32]>;

/// A destination-style operation that is no loop over positions. Nested
/// operations may read memrefs.
class Posenc_DestinationOp<string mnemonic, list<Trait> traits = []>
    : Op<PosencDialect, mnemonic, [
        AttrSizedOperandSegments, DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<Posenc_PositionalOpInterface>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                                  ["reifyResultShapes"]>,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<ConditionallySpeculatable>
      ] # traits> {
  let hasVerifier = 1;
  code baseDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return getInitsMutable();
    }
  }];
  code baseDefinition = [{
    ::llvm::LogicalResult $cppClass::reifyResultShapes(
        ::mlir::OpBuilder &builder,
        ::mlir::ReifiedRankedShapedTypeDims &shapes) {
      return ::mlir::posenc::detail::reifyResultShapes(*this, builder, shapes);
    }
    void $cppClass::getEffects(
        ::llvm::SmallVectorImpl<::mlir::MemoryEffects::EffectInstance>
            &effects) {
      ::mlir::posenc::detail::getEffects(*this, effects);
    }
    ::mlir::Speculation::Speculatability $cppClass::getSpeculatability() {
      return ::mlir::posenc::detail::getSpeculatability(*this);
    }
  }];
  let extraClassDeclaration = baseDeclaration;
  let extraClassDefinition = baseDefinition;
}

def Posenc_AttentionOp : Posenc_DestinationOp<"attention", [
    RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
    DeclareOpInterfaceMethods<TilingInterface, [
      "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
      "getResultTilePosition", "getIterationDomainTileFromResultTile",
      "generateResultTileValue", "getIterationDomainTileFromOperandTiles",
      "getTiledImplementationFromOperandTiles"]>]> {
  let summary = "attention, with its rotations, biases and masks";
  let description = [{
    For each sequence `b`, query head `h` and query, the softmax over the
    keys `j` of `scale * rope(q) . rope(k_j)`, changed by the score region and
    the masks, weights the values: `o = sum_j p_j v_j`.

    ```mlir
    func.func @attention(%q: tensor<?x?x32x128xf32>, %k: tensor<?x?x8x128xf32>, %v: tensor<?x?x8x128xf32>, %p: tensor<?x?xi64>, %o: tensor<?x?x32x128xf32>) -> tensor<?x?x32x128xf32> {
      %r = posenc.attention causal
        query_rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 128, base = 5.000000e+05>>
        key_rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 128, base = 5.000000e+05>>
        ins(%q, %k, %v : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>, tensor<?x?x8x128xf32>)
        query_positions(%p : tensor<?x?xi64>) key_positions(%p : tensor<?x?xi64>)
        outs(%o : tensor<?x?x32x128xf32>)
      return %r : tensor<?x?x32x128xf32>
    }
    ```

    **Shapes.** Queries and output are `(batch, queries, heads, dim)` with
    `query_layout = token_major`, the default, and `(batch, heads, queries,
    dim)` with `head_major`; keys and values likewise with `key_layout`. Query
    head `h` uses key head `h / (query heads / key heads)`. The values' width
    may differ from the keys'; the output has that of the values. An optional
    second destination takes `ln(sum_j exp(s_j))` (sinks included) in the
    output's shape without its last dimension. Any batch and any number of
    tokens may be 0.

    **Places.** Keys are counted from 0; queries are aligned to the end of the
    keys: query `t` of `Lq` stands at the place `i = t + Lk - Lq` among the
    `Lk` keys of its sequence, which is negative where queries outnumber
    keys. `causal`, windows and both regions speak of places. A tile of other
    queries has `trailing_queries`: as many as follow it, which are part of
    `Lq` for its places.

    **Order.** In the type of the sums, f32, or f64 for f64 queries:
    1. `query_norm` and `key_norm`, the weights `w` of an RMS norm:
       `x -> x * (w + norm_offset) / sqrt(mean(x^2) + norm_eps)`. With `dim`
       weights the mean is that of each head, and all heads have the same
       weights (Qwen 3); with `heads * dim` weights, head after head, it is that
       of all heads of a token together (OLMo 2). `norm_offset` is 0 if absent,
       and 1 where checkpoints hold `w - 1` (Gemma 3);
    2. `query_rotation` and `key_rotation`, at `query_positions` and
       `key_positions`; without these at the places;
    3. the score `s = scale * q . k_j`; `scale` is `1/sqrt(dim)` if absent;
    4. the region `score`, from the score, sequence, query head, place of
       the query and key to the new score;
    5. the operand `mask`: a float is added to the score; minus infinity and
       `false` take the key out;
    6. a key takes part if all of these hold: `j <= i` with `causal`;
       `i - window_left <= j`; `j <= i + window_right`; the region `where`
       yields true. Of others neither key nor value counts, even if they are
       infinite or no numbers;
    7. softmax; `sinks` have one more logit for each query head, not scaled,
       which adds to the denominator alone. A query that no key takes part for,
       or none with a score above minus infinity, gives 0; its second result is
       its sink, or minus infinity.

    Results are rounded to their type in the end. Targets that multiply in the
    tensors' type may round normed and rotated rows and the weights `p` to it.

    **Operand groups.**
    - `lengths`: the valid keys of each sequence (`Lk`); the others are
      never read.
    - `cu_seqlens`: ragged batches. Queries and output lose their batch
      dimension: all tokens of all sequences stand one after the other, and sequence
      `b` has the tokens from `cu_seqlens[b]` up to `cu_seqlens[b+1]`; the first
      number is 0 and none is less than the one before. With a second list keys
      and values are packed likewise; with one, they are caches, of the given
      `lengths`. Tokens behind the last sequence belong to none: such queries have
      no keys, so that they give 0, and such keys are never read.
    - `block_table`: paged keys and values. Their batch dimension counts pages
      and their token dimension the slots of a page; key `j` of sequence `b` is in
      slot `j mod size` of page `block_table[b, j / size]`.
    - `mask`: `(batch, query heads, queries, keys)`, where a static 1 stands
      for all. It is indexed by the number of the query, not by its place.
    - `trailing_queries`: how many queries follow those of the operation, not
      negative; 0 if absent.
    - `key_scales`, `value_scales`: what quantized keys and values are
      multiplied by, `(batch, key heads, keys)` whatever the layout is: one of
      each row, and a static 1 stands for all of its dimension. Paged keys have
      `(pages, key heads, slots)`, packed keys `(key heads, keys)`.

    **Mixed element types.** Keys and values, typically caches, may have another
    element type than queries and output: a float that is not wider than the
    sums, or one of the quantized types `i8`, `f8E4M3FN` and `f8E5M2`, which
    have scales. The key is `stored * scale` in the type of the sums, before it
    is normed and rotated, and the value likewise.

    ```mlir
    func.func @quantized(%q: tensor<?x1x32x128xbf16>, %k: tensor<?x8x?x128xi8>, %ks: tensor<?x8x?xf32>, %v: tensor<?x8x?x128xi8>, %vs: tensor<?x8x?xf32>, %n: tensor<?xi64>, %o: tensor<?x1x32x128xbf16>) -> tensor<?x1x32x128xbf16> {
      %r = posenc.attention key_layout = head_major
        ins(%q, %k, %v : tensor<?x1x32x128xbf16>, tensor<?x8x?x128xi8>, tensor<?x8x?x128xi8>)
        lengths(%n : tensor<?xi64>)
        key_scales(%ks : tensor<?x8x?xf32>) value_scales(%vs : tensor<?x8x?xf32>)
        outs(%o : tensor<?x1x32x128xbf16>)
      return %r : tensor<?x1x32x128xbf16>
    }
    ```

    **Tiling.** The loops are sequences, query heads and queries, all of
    them parallel; with `cu_seqlens` query heads alone. A tile of heads has
    whole groups of query heads that share a key head, or is part of one, at a
    constant number of heads. A tile has all keys.

    **Regions** are evaluated for pairs of a query and a key that both exist,
    whether other masks leave them or not, in any order and any number of times.
    They may read tensors and memrefs from outside, at indices that exist for
    all pairs.

    ```mlir
    func.func @soft_cap(%q: tensor<1x8x?x64xf32>, %k: tensor<1x8x?x64xf32>, %v: tensor<1x8x?x64xf32>, %document: tensor<?xi32>, %o: tensor<1x8x?x64xf32>) -> tensor<1x8x?x64xf32> {
      %cap = arith.constant 50.0 : f32
      %r = posenc.attention causal query_layout = head_major key_layout = head_major
        ins(%q, %k, %v : tensor<1x8x?x64xf32>, tensor<1x8x?x64xf32>, tensor<1x8x?x64xf32>)
        outs(%o : tensor<1x8x?x64xf32>)
        score(%s, %b, %h, %i, %j) {
          %x = arith.divf %s, %cap : f32
          %t = math.tanh %x : f32
          %y = arith.mulf %t, %cap : f32
          posenc.yield %y : f32
        }
        where(%b, %h, %i, %j) {
          %x = tensor.extract %document[%i] : tensor<?xi32>
          %y = tensor.extract %document[%j] : tensor<?xi32>
          %same = arith.cmpi eq, %x, %y : i32
          posenc.yield %same : i1
        }
      return %r : tensor<1x8x?x64xf32>
    }
    ```

    Constraints:
    - (attn_c1) there are one or two destinations.
    - (attn_c2) queries, norms and output have one element type; sinks and the
      second destination have that of the sums.
    - (attn_c3) queries and output have rank 4, or 3 with `cu_seqlens`; keys
      and values have rank 4, or 3 with two lists; all have a static last
      dimension between 1 and 65536. The second destination has one dimension
      less.
    - (attn_c4) static sizes agree.
    - (attn_c5) the query heads are a positive multiple of the key heads.
    - (attn_c6) a rotary window lies within the last dimension.
    - (attn_c7) positions come with a rotation; they are `(batch, tokens)`, or
      `(tokens)` where tokens are packed, after a first dimension of axes if
      the rotation has `axes`, which needs positions.
    - (attn_c8) `cu_seqlens` has at most two lists, of rank 1, with a sequence
      more than there are sequences.
    - (attn_c9) `lengths` has rank 1; it is there if keys are paged or if there
      is one list in `cu_seqlens`, and not if there are two.
    - (attn_c10) `block_table` has rank 2; keys are not packed.
    - (attn_c11) `mask` has rank 4, and there is no `cu_seqlens`.
    - (attn_c12) `sinks` has rank 1.
    - (attn_c13) `query_norm` and `key_norm` have rank 1; `norm_eps` is there
      if one of them is, and is finite and not negative; `norm_offset` is only
      there if one of them is, and is finite.
    - (attn_c14) `scale` is finite; `window_left` and `window_right` are not
      negative.
    - (attn_c15) the region `score` has one block with the arguments `(sums'
      type, index, index, index, index)`, which yields the sums' type.
    - (attn_c16) the region `where` has one block with the arguments `(index,
      index, index, index)`, which yields `i1`.
    - (attn_c17) operations in the regions have no effect but to read by
      `tensor.extract` or `memref.load`, have no regions, and otherwise work on
      integers of at most 128 bits, floats and indices.
    - (attn_c18) operands are all tensors or all memrefs, and there is a result
      for each tensor destination, of its type.
    - (attn_c19) keys and values have one element type, and it is not wider than
      that of the sums.
    - (attn_c20) there are `key_scales` and `value_scales` if keys are quantized,
      and none otherwise; they have rank 3, or 2 where keys are packed.
    - (attn_c21) `trailing_queries` comes without `cu_seqlens`.
  }];
  let arguments = (ins
    Posenc_Floats:$query,
    Posenc_CacheElements:$key,
    Posenc_CacheElements:$value,
    Optional<Posenc_Indices>:$query_positions,
    Optional<Posenc_Indices>:$key_positions,
    Optional<Posenc_Floats>:$query_norm,
    Optional<Posenc_Floats>:$key_norm,
    Optional<Posenc_Indices>:$lengths,
    Variadic<Posenc_Indices>:$cu_seqlens,
    Optional<Posenc_Indices>:$block_table,
    Optional<Posenc_Mask>:$mask,
    Optional<Posenc_Sums>:$sinks,
    Optional<Posenc_CacheScales>:$key_scales,
    Optional<Posenc_CacheScales>:$value_scales,
    Optional<Index>:$trailing_queries,
    Variadic<Posenc_Floats>:$inits,
    DefaultValuedAttr<Posenc_HeadLayoutAttr, "::mlir::posenc::HeadLayout::TokenMajor">:$query_layout,
    DefaultValuedAttr<Posenc_HeadLayoutAttr, "::mlir::posenc::HeadLayout::TokenMajor">:$key_layout,
    OptionalAttr<Posenc_RotationAttr>:$query_rotation,
    OptionalAttr<Posenc_RotationAttr>:$key_rotation,
    OptionalAttr<F64Attr>:$norm_eps,
    OptionalAttr<F64Attr>:$norm_offset,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<I64Attr>:$window_left,
    OptionalAttr<I64Attr>:$window_right,
    UnitAttr:$causal);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region MaxSizedRegion<1>:$score, MaxSizedRegion<1>:$where);
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
  let assemblyFormat = [{
    oilist(
      `causal` $causal
      | `window_left` `=` custom<Integer>($window_left)
      | `window_right` `=` custom<Integer>($window_right)
      | `scale` `=` custom<Real>($scale)
      | `norm_eps` `=` custom<Real>($norm_eps)
      | `norm_offset` `=` custom<Real>($norm_offset)
      | `query_layout` `=` custom<HeadLayout>($query_layout)
      | `key_layout` `=` custom<HeadLayout>($key_layout)
      | `query_rotation` `=` custom<Rotation>($query_rotation)
      | `key_rotation` `=` custom<Rotation>($key_rotation))
    `ins` `(` $query `,` $key `,` $value `:` type($query) `,` type($key) `,` type($value) `)`
    oilist(
      `query_positions` `(` $query_positions `:` type($query_positions) `)`
      | `key_positions` `(` $key_positions `:` type($key_positions) `)`
      | `query_norm` `(` $query_norm `:` type($query_norm) `)`
      | `key_norm` `(` $key_norm `:` type($key_norm) `)`
      | `lengths` `(` $lengths `:` type($lengths) `)`
      | `cu_seqlens` `(` $cu_seqlens `:` type($cu_seqlens) `)`
      | `block_table` `(` $block_table `:` type($block_table) `)`
      | `mask` `(` $mask `:` type($mask) `)`
      | `sinks` `(` $sinks `:` type($sinks) `)`
      | `key_scales` `(` $key_scales `:` type($key_scales) `)`
      | `value_scales` `(` $value_scales `:` type($value_scales) `)`
      | `trailing_queries` `(` $trailing_queries `)`)
    custom<Destinations>($inits, type($inits), type($results)) attr-dict ``
    custom<ScoreRegions>($score, $where, ref(type($query)))
  }];
  // The rest is set afterwards.
  let builders = [OpBuilder<(ins "::mlir::Value":$query, "::mlir::Value":$key,
                                 "::mlir::Value":$value,
                                 "::mlir::ValueRange":$inits)>];
  let extraClassDeclaration = baseDeclaration # [{
    /// The type that sums have: f64 for f64 queries, else f32.
    ::mlir::FloatType getSumType();
    /// The factor of the scores, `1/sqrt(dim)` if none is given.
    double getScoreScale();
    /// What is added to the weights of the norms, 0 if nothing is given.
    double getNormWeightOffset();
    /// Whether the norm of the queries, or keys, is one of all heads of a token
    /// together: it has a weight for each of their channels.
    bool normsAllQueryHeads();
    bool normsAllKeyHeads();
    /// Whether queries, and keys, of all sequences stand one after the
    /// other.
    bool hasRaggedQueries() { return !getCuSeqlens().empty(); }
    bool hasRaggedKeys() { return getCuSeqlens().size() == 2; }
    /// The destination of the logarithms of sums, or null.
    ::mlir::Value getLogSumInit() {
      return getInits().size() == 2 ? getInits()[1] : ::mlir::Value();
    }
    /// Whether keys and values have another element type than queries.
    bool hasMixedTypes() {
      return ::mlir::getElementTypeOrSelf(getKey().getType()) !=
             ::mlir::getElementTypeOrSelf(getQuery().getType());
    }
    /// The dimensions of heads and of tokens.
    unsigned getQueryHeadDim();
    unsigned getQueryTokenDim();
    unsigned getKeyHeadDim();
    unsigned getKeyTokenDim();
  }];
}

def Posenc_OnlineAttentionOp : Posenc_DestinationOp<"online_attention", [
    RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
    DeclareOpInterfaceMethods<TilingInterface, [
      "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
      "getResultTilePosition", "getIterationDomainTileFromResultTile",
      "generateResultTileValue"]>,
    DeclareOpInterfaceMethods<PartialReductionOpInterface, [
      "generateInitialTensorForPartialReduction", "tileToPartialReduction",
      "mergeReductions", "getPartialResultTilePosition"]>]> {
  let summary = "a tile of attention, with running maxima and sums";
  let description = [{
    Adds some keys to the attention of some queries: one sequence and the
    query heads of one key head. Queries are `(heads, queries, dim)`, keys and
    values `(keys, dim)`, which may be of other floats. The destinations are
    read and written: sums of values `(heads, queries, values' dim)`, maxima and
    sums `(heads, queries)`, in f32, or f64 for f64 queries. With `s_j` the
    scores of a query, of those keys of the tile that take part,

    ```
    max' = max(max, max_j s_j)      p_j = exp(s_j - max')      r = exp(max - max')
    acc' = r * acc + sum_j p_j v_j                    sum' = r * sum + sum_j p_j
    ```

    Where `max'` is minus infinity, all `p_j` are 0 and `r` is 1. One starts
    from `acc = 0`, `max` minus infinity and `sum = 0`, or with a sink from
    `max` the sink and `sum = 1`. In the end the attention is `acc / sum`, 0
    where `sum` is 0, and the logarithm of the sum is `max + ln(sum)`. Two
    partial results, of different keys, add up by the same rule.

    `at` has the sequence, the first query head, the place of the first query
    and the first key: what the regions get and what `causal` and the windows
    compare. The next query has the next place. Keys from `keys` on, where that
    is given, take no part and are not given to regions, so that a tile may
    exceed the keys there are.
    Scores, regions, `mask` and masks are those of `posenc.attention`, but for
    `scale`, which is 1 if absent, and the mask's shape, which is `(heads,
    queries, keys)`. Norms and rotations are done before.

    Heads and queries are tiled in parallel, keys as a reduction. Parts of the
    keys may have partial results of their own (Flash-Decoding): these have the
    number of the part as their first dimension, and are merged by the rule
    above. The interface of aggregated operations makes linalg of a tile.

    ```mlir
    func.func @tile(%q: tensor<4x64x128xbf16>, %k: tensor<?x128xbf16>, %v: tensor<?x128xbf16>, %b: index, %h: index, %i: index, %j: index, %n: index, %acc: tensor<4x64x128xf32>, %max: tensor<4x64xf32>, %sum: tensor<4x64xf32>) -> (tensor<4x64x128xf32>, tensor<4x64xf32>, tensor<4x64xf32>) {
      %r:3 = posenc.online_attention causal at(%b, %h, %i, %j) keys(%n)
        ins(%q, %k, %v : tensor<4x64x128xbf16>, tensor<?x128xbf16>, tensor<?x128xbf16>)
        outs(%acc, %max, %sum : tensor<4x64x128xf32>, tensor<4x64xf32>, tensor<4x64xf32>)
      return %r#0, %r#1, %r#2 : tensor<4x64x128xf32>, tensor<4x64xf32>, tensor<4x64xf32>
    }
    ```

    Constraints:
    - (online_attn_c1) there are three destinations.
    - (online_attn_c2) the destinations have the element type of the sums, and
      keys and values none that is wider.
    - (online_attn_c3) queries and the first destination have rank 3, keys,
      values and the other destinations rank 2; the first four have a static
      last dimension between 1 and 65536.
    - (online_attn_c4) static sizes agree.
    - (online_attn_c5) `mask` has rank 3; a static 1 stands for all.
    - (online_attn_c6) `scale` is finite; windows are not negative.
    - (online_attn_c7) the region `score` is as that of `posenc.attention`.
    - (online_attn_c8) the region `where` is as that of `posenc.attention`.
    - (online_attn_c9) operations in the regions are as those of
      `posenc.attention`.
    - (online_attn_c10) operands are all tensors or all memrefs, indices aside,
      and there is a result for each tensor destination, of its type.
  }];
  let arguments = (ins
    Index:$batch_index,
    Index:$head_index,
    Index:$query_index,
    Index:$key_index,
    Optional<Index>:$num_keys,
    Posenc_Floats:$query,
    Posenc_Floats:$key,
    Posenc_Floats:$value,
    Optional<Posenc_Mask>:$mask,
    Variadic<Posenc_Sums>:$inits,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<I64Attr>:$window_left,
    OptionalAttr<I64Attr>:$window_right,
    UnitAttr:$causal);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region MaxSizedRegion<1>:$score, MaxSizedRegion<1>:$where);
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
  let assemblyFormat = [{
    oilist(
      `causal` $causal
      | `window_left` `=` custom<Integer>($window_left)
      | `window_right` `=` custom<Integer>($window_right)
      | `scale` `=` custom<Real>($scale))
    `at` `(` $batch_index `,` $head_index `,` $query_index `,` $key_index `)`
    (`keys` `(` $num_keys^ `)`)?
    `ins` `(` $query `,` $key `,` $value `:` type($query) `,` type($key) `,` type($value) `)`
    (`mask` `(` $mask^ `:` type($mask) `)`)?
    custom<Destinations>($inits, type($inits), type($results)) attr-dict ``
    custom<ScoreRegions>($score, $where, ref(type($query)))
  }];
  let extraClassDeclaration = baseDeclaration # [{
    /// Overrides the interface's.
    bool readsDestinations() { return true; }
    /// The type of the destinations: f64 for f64 queries, else f32.
    ::mlir::FloatType getSumType();
    /// The factor of the scores, 1 if none is given.
    double getScoreScale();
  }];
}

def Posenc_YieldOp : Op<PosencDialect, "yield", [
    Pure, Terminator, ParentOneOf<["AttentionOp", "OnlineAttentionOp"]>]> {
  let summary = "the value of a region of attention";
  let arguments = (ins AnyTypeOf<[F64, F32, I1]>:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

#endif // POSENC_IR_ATTENTIONOPS_TD
