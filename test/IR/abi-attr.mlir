//===- abi-attr.mlir - the C signature of a kernel ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-roundtrip --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --mlir-print-op-generic \
// RUN:   | posenc-opt --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --emit-bytecode \
// RUN:   | posenc-opt --mlir-print-local-scope | FileCheck %s

// CHECK: func.func private @arg_static() attributes {test.attr = #posenc.arg<"x", tensor<4x128xf32>, []>}
func.func private @arg_static() attributes {test.attr = #posenc.arg<"x", tensor<4x128xf32>, []>}

// CHECK: func.func private @arg_dynamic() attributes {test.attr = #posenc.arg<"q", tensor<?x?x32x128xf32>, [0, 1]>}
func.func private @arg_dynamic() attributes {test.attr = #posenc.arg<"q", tensor<?x?x32x128xf32>, [0, 1]>}

// CHECK: func.func private @arg_repeated_size() attributes {test.attr = #posenc.arg<"square_2", tensor<?x?xbf16>, [3, 3]>}
func.func private @arg_repeated_size() attributes {test.attr = #posenc.arg<"square_2", tensor<?x?xbf16>, [3, 3]>}

// CHECK: func.func private @arg_tensor_f64() attributes {test.attr = #posenc.arg<"_f64", tensor<?xf64>, [0]>}
func.func private @arg_tensor_f64() attributes {test.attr = #posenc.arg<"_f64", tensor<?xf64>, [0]>}

// CHECK: func.func private @arg_tensor_f32() attributes {test.attr = #posenc.arg<"_f32", tensor<?xf32>, [0]>}
func.func private @arg_tensor_f32() attributes {test.attr = #posenc.arg<"_f32", tensor<?xf32>, [0]>}

// CHECK: func.func private @arg_tensor_f16() attributes {test.attr = #posenc.arg<"_f16", tensor<?xf16>, [0]>}
func.func private @arg_tensor_f16() attributes {test.attr = #posenc.arg<"_f16", tensor<?xf16>, [0]>}

// CHECK: func.func private @arg_tensor_bf16() attributes {test.attr = #posenc.arg<"_bf16", tensor<?xbf16>, [0]>}
func.func private @arg_tensor_bf16() attributes {test.attr = #posenc.arg<"_bf16", tensor<?xbf16>, [0]>}

// CHECK: func.func private @arg_tensor_i64() attributes {test.attr = #posenc.arg<"_i64", tensor<?xi64>, [0]>}
func.func private @arg_tensor_i64() attributes {test.attr = #posenc.arg<"_i64", tensor<?xi64>, [0]>}

// CHECK: func.func private @arg_tensor_i32() attributes {test.attr = #posenc.arg<"_i32", tensor<?xi32>, [0]>}
func.func private @arg_tensor_i32() attributes {test.attr = #posenc.arg<"_i32", tensor<?xi32>, [0]>}

// CHECK: func.func private @arg_tensor_index() attributes {test.attr = #posenc.arg<"_index", tensor<?xindex>, [0]>}
func.func private @arg_tensor_index() attributes {test.attr = #posenc.arg<"_index", tensor<?xindex>, [0]>}

// CHECK: func.func private @arg_i64() attributes {test.attr = #posenc.arg<"n", i64, []>}
func.func private @arg_i64() attributes {test.attr = #posenc.arg<"n", i64, []>}

// CHECK: func.func private @arg_i32() attributes {test.attr = #posenc.arg<"n", i32, []>}
func.func private @arg_i32() attributes {test.attr = #posenc.arg<"n", i32, []>}

// CHECK: func.func private @arg_index() attributes {test.attr = #posenc.arg<"n", index, []>}
func.func private @arg_index() attributes {test.attr = #posenc.arg<"n", index, []>}

// CHECK: func.func private @arg_tensor_i1() attributes {test.attr = #posenc.arg<"_i1", tensor<?xi1>, [0]>}
func.func private @arg_tensor_i1() attributes {test.attr = #posenc.arg<"_i1", tensor<?xi1>, [0]>}

// CHECK: func.func private @arg_f32() attributes {test.attr = #posenc.arg<"x", f32, []>}
func.func private @arg_f32() attributes {test.attr = #posenc.arg<"x", f32, []>}

// CHECK: func.func private @arg_f64() attributes {test.attr = #posenc.arg<"x", f64, []>}
func.func private @arg_f64() attributes {test.attr = #posenc.arg<"x", f64, []>}

// CHECK: func.func private @arg_rank_zero() attributes {test.attr = #posenc.arg<"x", tensor<f32>, []>}
func.func private @arg_rank_zero() attributes {test.attr = #posenc.arg<"x", tensor<f32>, []>}

// CHECK: func.func private @abi() attributes {test.attr = #posenc.abi<inputs = [#posenc.arg<"q", tensor<?x?x8xf32>, [0, 1]>, #posenc.arg<"p", tensor<?x?xi64>, [0, 1]>], outputs = [#posenc.arg<"r", tensor<?x?x8xf32>, [0, 1]>], sizes = [-1, -1], in_place = [0]>}
func.func private @abi() attributes {test.attr = #posenc.abi<inputs = [#posenc.arg<"q", tensor<?x?x8xf32>, [0, 1]>, #posenc.arg<"p", tensor<?x?xi64>, [0, 1]>], outputs = [#posenc.arg<"r", tensor<?x?x8xf32>, [0, 1]>], sizes = [-1, -1], in_place = [0]>}

// CHECK: func.func private @abi_size_from_input() attributes {test.attr = #posenc.abi<inputs = [#posenc.arg<"n", index, []>], outputs = [#posenc.arg<"table", tensor<?x64xf32>, [0]>], sizes = [0], in_place = [-1]>}
func.func private @abi_size_from_input() attributes {test.attr = #posenc.abi<inputs = [#posenc.arg<"n", index, []>], outputs = [#posenc.arg<"table", tensor<?x64xf32>, [0]>], sizes = [0], in_place = [-1]>}

// CHECK: func.func private @abi_empty() attributes {test.attr = #posenc.abi<inputs = [], outputs = [], sizes = [], in_place = []>}
func.func private @abi_empty() attributes {test.attr = #posenc.abi<inputs = [], outputs = [], sizes = [], in_place = []>}

// CHECK: func.func private @bounds() attributes {test.attr = #posenc.abi<inputs = [#posenc.arg<"n", tensor<?xi64>, [0]>, #posenc.arg<"t", tensor<?x?xi32>, [0, 1]>, #posenc.arg<"k", tensor<?x16x?x8xf32>, [2, 3]>], outputs = [], sizes = [-1, -1, -1, -1], in_place = [], bounds = [#posenc.bound<kind = lengths, input = 0, limit = [16, -2]>, #posenc.bound<kind = pages, input = 1, limit = [-3], each = [16], lengths = 0>, #posenc.bound<kind = heads, input = 2, limit = [-4], each = [32]>]>}
func.func private @bounds() attributes {test.attr = #posenc.abi<inputs = [#posenc.arg<"n", tensor<?xi64>, [0]>, #posenc.arg<"t", tensor<?x?xi32>, [0, 1]>, #posenc.arg<"k", tensor<?x16x?x8xf32>, [2, 3]>], outputs = [], sizes = [-1, -1, -1, -1], in_place = [], bounds = [#posenc.bound<kind = lengths, input = 0, limit = [16, -2]>, #posenc.bound<lengths = 0, kind = pages, each = [16], limit = [-3], input = 1>, #posenc.bound<kind = heads, input = 2, limit = [-4], each = [32]>]>}

// CHECK: func.func private @shape_only() attributes {test.attr = #posenc.abi<inputs = [#posenc.arg<"a", tensor<?xf32>, [0]>, #posenc.arg<"n", tensor<?xi64>, [0]>, #posenc.arg<"b", tensor<?xf32>, [0]>], outputs = [], sizes = [-1], in_place = [], shape_only = [0, 2], bounds = [#posenc.bound<kind = lengths, input = 1, limit = [-1]>]>}
func.func private @shape_only() attributes {test.attr = #posenc.abi<inputs = [#posenc.arg<"a", tensor<?xf32>, [0]>, #posenc.arg<"n", tensor<?xi64>, [0]>, #posenc.arg<"b", tensor<?xf32>, [0]>], outputs = [], sizes = [-1], in_place = [], shape_only = [0, 2], bounds = [#posenc.bound<kind = lengths, input = 1, limit = [-1]>]>}

// CHECK: func.func private @shape_only_alone() attributes {test.attr = #posenc.abi<inputs = [#posenc.arg<"a", tensor<4xf32>, []>], outputs = [], sizes = [], in_place = [], shape_only = [0]>}
func.func private @shape_only_alone() attributes {test.attr = #posenc.abi<inputs = [#posenc.arg<"a", tensor<4xf32>, []>], outputs = [], sizes = [], in_place = [], shape_only = [0]>}

// CHECK: func.func private @bound_starts() attributes {test.attr = #posenc.bound<kind = starts, input = 4, limit = [-1], each = [-2]>}
func.func private @bound_starts() attributes {test.attr = #posenc.bound<kind = starts, input = 4, limit = [-1], each = [-2]>}

// CHECK: func.func private @relations() attributes {test.attr = #posenc.abi<inputs = [#posenc.arg<"x", tensor<?xf32>, [0]>, #posenc.arg<"n", index, []>], outputs = [#posenc.arg<"y", tensor<?x?xf32>, [1, 2]>], sizes = [-1, -2, -3], in_place = [-1], terms = [#posenc.term<quotient, ()[s0, s1, s2, s3, s4] -> (s0, s4)>, #posenc.term<value, ()[s0, s1, s2, s3, s4, s5] -> (s4 * 2 + s5)>], relations = [#posenc.relation<equal, ()[s0, s1, s2, s3, s4, s5] -> (s0, s4 * s5)>, #posenc.relation<at_most, ()[s0, s1, s2, s3, s4] -> (1, s4)>]>}
func.func private @relations() attributes {test.attr = #posenc.abi<inputs = [#posenc.arg<"x", tensor<?xf32>, [0]>, #posenc.arg<"n", index, []>], outputs = [#posenc.arg<"y", tensor<?x?xf32>, [1, 2]>], sizes = [-1, -2, -3], in_place = [-1], relations = [#posenc.relation<equal, ()[s0, s1, s2, s3, s4, s5] -> (s0, s4 * s5)>, #posenc.relation<at_most, ()[s0, s1, s2, s3, s4] -> (1, s4)>], terms = [#posenc.term<quotient, ()[s0, s1, s2, s3, s4] -> (s0, s4)>, #posenc.term<value, ()[s0, s1, s2, s3, s4, s5] -> (s4 * 2 + s5)>]>}

// CHECK: func.func private @elements() attributes {test.attr = #posenc.abi<inputs = [#posenc.arg<"t", tensor<1x1xi64>, []>, #posenc.arg<"n", tensor<i32>, []>], outputs = [#posenc.arg<"y", tensor<?xf32>, [0]>], sizes = [-2], in_place = [-1], terms = [#posenc.term<max, ()[s0, s1, s2] -> (s1, s2)>], relations = [#posenc.relation<at_most, ()[s0, s1, s2, s3] -> (0, s1)>]>}
func.func private @elements() attributes {test.attr = #posenc.abi<inputs = [#posenc.arg<"t", tensor<1x1xi64>, []>, #posenc.arg<"n", tensor<i32>, []>], outputs = [#posenc.arg<"y", tensor<?xf32>, [0]>], sizes = [-2], in_place = [-1], terms = [#posenc.term<max, ()[s0, s1, s2] -> (s1, s2)>], relations = [#posenc.relation<at_most, ()[s0, s1, s2, s3] -> (0, s1)>]>}

// CHECK: func.func private @term_kinds() attributes {test.attr = [#posenc.term<remainder, ()[s0] -> (s0, 8)>, #posenc.term<min, ()[s0] -> (s0, 8)>, #posenc.term<max, ()[s0] -> (s0, 8)>, #posenc.term<if_less, ()[s0] -> (s0, 8, 0, 1)>, #posenc.term<if_equal, ()[s0] -> (s0, 8, 0, 1)>]}
func.func private @term_kinds() attributes {test.attr = [#posenc.term<remainder, ()[s0] -> (s0, 8)>, #posenc.term<min, ()[s0] -> (s0, 8)>, #posenc.term<max, ()[s0] -> (s0, 8)>, #posenc.term<if_less, ()[s0] -> (s0, 8, 0, 1)>, #posenc.term<if_equal, ()[s0] -> (s0, 8, 0, 1)>]}

// CHECK: func.func private @bound_slots() attributes {test.attr = #posenc.bound<kind = slots, input = 2, limit = [-1, 16]>}
func.func private @bound_slots() attributes {test.attr = #posenc.bound<kind = slots, input = 2, limit = [-1, 16]>}

// CHECK: func.func private @size_names() attributes {test.attr = #posenc.abi<inputs = [#posenc.arg<"x", tensor<?x?xf32>, [0, 1]>], outputs = [], sizes = [-1, -1], in_place = [], size_names = ["rows", "columns"]>}
func.func private @size_names() attributes {test.attr = #posenc.abi<inputs = [#posenc.arg<"x", tensor<?x?xf32>, [0, 1]>], outputs = [], sizes = [-1, -1], in_place = [], size_names = ["rows", "columns"]>}

// CHECK: func.func private @documented(tensor<?xf32> {posenc.sizes = ["rows"]}) attributes {posenc.doc = "Does nothing."}
func.func private @documented(tensor<?xf32> {posenc.sizes = ["rows"]}) attributes {posenc.doc = "Does nothing."}

// CHECK: func.func private @named(i64 {posenc.name = "first"}) -> (tensor<8xf32> {posenc.name = "table"})
func.func private @named(i64 {posenc.name = "first"}) -> (tensor<8xf32> {posenc.name = "table"})
