//===- RopeOps.td - rotary encoding ------------------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_ROPEOPS_TD
#define POSENC_IR_ROPEOPS_TD

include "posenc/IR/OpBase.td"

def Posenc_SincosOp : Posenc_Op<"sincos", [AttrSizedOperandSegments]> {
  let summary = "cos and sin tables of positions";
  let description = [{
    Computes `cos[p..., i] = att*cos(position[p...] * f_i)` and
    `sin[p..., i] = att*sin(position[p...] * f_i)`, for `i < d/2`. The first
    destination receives the cosines, the second the sines. With `axes`,
    positions have a leading dimension of axes, and pair `i` uses the position of
    its axis. A scalar position is added to the row index.

    Positions are integers, or floats (coordinates, time steps), which must be
    shaped. The result is as exact for a float as for an integer; for a float that
    is not finite, or of absolute value 2^63 or more, it is NaN. With the precision
    `hf_f32`, this holds for the angle as well.

    `turns` has the frequencies if they are computed at run time by
    `posenc.turns`. The attribute `frequencies` then gives `d` and `att` only.

    ```mlir
    func.func @sincos(%p: tensor<?xi64>, %c: tensor<?x64xf32>, %s: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
      %cos, %sin = posenc.sincos #posenc.frequencies<dim = 128, base = 1.000000e+04>
        positions(%p : tensor<?xi64>) outs(%c, %s : tensor<?x64xf32>, tensor<?x64xf32>)
      return %cos, %sin : tensor<?x64xf32>, tensor<?x64xf32>
    }
    ```

    Constraints:
    - (sincos_c1) there are two destinations, of the same shape and element
      type.
    - (sincos_c2) the destinations' last dimension is `d/2`.
    - (sincos_c3) the other dimensions are those of the positions, without the
      axes; for a scalar position there is exactly one.
    - (sincos_c4) with `axes` the positions are shaped, their first dimension
      is the number of axes, and the sections add up to `d/2`.
    - (sincos_c5) operands are all tensors or all memrefs, and there is a
      result for each tensor destination, of its type.
    - (sincos_c6) `turns` has two lists of `d/2` elements, or none; frequencies
      that depend on the length require them. With `turns`, positions are
      integers and angles are not rounded.
  }];
  let arguments = (ins
    Posenc_Positions:$positions,
    Variadic<Posenc_Turns>:$turns,
    Variadic<Posenc_Floats>:$inits,
    Posenc_FrequenciesAttr:$frequencies,
    OptionalAttr<Posenc_AxesAttr>:$axes);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $frequencies (`axes` $axes^)? `positions` `(` $positions `:` type($positions) `)`
    (`turns` `(` $turns^ `:` type($turns) `)`)?
    custom<Destinations>($inits, type($inits), type($results)) attr-dict
  }];
}

def Posenc_RotateOp : Posenc_Op<"rotate", [AttrSizedOperandSegments]> {
  let summary = "rotates the pairs of tensors by tables of cos and sin";
  let description = [{
    Rotates each pair: `(x, y) -> (x*c - y*t, y*c + x*t)`, with
    `c = cos[p..., i]`, `t = sin[p..., i]`, and `(x, y)` the lanes of pair `i` in
    the rotary window `[offset, offset + d)` of the last dimension. `d` is twice
    the tables' last dimension. The pairing selects the lanes of pair `i`:

    - `half`: lanes `i` and `i + d/2` of the window;
    - `interleaved`: lanes `2i` and `2i + 1`.

    With `full_tables`, the tables are as wide as the window and have elements of
    their own for each lane of a pair, as frameworks pass them: `x*c - y*t` uses
    those at the lane of `x`, `y*c + x*t` those at the lane of `y`.

    `inverse` negates `t`. Lanes outside of the window are copied unchanged.
    `dims` gives, for each leading dimension of the tables, the corresponding
    dimension of the tensors.

    ```mlir
    func.func @rotate(%x: tensor<?x8x64xf32>, %cos: tensor<?x32xf32>, %sin: tensor<?x32xf32>) -> tensor<?x8x64xf32> {
      %r = posenc.rotate half ins(%x : tensor<?x8x64xf32>) tables(%cos, %sin : tensor<?x32xf32>) dims = [0]
        outs(%x : tensor<?x8x64xf32>)
      return %r : tensor<?x8x64xf32>
    }
    ```

    ```mlir
    func.func @full_tables(%x: tensor<?x8x64xf32>, %cos: tensor<?x64xf32>, %sin: tensor<?x64xf32>) -> tensor<?x8x64xf32> {
      %r = posenc.rotate half full_tables ins(%x : tensor<?x8x64xf32>) tables(%cos, %sin : tensor<?x64xf32>) dims = [0]
        outs(%x : tensor<?x8x64xf32>)
      return %r : tensor<?x8x64xf32>
    }
    ```

    Constraints:
    - (rotate_c1) there are as many inputs as destinations, between 1 and 16, all
      of the same element type; each input has the shape of its destination.
    - (rotate_c2) tensors have a rank between 2 and 64 and a static last
      dimension.
    - (rotate_c3) the tables have the same shape and element type and a static
      last dimension between 1 and 32768, which is even with `full_tables`.
    - (rotate_c4) `dims` has one element for each leading dimension of the
      tables; the elements are different dimensions of the tensors, except the
      last.
    - (rotate_c5) the rotary window lies within the last dimension.
    - (rotate_c6) static sizes of the tables agree with those of the tensors
      that they index.
    - (rotate_c7) tables are no wider than the type of the products: f64 for
      f64 tensors, else f32.
    - (rotate_c8) operands are all tensors or all memrefs, and there is a
      result for each tensor destination, of its type.
    - (rotate_c9) with `full_tables`, operands are tensors;
      `convert-posenc-rope-to-linalg` runs before bufferization.
  }];
  let arguments = (ins
    Variadic<Posenc_Floats>:$inputs,
    Posenc_Floats:$cos,
    Posenc_Floats:$sin,
    Variadic<Posenc_Floats>:$inits,
    Posenc_PairingAttr:$pairing,
    DenseI64ArrayAttr:$dims,
    DefaultValuedAttr<I64Attr, "0">:$offset,
    UnitAttr:$inverse,
    UnitAttr:$full_tables);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    custom<Pairing>($pairing) (`inverse` $inverse^)? (`full_tables` $full_tables^)?
    `ins` `(` $inputs `:` type($inputs) `)`
    `tables` `(` $cos `,` $sin `:` custom<TableTypes>(type($cos), type($sin)) `)`
    `dims` `=` $dims (`offset` `=` $offset^)?
    custom<Destinations>($inits, type($inits), type($results)) attr-dict
  }];
  let extraClassDeclaration = baseDeclaration # [{
    /// Returns the size of the rotary window.
    int64_t getRotaryDim();
  }];
}

def Posenc_RopeOp : Posenc_Op<"rope", [AttrSizedOperandSegments]> {
  let summary = "rotary positional encoding";
  let description = [{
    Computes `rope(x) = rotate(x, sincos(positions))`, for one tensor or for
    several that share their positions (queries and keys), so that the cos and
    sin of a position are computed once for all heads of all tensors.

    `inverse` undoes a forward rope: it negates the sines and, for an attention
    factor other than 1, divides by its square.

    `dims` gives, for each dimension of the positions (without the axes), the
    corresponding dimension of the tensors. A scalar position is added to the
    index along the only dimension in `dims`. Positions may be floats, as for
    `posenc.sincos`.

    `turns` has the frequencies if they are computed at run time by
    `posenc.turns`. The attribute `frequencies` then gives `d` and `att` only.

    `scale` multiplies each pair by a factor that depends on the position, as in
    XPos. An inverse rope divides by it.

    ```mlir
    func.func @xpos(%q: tensor<?x8x64xf32>, %k: tensor<?x8x64xf32>, %p: tensor<?xi64>) -> (tensor<?x8x64xf32>, tensor<?x8x64xf32>) {
      %rq = posenc.rope interleaved #posenc.frequencies<dim = 64> scale #posenc.xpos<base = 512.0, gamma = 0.4>
        ins(%q : tensor<?x8x64xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%q : tensor<?x8x64xf32>)
      %rk = posenc.rope interleaved #posenc.frequencies<dim = 64> scale #posenc.xpos<base = 512.0, gamma = 0.4, reciprocal = true>
        ins(%k : tensor<?x8x64xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%k : tensor<?x8x64xf32>)
      return %rq, %rk : tensor<?x8x64xf32>, tensor<?x8x64xf32>
    }
    ```

    ```mlir
    func.func @rope(%q: tensor<?x?x32x128xf32>, %k: tensor<?x?x8x128xf32>, %p: tensor<?x?xi64>)
        -> (tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>) {
      %r:2 = posenc.rope half #posenc.frequencies<dim = 128, base = 5.000000e+05>
        ins(%q, %k : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>) positions(%p : tensor<?x?xi64>) dims = [0, 1]
        outs(%q, %k : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>)
      return %r#0, %r#1 : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>
    }
    ```

    Folds, for equal attributes without `scale`, where sums of positions are
    computed in i64 and may wrap for positions beyond 2^62:

    - `rope(x, 0) = x` for `att = 1`, and `rope(rope(x, p), q) = rope(x, p+q)`;
    - a rope of an inverse rope, or the other way around, is one rope by the
      difference of the positions with `att = 1`, for any `att`. So cached keys
      move from position `p` to `q` by `inverse` at `p` and a rope at `q`;
    - a rope of a row of `posenc.sinusoidal` at `p` is the row at `p-k` for pairs
      (sin, cos), and at `p+k` for pairs (cos, sin).

    Constraints:
    - (rope_c1) there are as many inputs as destinations, between 1 and 16, all
      of the same element type; each input has the shape of its destination.
    - (rope_c2) tensors have a rank between 2 and 64 and a static last
      dimension.
    - (rope_c3) `dims` has one element for each dimension of the positions
      without the axes (one for a scalar); the elements are different dimensions
      of the tensors, except the last.
    - (rope_c4) the rotary window `[offset, offset + d)` lies within the last
      dimension.
    - (rope_c5) static sizes of the positions agree with those of the tensors
      that they index.
    - (rope_c6) with `axes` the positions are shaped, their first dimension is
      the number of axes, and the sections add up to `d/2`.
    - (rope_c7) operands are all tensors or all memrefs, and there is a result
      for each tensor destination, of its type.
    - (rope_c8) `turns` has two lists of `d/2` elements, or none; frequencies
      that depend on the length require them. With `turns`, positions are
      integers and angles are not rounded.
    - (rope_c9) with `scale`, operands are tensors of f32, f16 or bf16, and there
      are no axes.
  }];
  let arguments = (ins
    Variadic<Posenc_Floats>:$inputs,
    Posenc_Positions:$positions,
    Variadic<Posenc_Turns>:$turns,
    Variadic<Posenc_Floats>:$inits,
    Posenc_PairingAttr:$pairing,
    Posenc_FrequenciesAttr:$frequencies,
    OptionalAttr<Posenc_AxesAttr>:$axes,
    OptionalAttr<Posenc_XposAttr>:$scale,
    DenseI64ArrayAttr:$dims,
    DefaultValuedAttr<I64Attr, "0">:$offset,
    UnitAttr:$inverse);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    custom<Pairing>($pairing) (`inverse` $inverse^)? $frequencies (`axes` $axes^)?
    (`scale` $scale^)? `ins` `(` $inputs `:` type($inputs) `)`
    `positions` `(` $positions `:` type($positions) `)`
    (`turns` `(` $turns^ `:` type($turns) `)`)?
    `dims` `=` $dims (`offset` `=` $offset^)?
    custom<Destinations>($inits, type($inits), type($results)) attr-dict
  }];
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

#endif // POSENC_IR_ROPEOPS_TD
