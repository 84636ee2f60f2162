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

    A scalar position is added to the row index.

    ```mlir
    func.func @table(%first: i64, %t: tensor<?x512xf32>) -> tensor<?x512xf32> {
      %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 512, base = 1.000000e+04>
        positions(%first : i64) outs(%t : tensor<?x512xf32>)
      return %r : tensor<?x512xf32>
    }
    ```

    Constraints:
    - (sinusoidal_c1) there is one destination; its last dimension is `d`.
    - (sinusoidal_c2) the other dimensions are those of the positions; for a
      scalar position there is exactly one.
    - (sinusoidal_c3) operands are all tensors or all memrefs, and there is a
      result for a tensor destination, of its type.
  }];
  let arguments = (ins
    Posenc_Positions:$positions,
    Variadic<Posenc_Floats>:$inits,
    Posenc_TableOrderAttr:$order,
    Posenc_FrequenciesAttr:$frequencies);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    custom<TableOrder>($order) $frequencies
    `positions` `(` $positions `:` type($positions) `)`
    custom<Destinations>($inits, type($inits), type($results)) attr-dict
  }];
}

#endif // POSENC_IR_SINUSOIDALOP_TD
