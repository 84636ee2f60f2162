//===- ConvertPairingOp.td - layouts of pairs --------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_CONVERTPAIRINGOP_TD
#define POSENC_IR_CONVERTPAIRINGOP_TD

include "posenc/IR/OpBase.td"

def Posenc_ConvertPairingOp : Op<PosencDialect, "convert_pairing", [
    Pure, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                              ["reifyResultShapes"]>]> {
  let summary = "moves the lanes of pairs from one pairing to the other";
  let description = [{
    Permutes the last dimension: the lanes of pair `i` in the pairing `from` (see
    `posenc.rotate`) become those of pair `i` in the pairing `to`, within the window
    `[offset, offset + dim)`. Lanes outside of it are copied.

    Checkpoints for one pairing serve a rope of the other after this permutation of
    the weights that produce queries and keys. The scores of queries and keys do not
    change, as both have the same permutation.

    ```mlir
    // The weights of 8 heads of 64 channels, as rows of inputs.
    func.func @convert(%w: tensor<512x512xbf16>) -> tensor<512x512xbf16> {
      %heads = tensor.expand_shape %w [[0], [1, 2]] output_shape [512, 8, 64] : tensor<512x512xbf16> into tensor<512x8x64xbf16>
      %half = posenc.convert_pairing interleaved to half dim = 64 %heads : tensor<512x8x64xbf16>
      %r = tensor.collapse_shape %half [[0], [1, 2]] : tensor<512x8x64xbf16> into tensor<512x512xbf16>
      return %r : tensor<512x512xbf16>
    }
    ```

    Folds:

    - a conversion to the pairing that it converts from, and the conversion back of
      a conversion, are their operand;
    - a rope of a conversion is the conversion of a rope with the other pairing, so
      that two conversions around a rope cancel.

    Constraints:
    - (convert_pairing_c1) the last dimension is static, and the window lies within
      it.
    - (convert_pairing_c2) `dim` is even and positive.
  }];
  let arguments = (ins
    RankedTensorOf<[AnyFloat, AnySignlessInteger]>:$input,
    Posenc_PairingAttr:$from,
    Posenc_PairingAttr:$to,
    I64Attr:$dim,
    DefaultValuedAttr<I64Attr, "0">:$offset);
  let results = (outs RankedTensorOf<[AnyFloat, AnySignlessInteger]>:$result);
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let assemblyFormat = [{
    custom<Pairing>($from) `to` custom<Pairing>($to) `dim` `=` $dim (`offset` `=` $offset^)?
    $input attr-dict `:` type($input)
  }];
}

#endif // POSENC_IR_CONVERTPAIRINGOP_TD
