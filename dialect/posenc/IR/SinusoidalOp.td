//===- SinusoidalOp.td - sinusoidal encoding ---------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_SINUSOIDALOP_TD
#define POSENC_IR_SINUSOIDALOP_TD

include "posenc/IR/OpBase.td"

def Posenc_SinusoidalOp : Posenc_Op<"sinusoidal"> {
  let summary = "sinusoidal positional encoding";
  let description = [{
    Computes a row of `d` elements for each position, from
    `s_i = att*sin(p*f_i)` and `c_i = att*cos(p*f_i)`, in one of these orders:

    - `interleaved`: `s_0, c_0, s_1, c_1, ...` (Attention Is All You Need);
    - `sin_cos`: all sines, then all cosines (tensor2tensor, fairseq);
    - `cos_sin`: all cosines, then all sines (diffusion time steps).

    A scalar position is added to the row index. Positions may be floats, as for
    `posenc.sincos`.

    ```mlir
    func.func @table(%first: i64, %t: tensor<?x512xf32>) -> tensor<?x512xf32> {
      %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 512, base = 1.000000e+04>
        positions(%first : i64) outs(%t : tensor<?x512xf32>)
      return %r : tensor<?x512xf32>
    }
    ```

    `zero_pad` adds a zero at the end of each row: libraries that support an odd
    width fill it with an encoding of `d = width - 1` and a zero.
    `padding_position` names a position whose whole row is zero, which fairseq
    gives to tokens that are padding.

    ```mlir
    func.func @fairseq(%p: tensor<?x?xi64>, %t: tensor<?x?x513xf32>) -> tensor<?x?x513xf32> {
      %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 512, base = 1.000000e+04, scaling = #posenc.geometric<shift = 1.000000e+00>>
        zero_pad padding_position = 1
        positions(%p : tensor<?x?xi64>) outs(%t : tensor<?x?x513xf32>)
      return %r : tensor<?x?x513xf32>
    }
    ```

    With `axes`, positions have a leading dimension of axes, and a row is the
    concatenation of one row per axis: axis `a` has `2*sections[a]` elements, in
    the given order, with the frequencies of that dimension (patches of images
    and video in MAE and ViT).

    ```mlir
    func.func @patches(%p: tensor<2x?xi64>, %t: tensor<?x768xf32>) -> tensor<?x768xf32> {
      %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 768, base = 1.000000e+04>
        axes <axial, [192, 192]>
        positions(%p : tensor<2x?xi64>) outs(%t : tensor<?x768xf32>)
      return %r : tensor<?x768xf32>
    }
    ```

    | source | order | attributes |
    |---|---|---|
    | Attention Is All You Need | `interleaved` | |
    | tensor2tensor | `sin_cos` | `#posenc.geometric`; `zero_pad` for an odd width |
    | fairseq, M2M, XGLM | `sin_cos` | `#posenc.geometric<shift = 1>`, `padding_position`; `zero_pad` for an odd width |
    | Whisper | `sin_cos` | `#posenc.geometric<shift = 1>` |
    | Transformer-XL | `sin_cos` | positions in descending order |
    | diffusers | `sin_cos`; `cos_sin` with `flip_sin_to_cos` | `#posenc.geometric<shift = downscale_freq_shift, scale = scale>`; `zero_pad` for an odd width |
    | ggml, DiT | `cos_sin` | |
    | MAE | `sin_cos` | `axes <axial, [d/4, d/4]>` |

    Constraints:
    - (sinusoidal_c1) there is one destination; its last dimension is `d`, with
      `zero_pad` it is `d + 1`.
    - (sinusoidal_c2) the other dimensions are those of the positions, without
      the axes; for a scalar position there is exactly one.
    - (sinusoidal_c3) operands are all tensors or all memrefs, and there is a
      result for a tensor destination, of its type.
    - (sinusoidal_c4) with `axes` the positions are shaped, their first dimension
      is the number of axes, and the sections add up to `d/2`.
    - (sinusoidal_c5) the layout of `axes` is `axial`, and the scaling has no list
      with an element for each pair.
    - (sinusoidal_c6) there is no `padding_position` with `axes`, or with
      positions that are floats.
    - (sinusoidal_c7) the frequencies do not depend on a length that is known at
      run time.
  }];
  let arguments = (ins
    Posenc_Positions:$positions,
    Variadic<Posenc_Floats>:$inits,
    Posenc_TableOrderAttr:$order,
    Posenc_FrequenciesAttr:$frequencies,
    OptionalAttr<Posenc_AxesAttr>:$axes,
    UnitAttr:$zero_pad,
    OptionalAttr<I64Attr>:$padding_position);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    custom<TableOrder>($order) $frequencies (`axes` $axes^)?
    (`zero_pad` $zero_pad^)? (`padding_position` `=` $padding_position^)?
    `positions` `(` $positions `:` type($positions) `)`
    custom<Destinations>($inits, type($inits), type($results)) attr-dict
  }];
  let extraClassDeclaration = baseDeclaration # [{
    /// A part of each row, with the pairs of one axis.
    struct Part {
      ::mlir::posenc::FrequenciesAttr frequencies;
      /// The first element in the row.
      int64_t firstLane;
    };
    /// Returns one part per axis; without axes, the row is the only part.
    ::llvm::SmallVector<Part> getParts();
    /// Returns the number of elements of a row, including the added zero.
    int64_t getRowSize() {
      return getFrequencies().getDim() + (getZeroPad() ? 1 : 0);
    }
  }];
}

#endif // POSENC_IR_SINUSOIDALOP_TD
