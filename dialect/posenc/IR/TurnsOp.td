//===- TurnsOp.td - frequencies that are known at run time -*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_TURNSOP_TD
#define POSENC_IR_TURNSOP_TD

include "posenc/IR/OpBase.td"

def Posenc_TurnsOp : Op<PosencDialect, "turns", [
    AttrSizedOperandSegments, Pure, InferTypeOpAdaptor]> {
  let summary = "frequencies that are computed at run time, in turns";
  let description = [{
    Computes the frequencies of an encoding for the operands `turns` of
    `posenc.sincos`, `posenc.rope`, `posenc.attention` and `posenc.kv_append`.
    The two results have one element per pair. For the frequency `f` in radians
    per position they are:

    `round(f/(2*pi) * 2^96) mod 2^96 = high * 2^32 + low`, `0 <= low < 2^32`.

    The frequencies come from one of two sources:

    - `length`: those of the attribute `frequencies`, whose scaling depends on
      the length of the sequences. A length below 1 counts as 1. The error is at
      most 1 in `low`, except that longrope has none.
    - `values`: any numbers of f32 or f64, which are taken as exact. A number of
      2^60 or more, an infinity or a NaN gives the frequency 0.

    ```mlir
    func.func @dynamic(%x: tensor<?x8x64xf32>, %p: tensor<?xi64>, %n: i64) -> tensor<?x8x64xf32> {
      %high, %low = posenc.turns #posenc.frequencies<dim = 64, base = 1.000000e+04, scaling = #posenc.dynamic<factor = 2.000000e+00, max_position = 4.096000e+03>>
        length(%n : i64)
      %r = posenc.rope half #posenc.frequencies<dim = 64, base = 1.000000e+04, scaling = #posenc.dynamic<factor = 2.000000e+00, max_position = 4.096000e+03>>
        ins(%x : tensor<?x8x64xf32>) positions(%p : tensor<?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>) dims = [0]
        outs(%x : tensor<?x8x64xf32>)
      return %r : tensor<?x8x64xf32>
    }
    func.func @learned(%x: tensor<?x8x64xf32>, %p: tensor<?xi64>, %f: tensor<32xf32>) -> tensor<?x8x64xf32> {
      %high, %low = posenc.turns values(%f : tensor<32xf32>)
      %r = posenc.rope half #posenc.frequencies<dim = 64, base = 1.000000e+04>
        ins(%x : tensor<?x8x64xf32>) positions(%p : tensor<?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>) dims = [0]
        outs(%x : tensor<?x8x64xf32>)
      return %r : tensor<?x8x64xf32>
    }
    ```

    Constraints:
    - (turns_c1) there is either `values`, or both `frequencies` and `length`.
    - (turns_c2) the scaling of `frequencies` depends on the length.
    - (turns_c3) `values` has rank 1 and a static size between 1 and 32768.
  }];
  let arguments = (ins
    Optional<AnyTypeOf<[I64, 0DTensorOf<[I64]>]>>:$length,
    Optional<RankedTensorOf<[F64, F32]>>:$values,
    OptionalAttr<Posenc_FrequenciesAttr>:$frequencies);
  let results = (outs RankedTensorOf<[I64]>:$high, RankedTensorOf<[I64]>:$low);
  let hasVerifier = 1;
  let assemblyFormat = [{
    ($frequencies^)? (`length` `(` $length^ `:` type($length) `)`)?
    (`values` `(` $values^ `:` type($values) `)`)? attr-dict
  }];
}

#endif // POSENC_IR_TURNSOP_TD
