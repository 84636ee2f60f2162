//===- AttentionOps.td - attention and online_attention ----*- tablegen -*-===//
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
def Posenc_TokenPositions : Posenc_Shaped<[I64, I32, F32, F64]>;
def Posenc_Mask : Posenc_Shaped<[I1, F64, F32, F16, BF16]>;
def Posenc_Sums : Posenc_Shaped<[F64, F32]>;
/// Element types of KV caches. i8 and f8 caches are quantized and have scales.
def Posenc_CacheElements
    : Posenc_Shaped<[F64, F32, F16, BF16, I8, F8E4M3FN, F8E5M2]>;
def Posenc_CacheScales : Posenc_Shaped<[F32]>;

/// A destination-style operation without position loops. Operations nested in
/// its regions may read memrefs.
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
    Computes, for each sequence `b`, query head `h` and query, the weighted sum
    of values `o = sum_j p_j v_j`. The weights `p` are the softmax over the keys
    `j` of the scores `scale * rope(q) . rope(k_j)`, which the score region and
    the masks may change.

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
    dim)` with `head_major`. Keys and values have the same shapes, selected by
    `key_layout`. Query head `h` uses key head `h / (query heads / key heads)`
    (GQA). Values may have another last dimension than keys; the output has the
    last dimension of the values. An optional second destination receives the
    log-sum-exp `ln(sum_j exp(s_j))`, including sinks, with the output's shape
    without its last dimension. The batch and the number of tokens may be 0.

    **Query positions.** Keys are numbered from 0. Queries are aligned to the end
    of the keys: query `t` of `Lq` has the position `i = t + Lk - Lq` among the
    `Lk` keys of its sequence. It is negative if there are more queries than
    keys. `causal`, windows and both regions use these positions. If the
    operation is a tile of more queries, `trailing_queries` is the number of
    queries that follow it; they count in `Lq`.

    **Order of evaluation.** Everything is computed in the accumulator type: f32,
    or f64 for f64 queries.
    1. Norms: `query_norm` and `key_norm` are the weights `w` of an RMS norm,
       `x -> x * (w + norm_offset) / sqrt(mean(x^2) + norm_eps)`. With `dim`
       weights, the mean is taken over each head, and all heads have the same
       weights (Qwen 3). With `heads * dim` weights, ordered by head, the mean is
       taken over all heads of a token together (OLMo 2). `norm_offset` is 0 if
       absent, and 1 for checkpoints that store `w - 1` (Gemma 3).
    2. Rotations: `query_rotation` and `key_rotation` at `query_positions` and
       `key_positions`; without these operands, at the position `i` of the query
       and the index `j` of the key.
    3. Score: `s = scale * q . k_j`; `scale` is `1/sqrt(dim)` if absent.
    4. The region `score` (score_mod in FlexAttention) maps the score, sequence,
       query head, query position and key index to the new score.
    5. The operand `mask`: a float is added to the score; minus infinity and
       `false` mask the key.
    6. Visibility: a key is visible if all of these hold: `j <= i` with `causal`;
       `i - window_left <= j`; `j <= i + window_right`; the region `where`
       (mask_mod in FlexAttention) yields true. Neither the key nor the value of
       other keys affects the result, even if they are infinite or NaN.
    7. Softmax: `sinks` has one more logit per query head, not scaled, which is
       added to the denominator only. A query without visible keys, or whose
       scores are all minus infinity, gives 0; its log-sum-exp is its sink, or
       minus infinity without sinks.

    Results are rounded to their type at the end. Targets that multiply in the
    tensors' type may round normed and rotated rows and the weights `p` to it.

    **Operand groups.**
    - `lengths`: the number of valid keys of each sequence (`Lk`); other keys are
      never read.
    - `cu_seqlens`: ragged batches. Queries and output have no batch dimension:
      the tokens of all sequences follow each other, and sequence `b` has the
      tokens from `cu_seqlens[b]` to `cu_seqlens[b+1]` (exclusive). The first
      number is 0, and the numbers do not decrease. With a second list, keys and
      values are ragged, too; with one list, they are caches with `lengths`.
      Tokens after the last sequence belong to none: such queries have no keys
      and give 0, and such keys are never read.
    - `block_table`: a paged cache. The batch dimension of keys and values counts
      pages, and the token dimension the slots of a page; key `j` of sequence `b`
      is in slot `j mod size` of page `block_table[b, j / size]`.
    - `mask`: `(batch, query heads, queries, keys)`; dimensions with a static
      size of 1 are broadcast. It is indexed by the index of the query, not by
      its position.
    - `trailing_queries`: the number of queries that follow those of the
      operation, not negative; 0 if absent.
    - `turns`: the frequencies of both rotations, if they are computed at run
      time by `posenc.turns`, as in `posenc.rope`.
    - `key_scales`, `value_scales`: the factors of quantized keys and values,
      `(batch, key heads, keys)` for either layout. There is one scale per row;
      dimensions with a static size of 1 are broadcast. Paged keys have
      `(pages, key heads, slots)`, ragged keys `(key heads, keys)`.

    **Mixed element types.** Keys and values, typically caches, may have another
    element type than queries and output: a float type that is not wider than the
    accumulator, or one of the quantized types `i8`, `f8E4M3FN` and `f8E5M2`,
    which have scales. A key or value is `stored * scale` in the accumulator
    type; norm and rotation of keys come after the scaling.

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

    **Tiling.** The loops are sequences, query heads and queries, all of them
    parallel; with `cu_seqlens`, query heads only. A tile of heads consists of
    whole GQA groups or is a part of one group, with a constant number of heads.
    A tile has all keys.

    **Regions** are evaluated for pairs of an existing query and an existing key,
    even if other masks exclude the pair, in any order and any number of times.
    They may read tensors and memrefs from outside, at indices that must be in
    bounds for all pairs.

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
    - (attn_c2) queries, norms and output have the same element type; sinks and
      the second destination have the accumulator type.
    - (attn_c3) queries and output have rank 4, or 3 with `cu_seqlens`; keys
      and values have rank 4, or 3 with two lists; all have a static last
      dimension between 1 and 65536. The second destination has one dimension
      less.
    - (attn_c4) static sizes agree.
    - (attn_c5) the query heads are a positive multiple of the key heads.
    - (attn_c6) a rotary window lies within the last dimension.
    - (attn_c7) positions require a rotation; they are `(batch, tokens)`, or
      `(tokens)` for ragged tokens, preceded by a dimension of axes if the
      rotation has `axes`. A rotation with `axes` requires positions.
    - (attn_c8) `cu_seqlens` has at most two lists, of rank 1, with one more
      element than there are sequences.
    - (attn_c9) `lengths` has rank 1; it is required if keys are paged or if
      there is one list in `cu_seqlens`, and not allowed if there are two.
    - (attn_c10) `block_table` has rank 2; keys are not ragged.
    - (attn_c11) `mask` has rank 4, and there is no `cu_seqlens`.
    - (attn_c12) `sinks` has rank 1.
    - (attn_c13) `query_norm` and `key_norm` have rank 1; `norm_eps` is present
      if one of them is, and is finite and not negative; `norm_offset` is present
      only if one of them is, and is finite.
    - (attn_c14) `scale` is finite; `window_left` and `window_right` are not
      negative.
    - (attn_c15) the region `score` has one block with the arguments
      `(accumulator type, index, index, index, index)`, which yields the
      accumulator type.
    - (attn_c16) the region `where` has one block with the arguments `(index,
      index, index, index)`, which yields `i1`.
    - (attn_c17) operations in the regions have no side effects, except reads by
      `tensor.extract` or `memref.load`; they have no regions, and otherwise work
      on integers of at most 128 bits, floats and indices.
    - (attn_c18) operands are all tensors or all memrefs, and there is a result
      for each tensor destination, of its type.
    - (attn_c19) keys and values have the same element type, which is not wider
      than the accumulator type.
    - (attn_c20) `key_scales` and `value_scales` are present if and only if keys
      are quantized; they have rank 3, or 2 for ragged keys.
    - (attn_c21) `trailing_queries` is not allowed with `cu_seqlens`.
    - (attn_c22) `turns` has two lists of one element for each pair of the
      rotations, or none; frequencies that depend on the length require them.
      With `turns`, positions are integers and angles are not
      rounded.
  }];
  let arguments = (ins
    Posenc_Floats:$query,
    Posenc_CacheElements:$key,
    Posenc_CacheElements:$value,
    Optional<Posenc_TokenPositions>:$query_positions,
    Optional<Posenc_TokenPositions>:$key_positions,
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
    Variadic<Posenc_Turns>:$turns,
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
      | `trailing_queries` `(` $trailing_queries `)`
      | `turns` `(` $turns `:` type($turns) `)`)
    custom<Destinations>($inits, type($inits), type($results)) attr-dict ``
    custom<ScoreRegions>($score, $where, ref(type($query)))
  }];
  // Other operands and attributes are set after creation.
  let builders = [OpBuilder<(ins "::mlir::Value":$query, "::mlir::Value":$key,
                                 "::mlir::Value":$value,
                                 "::mlir::ValueRange":$inits)>];
  let extraClassDeclaration = baseDeclaration # [{
    /// Returns the accumulator type: f64 for f64 queries, else f32.
    ::mlir::FloatType getSumType();
    /// Returns the factor of the scores, `1/sqrt(dim)` if `scale` is absent.
    double getScoreScale();
    /// Returns the constant that is added to the weights of the norms, 0 if
    /// `norm_offset` is absent.
    double getNormWeightOffset();
    /// Whether the norm of queries, or of keys, covers all heads of a token
    /// together; it then has one weight per head and channel.
    bool normsAllQueryHeads();
    bool normsAllKeyHeads();
    /// Whether queries, or keys, are ragged: they have no batch dimension.
    bool hasRaggedQueries() { return !getCuSeqlens().empty(); }
    bool hasRaggedKeys() { return getCuSeqlens().size() == 2; }
    /// Returns the destination of the log-sum-exp, or null.
    ::mlir::Value getLogSumInit() {
      return getInits().size() == 2 ? getInits()[1] : ::mlir::Value();
    }
    /// Whether keys and values have another element type than queries.
    bool hasMixedTypes() {
      return ::mlir::getElementTypeOrSelf(getKey().getType()) !=
             ::mlir::getElementTypeOrSelf(getQuery().getType());
    }
    /// Return the dimensions of heads and of tokens.
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
  let summary = "a step of online softmax for a tile of queries and keys";
  let description = [{
    Adds a tile of keys to the attention of a tile of queries: query heads of one
    key head of one sequence. Queries are `(heads, queries, dim)`, keys and
    values `(keys, dim)`, which may have other float types. The destinations are
    read and written: accumulator `(heads, queries, values' dim)`, running max
    and running sum `(heads, queries)`, in f32, or f64 for f64 queries. With
    `s_j` the scores of a query for the visible keys of the tile,

    ```
    max' = max(max, max_j s_j)      p_j = exp(s_j - max')      r = exp(max - max')
    acc' = r * acc + sum_j p_j v_j                    sum' = r * sum + sum_j p_j
    ```

    If `max'` is minus infinity, all `p_j` are 0 and `r` is 1. The initial state
    is `acc = 0`, `max` minus infinity and `sum = 0`; with a sink, `max` is the
    sink and `sum = 1`. After all keys, the attention is `acc / sum`, or 0 if
    `sum` is 0, and the log-sum-exp is `max + ln(sum)`. Two partial results of
    different keys are merged by the same rule.

    `at` gives the sequence, the first query head, the position of the first
    query and the index of the first key. The regions, `causal` and the windows
    use them; consecutive queries have consecutive positions. Keys with an index
    of `keys` or more, if it is given, are masked and not passed to regions, so a
    tile may extend beyond the last key.
    Scores, regions, `mask` and masks are as in `posenc.attention`, except that
    `scale` is 1 if absent, and the mask's shape is `(heads, queries, keys)`.
    Norms and rotations are applied before this operation.

    Heads and queries are tiled as parallel loops, keys as a reduction. KV splits
    (Flash-Decoding) may have partial results of their own, whose first dimension
    is the split; they are merged by the rule above. AggregatedOpInterface
    decomposes the operation to linalg.

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
    - (online_attn_c2) the destinations have the accumulator type; keys and
      values have no wider one.
    - (online_attn_c3) queries and the first destination have rank 3, keys,
      values and the other destinations rank 2; the first four have a static
      last dimension between 1 and 65536.
    - (online_attn_c4) static sizes agree.
    - (online_attn_c5) `mask` has rank 3; static sizes of 1 are broadcast.
    - (online_attn_c6) `scale` is finite; windows are not negative.
    - (online_attn_c7) the region `score` is as that of `posenc.attention`.
    - (online_attn_c8) the region `where` is as that of `posenc.attention`.
    - (online_attn_c9) operations in the regions are as those of
      `posenc.attention`.
    - (online_attn_c10) operands other than indices are all tensors or all
      memrefs, and there is a result for each tensor destination, of its type.
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
    /// Overrides the method of PositionalOpInterface.
    bool readsDestinations() { return true; }
    /// Returns the accumulator type: f64 for f64 queries, else f32.
    ::mlir::FloatType getSumType();
    /// Returns the factor of the scores, 1 if `scale` is absent.
    double getScoreScale();
  }];
}

def Posenc_YieldOp : Op<PosencDialect, "yield", [
    Pure, Terminator, ParentOneOf<["AttentionOp", "OnlineAttentionOp"]>]> {
  let summary = "yields the value of a region of attention";
  let arguments = (ins AnyTypeOf<[F64, F32, I1]>:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

#endif // POSENC_IR_ATTENTIONOPS_TD
