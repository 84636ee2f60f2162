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

def Posenc_BoundKind : Posenc_Enum<"BoundKind",
    "which numbers of a kernel's inputs must be checked", [
  I32EnumCase<"Lengths", 0, "lengths">,
  I32EnumCase<"Starts", 1, "starts">,
  I32EnumCase<"Pages", 2, "pages">,
  I32EnumCase<"Slots", 3, "slots">,
  I32EnumCase<"Heads", 4, "heads">,
  I32EnumCase<"Sizes", 5, "sizes">
]>;

def Posenc_BoundAttr : Posenc_Attr<"Bound", "bound"> {
  let summary = "what must hold of an input before a kernel runs";
  let description = [{
    Numbers of the tensor `input` of the enclosing `#posenc.abi` are indices of
    other tensors, which `limit` and `each` are sizes of: products of factors, of
    which one that is not negative is a number, and `-1 - n` is size `n`.

    - `lengths`: each is between 0 and `limit`.
    - `starts`: none is negative, less than the one before it or greater than
      `limit`; with `each` there is one more of them than that.
    - `pages`: in row `b`, those of the first `lengths[b]` keys, of which a page
      has `each`, are not negative and less than `limit`.
    - `slots`: each is less than `limit`.
    - `heads`: `each` is a multiple of `limit`, which is not 0.
    - `sizes`: `each` is `limit`: of a dynamic size that must be a static one.

    ```mlir
    #posenc.bound<kind = pages, input = 4, limit = [-2], each = [16], lengths = 3>
    ```

    Constraints:
    - (bound_c1) `input` is not negative; `limit` has one or two factors, `each`
      none or one.
    - (bound_c2) `pages`, `heads` and `sizes` have `each`; `lengths` and `slots`
      do not.
    - (bound_c3) `pages` has `lengths`, the number of an input; others do not.
  }];
  let parameters = (ins
    EnumParameter<Posenc_BoundKind>:$kind,
    AttrParameter<"int64_t", "the input">:$input,
    ArrayRefParameter<"int64_t", "factors of the limit">:$limit,
    OptionalArrayRefParameter<"int64_t", "factors of the size of a part">:$each,
    AttrParameter<"int64_t", "the input of lengths, or -1">:$lengths);
  let hasCustomAssemblyFormat = 1;
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
    memory it may be, or -1 if it must not overlap any input. `bounds`, left out
    if there are none, are what the entries check besides.

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
    - (abi_c6) bounds are those of inputs that are tensors, of rank 1 or 2 with
      elements i64 or i32 unless they are of `heads`, or any of `sizes`, and
      name sizes that exist.
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::posenc::ArgAttr">:$inputs,
    ArrayRefParameter<"::mlir::posenc::ArgAttr">:$outputs,
    OptionalArrayRefParameter<"int64_t">:$sizes,
    OptionalArrayRefParameter<"int64_t">:$in_place,
    OptionalArrayRefParameter<"::mlir::posenc::BoundAttr">:$bounds);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // POSENC_IR_ABIATTRS_TD
