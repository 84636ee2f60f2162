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
    the enclosing `#posenc.abi` that it equals. `layout` names the order of the
    elements of a matrix that is packed (`posenc.packed`).

    ```mlir
    #posenc.arg<"q", tensor<?x?x32x128xf32>, [0, 1]>
    ```

    Constraints:
    - (arg_c1) the type is a ranked tensor of f64, f32, f16, bf16, f8E4M3FN,
      f8E5M2, i64, i32, i8, i1 or index, or an i64, i32, index, f32 or f64
      scalar.
    - (arg_c2) there is one size for every dynamic dimension, none negative.
    - (arg_c3) the name is an identifier in C and in C++, and no keyword.
  }];
  let parameters = (ins
    StringRefParameter<"name in the header">:$name,
    "::mlir::Type":$type,
    OptionalArrayRefParameter<"int64_t", "size of each `?`">:$sizes,
    OptionalParameter<"::mlir::StringAttr", "of a packed matrix">:$layout);
  let builders = [
    AttrBuilder<(ins "::llvm::StringRef":$name, "::mlir::Type":$type,
                     "::llvm::ArrayRef<int64_t>":$sizes), [{
      return $_get($_ctxt, name, type, sizes, ::mlir::StringAttr());
    }]>
  ];
  let assemblyFormat = [{
    `<` $name `,` $type `,` `[` (`]`) : ($sizes^ `]`)? (`,` $layout^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Posenc_BoundKind : Posenc_Enum<"BoundKind",
    "which numbers of a kernel's inputs must be checked", [
  I32EnumCase<"Lengths", 0, "lengths">,
  I32EnumCase<"Starts", 1, "starts">,
  I32EnumCase<"Pages", 2, "pages">,
  I32EnumCase<"Slots", 3, "slots">,
  I32EnumCase<"Heads", 4, "heads">,
  I32EnumCase<"Rows", 5, "rows">
]>;

def Posenc_BoundAttr : Posenc_Attr<"Bound", "bound"> {
  let summary = "what must hold of an input before a kernel runs";
  let description = [{
    Numbers of the tensor `input` of the enclosing `#posenc.abi` are indices of
    other tensors, which `limit` and `each` are sizes of: products of factors, of
    which one that is not negative is a number, and `-1 - n` is symbol `n` of the
    signature.

    - `lengths`: each is between 0 and `limit`.
    - `starts`: none is negative, less than the one before it or greater than
      `limit`; with `each` there is one more of them than that.
    - `pages`: in row `b`, those of the first `lengths[b]` keys, of which a page
      has `each`, are not negative and less than `limit`.
    - `slots`: each is less than `limit`.
    - `heads`: `each` is a multiple of `limit`, which is not 0.
    - `rows`: each is not negative and less than `limit`.

    ```mlir
    #posenc.bound<kind = pages, input = 4, limit = [-2], each = [16], lengths = 3>
    ```

    Constraints:
    - (bound_c1) `input` is not negative; `limit` has one or two factors, `each`
      none or one.
    - (bound_c2) `pages` and `heads` have `each`; `lengths`, `slots` and `rows` do
      not.
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

def Posenc_TermKind : Posenc_Enum<"TermKind",
    "how a term follows from its operands", [
  I32EnumCase<"Value", 0, "value">,
  I32EnumCase<"Quotient", 1, "quotient">,
  I32EnumCase<"Remainder", 2, "remainder">,
  I32EnumCase<"Min", 3, "min">,
  I32EnumCase<"Max", 4, "max">,
  I32EnumCase<"IfLess", 5, "if_less">,
  I32EnumCase<"IfEqual", 6, "if_equal">
]>;

def Posenc_TermAttr : Posenc_Attr<"Term", "term"> {
  let summary = "a number that follows from the sizes of a kernel's arguments";
  let description = [{
    The operands are the results of the map, polynomials of the symbols of the
    enclosing `#posenc.abi`.

    - `value`: the operand.
    - `quotient`, `remainder`: of the first operand divided by the second,
      rounded towards minus infinity.
    - `min`, `max`: of the two operands.
    - `if_less`, `if_equal`: the third operand if the first is less than the
      second, or equal to it, else the fourth.

    ```mlir
    #posenc.term<quotient, ()[s0] -> (s0, 64)>
    ```

    Constraints:
    - (term_c1) `value` has one operand, `if_less` and `if_equal` have four,
      others two.
    - (term_c2) operands are sums and products of symbols and constants, nested
      at most 100 deep.
  }];
  let parameters = (ins
    EnumParameter<Posenc_TermKind>:$kind,
    "::mlir::AffineMap":$operands);
  let assemblyFormat = "`<` $kind `,` $operands `>`";
  let genVerifyDecl = 1;
}

def Posenc_RelationKind : Posenc_Enum<"RelationKind",
    "what holds of two sizes", [
  I32EnumCase<"Equal", 0, "equal">,
  I32EnumCase<"AtMost", 1, "at_most">
]>;

def Posenc_RelationAttr : Posenc_Attr<"Relation", "relation"> {
  let summary = "what must hold of the sizes of a kernel's arguments";
  let description = [{
    The map has two results, polynomials of the symbols of the enclosing
    `#posenc.abi`: the first is equal to the second, or at most as large.

    ```mlir
    #posenc.relation<equal, ()[s0, s1, s2] -> (s0, s1 * s2)>
    ```

    Constraints:
    - (relation_c1) the map has two results.
    - (relation_c2) they are sums and products of symbols and constants, nested
      at most 100 deep.
  }];
  let parameters = (ins
    EnumParameter<Posenc_RelationKind>:$kind,
    "::mlir::AffineMap":$sides);
  let assemblyFormat = "`<` $kind `,` $sides `>`";
  let genVerifyDecl = 1;
}

def Posenc_AbiAttr : Posenc_Attr<"Abi", "abi"> {
  let summary = "the C signature of a kernel";
  let description = [{
    Stands on a function whose arguments are the inputs, then the outputs, as
    memrefs whose last dimension is contiguous, with any other strides (or as
    what these are lowered to). `sizes` has an element for each distinct dynamic
    size: -1 if the size is an argument of the C entry point, the number of the
    scalar input that gives it, or `-2 - n` if it is term `n`.
    `terms` are numbers that follow from the sizes, and `relations` are what must
    hold of them before the kernel runs. Their symbols are the sizes, then the
    inputs, of which only scalar ones may be named, then the terms; a term names
    none from itself on.
    `in_place` has one number for each output: the number of the input whose
    memory it may be, or -1 if it must not overlap any input. `shape_only` lists
    the inputs whose elements the kernel never reads: their data may be NULL, or
    any other memory, an output's too. `bounds` are what the entry points check of
    the elements of inputs. `size_names` are the names of the sizes in headers,
    metadata and messages; where they are left out, these are numbered.
    `shape_only`, `bounds`, `size_names`, `terms` and `relations` are left out if
    there are none.

    ```mlir
    #posenc.abi<inputs = [#posenc.arg<"n", index, []>], outputs = [#posenc.arg<"table", tensor<?x64xf32>, [0]>], sizes = [0], in_place = [-1]>
    ```

    Constraints:
    - (abi_c1) every size that an argument names exists.
    - (abi_c2) a size is -1, the number of a scalar input that is an integer, or
      `-2 - n` for a term `n` that exists.
    - (abi_c3) outputs are tensors.
    - (abi_c4) no two arguments have the same name.
    - (abi_c5) `in_place` has one number for each output, -1 or the number of an
      input of the same type and sizes.
    - (abi_c6) bounds are those of inputs that are tensors, of rank 1 or 2 with
      elements i64 or i32 unless they are of `heads`, and name symbols that
      exist.
    - (abi_c7) `shape_only` lists inputs that are tensors, in increasing order,
      and none whose elements a bound checks.
    - (abi_c8) `size_names` is empty or has one name for each size, an identifier in
      C and in C++ that is the name of no argument and of no other size.
    - (abi_c9) terms and relations name sizes that are no terms, scalar inputs
      that are integers, and terms that stand before them.
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::posenc::ArgAttr">:$inputs,
    ArrayRefParameter<"::mlir::posenc::ArgAttr">:$outputs,
    OptionalArrayRefParameter<"int64_t">:$sizes,
    OptionalArrayRefParameter<"int64_t">:$in_place,
    OptionalArrayRefParameter<"int64_t">:$shape_only,
    OptionalArrayRefParameter<"::mlir::posenc::BoundAttr">:$bounds,
    OptionalArrayRefParameter<"::mlir::StringAttr">:$size_names,
    OptionalArrayRefParameter<"::mlir::posenc::TermAttr">:$terms,
    OptionalArrayRefParameter<"::mlir::posenc::RelationAttr">:$relations);
  let extraClassDeclaration = [{
    /// The symbols that terms and relations name: the sizes, the inputs, the
    /// terms.
    int64_t getInputSymbol(int64_t input) const {
      return getSizes().size() + input;
    }
    int64_t getTermSymbol(int64_t term) const {
      return getInputSymbol(getInputs().size()) + term;
    }
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // POSENC_IR_ABIATTRS_TD
