//===- AttentionAttrs.td - attributes of attention ---------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_ATTENTIONATTRS_TD
#define POSENC_IR_ATTENTIONATTRS_TD

include "posenc/IR/AxesAttr.td"

def Posenc_HeadLayout : Posenc_Enum<"HeadLayout",
    "the order of a tensor's heads and tokens", [
  I32EnumCase<"TokenMajor", 0, "token_major">,
  I32EnumCase<"HeadMajor", 1, "head_major">
]>;
def Posenc_HeadLayoutAttr :
    EnumAttr<PosencDialect, Posenc_HeadLayout, "head_layout">;

def Posenc_RotationAttr : Posenc_Attr<"Rotation", "rotation"> {
  let summary = "a rotary encoding as an attribute of another operation";
  let description = [{
    The rotation that `posenc.rope` applies to each head. `pairing`,
    `frequencies`, `offset` (the first lane of the rotary window) and `axes` are
    as in that operation.

    ```mlir
    #posenc.rotation<pairing = half, frequencies = #posenc.frequencies<dim = 64, base = 5.000000e+05>, offset = 64>
    ```

    Constraints:
    - (rotation_c1) `offset` is not negative.
    - (rotation_c2) with `axes` the sections add up to the pairs of the
      frequencies.
  }];
  let parameters = (ins
    EnumParameter<Posenc_Pairing>:$pairing,
    AttrParameter<"::mlir::posenc::FrequenciesAttr", "the frequencies">:$frequencies,
    AttrParameter<"int64_t", "first lane of the rotary window, default 0">:$offset,
    OptionalParameter<"::mlir::posenc::AxesAttr", "the position axes">:$axes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // POSENC_IR_ATTENTIONATTRS_TD
