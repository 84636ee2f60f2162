//===- create-kernels.mlir - destinations and C signatures ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-create-kernels --split-input-file --verify-diagnostics | FileCheck %s

// Sizes that the operation requires to be equal become one size; q_out may
// alias q.
// CHECK-LABEL: func.func @rope
// CHECK-SAME: (%[[Q:.*]]: tensor<?x?x8x16xf32> {bufferization.writable = false, posenc.name = "q"}, %{{.*}}: tensor<?x?xi64> {{.*}}, %[[OUT:.*]]: memref<?x?x8x16xf32, strided<[?, ?, ?, 1]>>)
// CHECK-SAME: #posenc.arg<"q", tensor<?x?x8x16xf32>, [0, 1]>, #posenc.arg<"in1", tensor<?x?xi64>, [0, 1]>
// CHECK-SAME: outputs = [#posenc.arg<"out0", tensor<?x?x8x16xf32>, [0, 1]>], sizes = [-1, -1], in_place = [0]
// CHECK: %[[TO:.*]] = bufferization.to_tensor %[[OUT]] restrict writable
// CHECK: %[[R:.*]] = posenc.rope {{.*}} outs(%[[TO]] :
// CHECK: bufferization.materialize_in_destination %[[R]] in restrict writable %[[OUT]]
// CHECK: return{{$}}
func.func @rope(%q: tensor<?x?x8x16xf32> {posenc.name = "q"}, %p: tensor<?x?xi64>) -> tensor<?x?x8x16xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 16> ins(%q : tensor<?x?x8x16xf32>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%q : tensor<?x?x8x16xf32>)
  return %r : tensor<?x?x8x16xf32>
}

// -----

// The size of a result that a scalar argument determines is not passed.
// CHECK-LABEL: func.func @table
// CHECK-SAME: sizes = [1], in_place = [-1]
func.func @table(%first: i64, %n: index) -> tensor<?x16xf32> {
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 16> positions(%first : i64) outs(%e : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}

// -----

// Elements of i8 are u8 in the C signature if the user says so.
// CHECK-LABEL: func.func @bytes
// CHECK-SAME: #posenc.arg<"x", tensor<?xui8>, [0]>, #posenc.arg<"y", tensor<?xi8>, [0]>
// CHECK-SAME: outputs = [#posenc.arg<"out0", tensor<?xui8>, [0]>]
func.func @bytes(%x: tensor<?xi8> {posenc.name = "x", posenc.unsigned}, %y: tensor<?xi8> {posenc.name = "y"}) -> (tensor<?xi8> {posenc.unsigned}) {
  %r = linalg.max ins(%x, %y : tensor<?xi8>, tensor<?xi8>) outs(%x : tensor<?xi8>) -> tensor<?xi8>
  return %r : tensor<?xi8>
}

// -----

// expected-error@+1 {{'posenc.unsigned' needs a tensor of i8, got 'tensor<4xf32>'}}
func.func @floats(%x: tensor<4xf32> {posenc.unsigned}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{type 'tensor<4xui8>' is not supported: expected i8 with 'posenc.unsigned' for u8}}
func.func @unsigned(%x: tensor<4xui8>) -> tensor<4xui8> {
  return %x : tensor<4xui8>
}

// -----

// These two sizes cannot be equal.
func.func @unequal(%a: tensor<4xf32>, %b: tensor<5xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %0 = tensor.cast %a : tensor<4xf32> to tensor<?xf32>
  %1 = tensor.cast %b : tensor<5xf32> to tensor<?xf32>
  // expected-error @below {{sizes of 'linalg.map' cannot match: expected 5, got 4}}
  %r = linalg.map { arith.addf } ins(%0, %1 : tensor<?xf32>, tensor<?xf32>) outs(%o : tensor<?xf32>)
  return %r : tensor<?xf32>
}

// -----

// Two ropes of one input: neither result may alias it, because the other rope
// still reads it.
// CHECK-LABEL: func.func @both
// CHECK-SAME: in_place = [-1, -1]
func.func @both(%x: tensor<4x16xf32>, %p: tensor<4xi64>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %a = posenc.rope half #posenc.frequencies<dim = 16> ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  %b = posenc.rope interleaved #posenc.frequencies<dim = 16> ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  return %a, %b : tensor<4x16xf32>, tensor<4x16xf32>
}

// -----

// Self-attention of a batch has the sizes B and S. The whole output is written,
// so its initial contents are unused.
// CHECK-LABEL: func.func @attention
// CHECK-SAME: %[[OUT:[^:]+]]: memref<?x?x8x16xf32,
// CHECK-SAME: inputs = [#posenc.arg<"in0", tensor<?x?x8x16xf32>, [0, 1]>, #posenc.arg<"in1", tensor<?x?x2x16xf32>, [0, 1]>, #posenc.arg<"in2", tensor<?x?xi64>, [0, 1]>]
// CHECK-SAME: outputs = [#posenc.arg<"out0", tensor<?x?x8x16xf32>, [0, 1]>], sizes = [-1, -1], in_place = [-1]
// CHECK: %[[TO:.*]] = bufferization.to_tensor %[[OUT]] restrict writable
// CHECK: posenc.attention {{.*}} outs(%[[TO]] :
func.func @attention(%q: tensor<?x?x8x16xf32>, %k: tensor<?x?x2x16xf32>, %p: tensor<?x?xi64>) -> tensor<?x?x8x16xf32> {
  %r = posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 16>>
    key_rotation = <pairing = half, frequencies = <dim = 16>>
    ins(%q, %k, %k : tensor<?x?x8x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x16xf32>)
    query_positions(%p : tensor<?x?xi64>) key_positions(%p : tensor<?x?xi64>)
    outs(%q : tensor<?x?x8x16xf32>)
  return %r : tensor<?x?x8x16xf32>
}

// -----

// A decode step has the sizes B and K.
// CHECK-LABEL: func.func @decode
// CHECK-SAME: inputs = [#posenc.arg<"in0", tensor<?x1x8x16xf16>, [0]>, #posenc.arg<"in1", tensor<?x2x?x16xf16>, [0, 1]>, #posenc.arg<"in2", tensor<?x2x?x16xf16>, [0, 1]>, #posenc.arg<"in3", tensor<?xi64>, [0]>]
// CHECK-SAME: outputs = [#posenc.arg<"out0", tensor<?x1x8x16xf16>, [0]>], sizes = [-1, -1]
func.func @decode(%q: tensor<?x1x8x16xf16>, %k: tensor<?x2x?x16xf16>, %v: tensor<?x2x?x16xf16>, %n: tensor<?xi64>) -> tensor<?x1x8x16xf16> {
  %r = posenc.attention key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x8x16xf16>, tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16>)
    lengths(%n : tensor<?xi64>) outs(%q : tensor<?x1x8x16xf16>)
  return %r : tensor<?x1x8x16xf16>
}

// -----

// Results alias the caches, so that rows that are not appended keep their
// contents.
// CHECK-LABEL: func.func @append
// CHECK-SAME: %[[K:[^:]+]]: tensor<?x?x2x16xf16>{{.*}}, %[[N:[^:]+]]: tensor<?xi64>{{.*}}, %[[A:[^:]+]]: tensor<?x?x2x16xf16>{{.*}}, %[[B:[^:]+]]: tensor<?x?x2x16xf16>
// CHECK-SAME: outputs = [#posenc.arg<"out0", tensor<?x?x2x16xf16>, [0, 2]>, #posenc.arg<"out1", tensor<?x?x2x16xf16>, [0, 2]>], sizes = [-1, -1, -1], in_place = [2, 3]
// CHECK: %[[AC:.*]] = linalg.copy ins(%[[A]] :
// CHECK: %[[BC:.*]] = linalg.copy ins(%[[B]] :
// CHECK: posenc.kv_append {{.*}} outs(%[[AC]], %[[BC]] :
func.func @append(%k: tensor<?x?x2x16xf16>, %n: tensor<?xi64>, %a: tensor<?x?x2x16xf16>, %b: tensor<?x?x2x16xf16>) -> (tensor<?x?x2x16xf16>, tensor<?x?x2x16xf16>) {
  %r:2 = posenc.kv_append ins(%k, %k : tensor<?x?x2x16xf16>, tensor<?x?x2x16xf16>) lengths(%n : tensor<?xi64>)
    outs(%a, %b : tensor<?x?x2x16xf16>, tensor<?x?x2x16xf16>)
  return %r#0, %r#1 : tensor<?x?x2x16xf16>, tensor<?x?x2x16xf16>
}

// -----

// Private functions are not changed.
// CHECK-LABEL: func.func private @helper
// CHECK-NOT: posenc.abi
func.func private @helper(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

// -----

// A size that is computed from other sizes is a term.
// CHECK-LABEL: func.func @product
// CHECK-SAME: outputs = [#posenc.arg<"out0", tensor<?x16xf32>, [0]>], sizes = [-2], in_place = [-1],
// CHECK-SAME: terms = [#posenc.term<value, ()[s0, s1, s2] -> (s2 * s2)>]
func.func @product(%first: i64, %n: index) -> tensor<?x16xf32> {
  %m = arith.muli %n, %n : index
  %e = tensor.empty(%m) : tensor<?x16xf32>
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 16> positions(%first : i64) outs(%e : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}

// -----

// The rows of the reshaped tensor are as many as batch x sequence.
// CHECK-LABEL: func.func @reshaped
// CHECK-SAME: sizes = [-1, -1, -1], in_place = [-1], {{.*}}relations = [#posenc.relation<equal, ()[s0, s1, s2, s3, s4] -> (s0, s1 * s2)>]
func.func @reshaped(%x: tensor<?x16xf32>, %p: tensor<?x?xi64>) -> tensor<?x?x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %p, %c0 : tensor<?x?xi64>
  %s = tensor.dim %p, %c1 : tensor<?x?xi64>
  %y = tensor.expand_shape %x [[0, 1], [2]] output_shape [%b, %s, 16] : tensor<?x16xf32> into tensor<?x?x16xf32>
  %r = posenc.rope half #posenc.frequencies<dim = 16> ins(%y : tensor<?x?x16xf32>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%y : tensor<?x?x16xf32>)
  return %r : tensor<?x?x16xf32>
}

// -----

// A slice must lie within its tensor, also in a private function.
// CHECK-LABEL: func.func @sliced
// CHECK-SAME: relations = [#posenc.relation<at_most, ()[s0, s1, s2] -> (0, s2)>, #posenc.relation<at_most, ()[s0, s1, s2] -> (s2 + 4, s0)>]
func.func private @take(%x: tensor<?xf32>, %n: index) -> tensor<4xf32> {
  %s = tensor.extract_slice %x[%n] [4] [1] : tensor<?xf32> to tensor<4xf32>
  return %s : tensor<4xf32>
}
func.func @sliced(%x: tensor<?xf32>, %n: index) -> tensor<4xf32> {
  %s = call @take(%x, %n) : (tensor<?xf32>, index) -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// A read in a loop is checked if the loop has an iteration.
// CHECK-LABEL: func.func @read
// CHECK-SAME: terms = [#posenc.term<quotient, ()[s0, s1, s2, s3] -> (s0 - 1, 2)>, #posenc.term<if_less, ()[s0, s1, s2, s3, s4] -> (0, s0, s4 + 1, s1)>]
// CHECK-SAME: relations = [#posenc.relation<at_most, ()[s0, s1, s2, s3, s4, s5] -> (s5, s1)>]
func.func @read(%x: tensor<?xf32>, %t: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%x : tensor<?xf32>) {
  ^bb0(%a: f32):
    %i = linalg.index 0 : index
    %c2 = arith.constant 2 : index
    %h = arith.divui %i, %c2 : index
    %y = tensor.extract %t[%h] : tensor<?xf32>
    linalg.yield %y : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// Indices that depend on elements are clamped to the tensor, those that are loops
// within its static size are not. The result may overwrite `x`, but not a table
// that is read at other indices.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: in_place = [0], bounds = [#posenc.bound<kind = rows, input = 2, limit = [9]>]
// CHECK: %[[C:.*]] = linalg.index 1
// CHECK: %[[LOW:.*]] = arith.minsi %{{.*}}, %c8
// CHECK: %[[I:.*]] = arith.maxsi %[[LOW]], %c0
// CHECK: tensor.extract %{{.*}}[%[[I]], %[[C]]]
// CHECK-LABEL: func.func @own_rows
// CHECK-SAME: in_place = [-1]
func.func @rows(%x: tensor<?x64xf32>, %t: tensor<9x64xf32>, %p: tensor<?xi64>) -> tensor<?x64xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x, %p : tensor<?x64xf32>, tensor<?xi64>) outs(%x : tensor<?x64xf32>) {
  ^bb0(%a: f32, %n: i64, %out: f32):
    %i = arith.index_cast %n : i64 to index
    %j = linalg.index 1 : index
    %b = tensor.extract %t[%i, %j] : tensor<9x64xf32>
    %y = arith.addf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}
func.func @own_rows(%x: tensor<9x64xf32>, %p: tensor<9xi64>) -> tensor<9x64xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x, %p : tensor<9x64xf32>, tensor<9xi64>) outs(%x : tensor<9x64xf32>) {
  ^bb0(%a: f32, %n: i64, %out: f32):
    %i = arith.index_cast %n : i64 to index
    %j = linalg.index 1 : index
    %b = tensor.extract %x[%i, %j] : tensor<9x64xf32>
    %y = arith.addf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<9x64xf32>
  return %r : tensor<9x64xf32>
}

// -----

// Entry points check what the module asserts about the only element of an input.
// CHECK-LABEL: func.func @element
// CHECK-SAME: bounds = [#posenc.bound<kind = lengths, input = 1, limit = [-1]>]
// CHECK-NOT: cf.assert
func.func @element(%x: tensor<?xf32>, %n: tensor<1xi32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %size = tensor.dim %x, %c0 : tensor<?xf32>
  %limit = arith.index_cast %size : index to i64
  %length = tensor.extract %n[%c0] : tensor<1xi32>
  %wide = arith.extsi %length : i32 to i64
  %c = arith.cmpi ule, %wide, %limit : i64
  cf.assert %c, "too long"
  %r = linalg.exp ins(%x : tensor<?xf32>) outs(%x : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// Entry points check what the module asserts about sizes.
// CHECK-LABEL: func.func @asserted
// CHECK-SAME: sizes = [-1],
// CHECK-NOT: cf.assert
func.func @asserted(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %a = tensor.dim %x, %c0 : tensor<?xf32>
  %b = tensor.dim %y, %c0 : tensor<?xf32>
  %c = arith.cmpi eq, %a, %b : index
  cf.assert %c, "sizes differ"
  return %x : tensor<?xf32>
}

// -----

func.func @data(%x: tensor<?xf32>, %p: tensor<2xi64>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %v = tensor.extract %p[%c0] : tensor<2xi64>
  %i = arith.index_cast %v : i64 to index
  // expected-error @below {{sizes of 'tensor.extract_slice' depend on tensor elements}}
  %s = tensor.extract_slice %x[%i] [4] [1] : tensor<?xf32> to tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// expected-error @below {{type 'tensor<4xi16>' is not supported in a C signature: expected elements f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i64, i32, i8, ui8, i1 or index (arg_c1)}}
func.func @bytes(%x: tensor<4xi16>) {
  return
}

// -----

// expected-error @below {{expected a function that ends with func.return}}
func.func @endless(%x: tensor<4xf32>) -> tensor<4xf32> {
  ub.unreachable
}

// -----

// Callers of the function would not pass the additional arguments.
// expected-error @below {{a kernel cannot be called by other functions: make this function private}}
func.func @called(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @caller(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = call @called(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// Entry points check the elements that are used as indices.
// CHECK-LABEL: func.func @bounds
// CHECK-SAME: bounds = [#posenc.bound<kind = heads, input = 0, limit = [-4], each = [-2]>, #posenc.bound<kind = lengths, input = 2, limit = [-5, 4]>, #posenc.bound<kind = pages, input = 3, limit = [-3], each = [4], lengths = 2>], size_names
func.func @bounds(%q: tensor<?x1x?x8xf32>, %k: tensor<?x4x?x8xf32>, %n: tensor<?xi64>, %t: tensor<?x?xi32>) -> tensor<?x1x?x8xf32> {
  %r = posenc.attention ins(%q, %k, %k : tensor<?x1x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>)
    lengths(%n : tensor<?xi64>) block_table(%t : tensor<?x?xi32>) outs(%q : tensor<?x1x?x8xf32>)
  return %r : tensor<?x1x?x8xf32>
}

// -----

// CHECK-LABEL: func.func @bounds_of_starts
// CHECK-SAME: bounds = [#posenc.bound<kind = lengths, input = 3, limit = [-3]>, #posenc.bound<kind = starts, input = 2, limit = [-1], each = [-2]>], size_names
func.func @bounds_of_starts(%q: tensor<?x4x8xf32>, %k: tensor<?x?x2x8xf32>, %a: tensor<?xi64>, %n: tensor<?xi32>) -> tensor<?x4x8xf32> {
  %r = posenc.attention ins(%q, %k, %k : tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>)
    lengths(%n : tensor<?xi32>) cu_seqlens(%a : tensor<?xi64>) outs(%q : tensor<?x4x8xf32>)
  return %r : tensor<?x4x8xf32>
}

// -----

// CHECK-LABEL: func.func @bounds_of_slots
// CHECK-SAME: bounds = [#posenc.bound<kind = slots, input = 1, limit = [-2, 4]>], size_names
func.func @bounds_of_slots(%x: tensor<?x2x8xf32>, %s: tensor<?xi64>, %k: tensor<?x4x2x8xf32>, %v: tensor<?x4x2x8xf32>) -> (tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>) {
  %r:2 = posenc.kv_append ins(%x, %x : tensor<?x2x8xf32>, tensor<?x2x8xf32>) slots(%s : tensor<?xi64>)
    outs(%k, %v : tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>)
  return %r#0, %r#1 : tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>
}

// -----

// A dynamic size that must equal a static one.
// CHECK-LABEL: func.func @static_size
// CHECK-SAME: relations = [#posenc.relation<equal, ()[s0, s1, s2, s3] -> (s1, 3)>]
func.func @static_size(%x: tensor<3x?x8xf32>, %p: tensor<?x?xi64>) -> tensor<3x?x8xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<3x?x8xf32>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%x : tensor<3x?x8xf32>)
  return %r : tensor<3x?x8xf32>
}

// -----

// The size of the splat must equal that of another tensor.
func.func @large_constant() -> tensor<1000000x1000000xf32> {
  // expected-error @below {{a constant of type 'tensor<1000000x1000000xf32>' has more than 256 MiB of equal elements: make it an argument}}
  %c = arith.constant dense<1.0> : tensor<1000000x1000000xf32>
  return %c : tensor<1000000x1000000xf32>
}
