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
    `sizes` gives, for each dynamic dimension of a tensor in order, the index of
    the size in the enclosing `#posenc.abi`. `layout` is the name of the layout
    of a packed matrix (`posenc.packed`).

    ```mlir
    #posenc.arg<"q", tensor<?x?x32x128xf32>, [0, 1]>
    ```

    Constraints:
    - (arg_c1) the type is a ranked tensor of f64, f32, f16, bf16, f8E4M3FN,
      f8E5M2, i64, i32, i8, ui8, i1 or index, or an i64, i32, index, f32 or
      f64 scalar.
    - (arg_c2) there is one size for every dynamic dimension, and none is
      negative.
    - (arg_c3) the name is an identifier in C and in C++: not a keyword, a
      reserved name such as `_Bool`, a type of a parameter such as `int8_t`, or a
      macro of a standard header such as `NULL`.
  }];
  let parameters = (ins
    StringRefParameter<"name in the header">:$name,
    "::mlir::Type":$type,
    OptionalArrayRefParameter<"int64_t", "size of each `?`">:$sizes,
    OptionalParameter<"::mlir::StringAttr", "layout of a packed matrix">:$layout);
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
    "kinds of checks of the elements of a kernel's inputs", [
  I32EnumCase<"Lengths", 0, "lengths">,
  I32EnumCase<"Starts", 1, "starts">,
  I32EnumCase<"Pages", 2, "pages">,
  I32EnumCase<"Slots", 3, "slots">,
  I32EnumCase<"Heads", 4, "heads">,
  I32EnumCase<"Rows", 5, "rows">,
  I32EnumCase<"WrappedRows", 6, "wrapped_rows">
]>;

def Posenc_BoundAttr : Posenc_Attr<"Bound", "bound"> {
  let summary = "a check of an input before a kernel runs";
  let description = [{
    The elements of the tensor `input` of the enclosing `#posenc.abi` are indices
    or lengths of other tensors. `limit` and `each` are sizes of those tensors:
    products of factors, where a factor `n >= 0` is a constant and `-1 - n` is
    symbol `n` of the signature.

    - `lengths`: each element is between 0 and `limit`.
    - `starts`: the elements do not decrease, the first is not negative and the
      last at most `limit`; if `each` is present, there are `each` + 1 elements.
    - `pages`: in row `b`, the elements for the first `lengths[b]` keys are not
      negative and less than `limit`; a page has `each` keys.
    - `slots`: each element is less than `limit`.
    - `heads`: `each` is a multiple of `limit`, which is not 0.
    - `rows`: each element is not negative and less than `limit`.
    - `wrapped_rows`: each element is at least -`limit` and less than `limit`.

    ```mlir
    #posenc.bound<kind = pages, input = 4, limit = [-2], each = [16], lengths = 3>
    ```

    Constraints:
    - (bound_c1) `input` is not negative; `limit` has one or two factors, `each`
      none or one.
    - (bound_c2) `pages` and `heads` have `each`; `lengths`, `slots`, `rows` and
      `wrapped_rows` do not.
    - (bound_c3) `pages` has `lengths`, the index of an input; others do not.
  }];
  let parameters = (ins
    EnumParameter<Posenc_BoundKind>:$kind,
    AttrParameter<"int64_t", "index of the input">:$input,
    ArrayRefParameter<"int64_t", "factors of the limit">:$limit,
    OptionalArrayRefParameter<"int64_t", "factors of the second size">:$each,
    AttrParameter<"int64_t", "index of the input with lengths, or -1">:$lengths);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Posenc_TermKind : Posenc_Enum<"TermKind",
    "kinds of terms", [
  I32EnumCase<"Value", 0, "value">,
  I32EnumCase<"Quotient", 1, "quotient">,
  I32EnumCase<"Remainder", 2, "remainder">,
  I32EnumCase<"Min", 3, "min">,
  I32EnumCase<"Max", 4, "max">,
  I32EnumCase<"IfLess", 5, "if_less">,
  I32EnumCase<"IfEqual", 6, "if_equal">
]>;

def Posenc_TermAttr : Posenc_Attr<"Term", "term"> {
  let summary = "a number that is computed from the sizes of a kernel's arguments";
  let description = [{
    The operands are the results of the map: polynomials of the symbols of the
    enclosing `#posenc.abi`. The symbol of a tensor is its only element. The kind
    gives the value of the term:

    - `value`: the operand.
    - `quotient`, `remainder`: the first operand divided by the second, rounded
      towards minus infinity.
    - `min`, `max`: the smaller or larger of the two operands.
    - `if_less`, `if_equal`: the third operand if the first is less than (or
      equal to) the second, otherwise the fourth.

    ```mlir
    #posenc.term<quotient, ()[s0] -> (s0, 64)>
    ```

    Constraints:
    - (term_c1) `value` has one operand, `if_less` and `if_equal` have four, the
      others have two.
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
    "kinds of relations of two sizes", [
  I32EnumCase<"Equal", 0, "equal">,
  I32EnumCase<"AtMost", 1, "at_most">
]>;

def Posenc_RelationAttr : Posenc_Attr<"Relation", "relation"> {
  let summary = "a requirement on the sizes of a kernel's arguments";
  let description = [{
    The map has two results, polynomials of the symbols of the enclosing
    `#posenc.abi`. The first result must be equal to the second (`equal`), or not
    greater than it (`at_most`).

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
    An attribute of a function whose arguments are the inputs, then the outputs:
    memrefs whose last dimension is contiguous, with arbitrary other strides, or
    the values that these are lowered to.

    - `sizes` has one element for each distinct dynamic size: -1 if the size is
      an argument of the C entry point, the index of the scalar input that gives
      it, or `-2 - n` if it is term `n`.
    - `terms` are numbers that are computed from the sizes, and `relations` are
      requirements that are checked before the kernel runs. Their symbols are the
      sizes, then the inputs, of which only integers may be used, scalars or the
      element of a tensor that has one, then the terms. A term may use only earlier
      terms.
    - `in_place` has one number for each output: the index of the input whose
      memory it may share, or -1 if it must not overlap any input.
    - `shape_only` lists the inputs whose elements the kernel never reads: their
      data may be NULL or any memory, even an output's.
    - `bounds` are checks of the elements of inputs by the entry points.
    - `size_names` are the names of the sizes in headers, metadata and messages;
      by default, sizes are numbered.

    `shape_only`, `bounds`, `size_names`, `terms` and `relations` are omitted if
    they are empty.

    ```mlir
    #posenc.abi<inputs = [#posenc.arg<"n", index, []>], outputs = [#posenc.arg<"table", tensor<?x64xf32>, [0]>], sizes = [0], in_place = [-1]>
    ```

    Constraints:
    - (abi_c1) every size index of an argument exists.
    - (abi_c2) a size is -1, the index of a scalar input that is an integer, or
      `-2 - n` for an existing term `n`.
    - (abi_c3) outputs are tensors.
    - (abi_c4) no two arguments have the same name.
    - (abi_c5) `in_place` has one number for each output, -1 or the index of an
      input with the same type and sizes.
    - (abi_c6) bounds refer to inputs that are tensors, of rank 1 or 2 with i64 or
      i32 elements unless the kind is `heads`, and to existing symbols.
    - (abi_c7) `shape_only` lists inputs that are tensors, in increasing order,
      and none whose elements a bound checks or sizes depend on.
    - (abi_c8) `size_names` is empty or has one name for each size, an identifier
      in C and in C++ that differs from the names of all arguments and other
      sizes.
    - (abi_c9) terms and relations use only sizes that are no terms, inputs that
      are i64, i32 or index scalars or static tensors with one i64 or i32 element,
      and terms; a term uses earlier terms only.
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
    /// Return the symbol of an input or a term. Symbols are numbered: sizes,
    /// inputs, terms.
    int64_t getInputSymbol(int64_t input) const {
      return getSizes().size() + input;
    }
    int64_t getTermSymbol(int64_t term) const {
      return getInputSymbol(getInputs().size()) + term;
    }
    /// Whether a tensor of this type has one element that sizes may depend on:
    /// its type is i64 or i32, and its shape is static.
    static bool isSizeElement(::mlir::Type type);
    /// Whether a term or relation depends on an input: a scalar, or the only
    /// element of a tensor.
    bool hasSizesOf(int64_t input) const;
    /// Returns an input tensor with an element that a term or relation depends
    /// on; null if there is none.
    ArgAttr getSizeElement() const;
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // POSENC_IR_ABIATTRS_TD
