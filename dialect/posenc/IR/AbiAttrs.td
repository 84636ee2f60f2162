//===- AbiAttrs.td - the C signature of a kernel -----------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_ABIATTRS_TD
#define POSENC_IR_ABIATTRS_TD

include "posenc/IR/FrequencyAttrs.td"

def Posenc_ArgAttr : Posenc_Attr<"Arg", "arg"> {
  let summary = "one tensor or scalar of a kernel's C signature";
  let description = [{
    `sizes` names, for each dynamic dimension of a tensor in order, the size of
    the enclosing `#posenc.abi` that it equals.

    ```mlir
    #posenc.arg<"q", tensor<?x?x32x128xf32>, [0, 1]>
    ```

    Constraints:
    - (arg_c1) the type is a ranked tensor of f64, f32, f16, bf16, i64, i32 or
      index, or an i64, i32 or index scalar.
    - (arg_c2) there is one size for every dynamic dimension, none negative.
    - (arg_c3) the name is an identifier in C and in C++, and no keyword.
  }];
  let parameters = (ins
    StringRefParameter<"name in the header">:$name,
    "::mlir::Type":$type,
    OptionalArrayRefParameter<"int64_t", "size of each `?`">:$sizes);
  let assemblyFormat = "`<` $name `,` $type `,` `[` (`]`) : ($sizes^ `]`)? `>`";
  let genVerifyDecl = 1;
}

def Posenc_AbiAttr : Posenc_Attr<"Abi", "abi"> {
  let summary = "the C signature of a kernel";
  let description = [{
    Stands on a function whose arguments are the inputs, then the outputs, as
    memrefs whose last dimension is contiguous, with any other strides (or as
    what these are lowered to). `sizes` has an entry for each distinct dynamic
    size: -1 if the size is an argument of the C entry, else the number of the
    scalar input that gives it.
    `in_place` has an entry for each output: the number of the input whose
    memory it may be, or -1 if it must not overlap any input.

    ```mlir
    #posenc.abi<inputs = [#posenc.arg<"n", index, []>], outputs = [#posenc.arg<"table", tensor<?x64xf32>, [0]>], sizes = [0], in_place = [-1]>
    ```

    Constraints:
    - (abi_c1) every size that an argument names exists.
    - (abi_c2) a size that is not -1 is the number of a scalar input.
    - (abi_c3) outputs are tensors.
    - (abi_c4) no two arguments have the same name.
    - (abi_c5) `in_place` has an entry for each output, -1 or the number of an
      input of the same type and sizes.
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::posenc::ArgAttr">:$inputs,
    ArrayRefParameter<"::mlir::posenc::ArgAttr">:$outputs,
    OptionalArrayRefParameter<"int64_t">:$sizes,
    OptionalArrayRefParameter<"int64_t">:$in_place);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // POSENC_IR_ABIATTRS_TD
