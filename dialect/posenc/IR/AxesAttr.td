//===- AxesAttr.td - several position axes -----------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_AXESATTR_TD
#define POSENC_IR_AXESATTR_TD

include "posenc/IR/FrequencyAttrs.td"

def Posenc_AxesAttr : Posenc_Attr<"Axes", "axes"> {
  let summary = "how several position axes share the pairs";
  let description = [{
    Positions have a leading dimension with one element for each section; pair
    `i` uses the position of its axis.

    - `contiguous`: the first `sections[0]` pairs use axis 0, the next
      `sections[1]` pairs use axis 1, and so on; the exponent of pair `i` is `i`
      (multimodal rope of Qwen2-VL).
    - `interleaved`: pair `i` uses axis `a = i mod n` if `a > 0` and
      `i < n*sections[a]`, with `n` the number of axes; all other pairs use
      axis 0 (Qwen3-VL).
    - `axial`: as `contiguous`, but the exponents restart at 0 in each section
      and its frequencies have the dimension `2*sections[a]` (images, video).

    ```mlir
    #posenc.axes<contiguous, [16, 24, 24]>
    ```

    Constraints:
    - (axes_c1) there are between 2 and 8 sections.
    - (axes_c2) every section is between 1 and 32768.
  }];
  let parameters = (ins
    EnumParameter<Posenc_AxisLayout>:$layout,
    ArrayRefParameter<"int64_t", "pairs of each axis">:$sections);
  let assemblyFormat = "`<` $layout `,` `[` $sections `]` `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getNumAxes() const { return getSections().size(); }
    int64_t getNumPairs() const;
    /// Returns the axis whose position the pair uses.
    int64_t getAxisOfPair(int64_t pair) const;
  }];
}

#endif // POSENC_IR_AXESATTR_TD
