//===- create-kernels.mlir - destinations and C signatures ===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-create-kernels --split-input-file --verify-diagnostics | FileCheck %s

// Sizes that the operation requires to be equal are one; q_out may be q.
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

// A result's size that a scalar argument gives is not passed.
// CHECK-LABEL: func.func @table
// CHECK-SAME: sizes = [1], in_place = [-1]
func.func @table(%first: i64, %n: index) -> tensor<?x16xf32> {
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 16> positions(%first : i64) outs(%e : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}

// -----

// Of two sizes that cannot be equal the first is the one that must hold.
// CHECK-LABEL: func.func @unequal
// CHECK-SAME: bounds = [#posenc.bound<kind = sizes, input = 2, limit = [4], each = [-1]>]
func.func @unequal(%a: tensor<4xf32>, %b: tensor<5xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %0 = tensor.cast %a : tensor<4xf32> to tensor<?xf32>
  %1 = tensor.cast %b : tensor<5xf32> to tensor<?xf32>
  %r = linalg.map { arith.addf } ins(%0, %1 : tensor<?xf32>, tensor<?xf32>) outs(%o : tensor<?xf32>)
  return %r : tensor<?xf32>
}

// -----

// Two ropes of one input: neither result may be it, the other still reads it.
// CHECK-LABEL: func.func @both
// CHECK-SAME: in_place = [-1, -1]
func.func @both(%x: tensor<4x16xf32>, %p: tensor<4xi64>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %a = posenc.rope half #posenc.frequencies<dim = 16> ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  %b = posenc.rope interleaved #posenc.frequencies<dim = 16> ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  return %a, %b : tensor<4x16xf32>, tensor<4x16xf32>
}

// -----

// Attention of one sequence to itself has the sizes B and S; the output is
// written whole, whatever its destination was.
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

// A step of decoding has the sizes B and K.
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

// The rows that caches keep come from the caches, which results may be.
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

// Private functions are left alone.
// CHECK-LABEL: func.func private @helper
// CHECK-NOT: posenc.abi
func.func private @helper(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

// -----

// expected-error @below {{size 0 of result 'tensor<?x16xf32>' does not follow from the arguments}}
func.func @unknown(%first: i64, %n: index) -> tensor<?x16xf32> {
  %m = arith.muli %n, %n : index
  %e = tensor.empty(%m) : tensor<?x16xf32>
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 16> positions(%first : i64) outs(%e : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}

// -----

// expected-error @below {{type 'tensor<4xi8>' has no place in a C signature (arg_c1)}}
func.func @bytes(%x: tensor<4xi8>) {
  return
}

// -----

// expected-error @below {{a kernel ends with a return}}
func.func @endless(%x: tensor<4xf32>) -> tensor<4xf32> {
  ub.unreachable
}

// -----

// Its callers would have to know the arguments that it gets.
// expected-error @below {{a kernel cannot be called by other functions: make this one private}}
func.func @called(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @caller(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = call @called(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// What the entries check of the numbers that are used as indices.
// CHECK-LABEL: func.func @bounds
// CHECK-SAME: bounds = [#posenc.bound<kind = heads, input = 0, limit = [-4], each = [-2]>, #posenc.bound<kind = lengths, input = 2, limit = [-5, 4]>, #posenc.bound<kind = pages, input = 3, limit = [-3], each = [4], lengths = 2>]>}
func.func @bounds(%q: tensor<?x1x?x8xf32>, %k: tensor<?x4x?x8xf32>, %n: tensor<?xi64>, %t: tensor<?x?xi32>) -> tensor<?x1x?x8xf32> {
  %r = posenc.attention ins(%q, %k, %k : tensor<?x1x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>)
    lengths(%n : tensor<?xi64>) block_table(%t : tensor<?x?xi32>) outs(%q : tensor<?x1x?x8xf32>)
  return %r : tensor<?x1x?x8xf32>
}

// -----

// CHECK-LABEL: func.func @bounds_of_starts
// CHECK-SAME: bounds = [#posenc.bound<kind = lengths, input = 3, limit = [-3]>, #posenc.bound<kind = starts, input = 2, limit = [-1], each = [-2]>]>}
func.func @bounds_of_starts(%q: tensor<?x4x8xf32>, %k: tensor<?x?x2x8xf32>, %a: tensor<?xi64>, %n: tensor<?xi32>) -> tensor<?x4x8xf32> {
  %r = posenc.attention ins(%q, %k, %k : tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>)
    lengths(%n : tensor<?xi32>) cu_seqlens(%a : tensor<?xi64>) outs(%q : tensor<?x4x8xf32>)
  return %r : tensor<?x4x8xf32>
}

// -----

// CHECK-LABEL: func.func @bounds_of_slots
// CHECK-SAME: bounds = [#posenc.bound<kind = slots, input = 1, limit = [-2, 4]>]>}
func.func @bounds_of_slots(%x: tensor<?x2x8xf32>, %s: tensor<?xi64>, %k: tensor<?x4x2x8xf32>, %v: tensor<?x4x2x8xf32>) -> (tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>) {
  %r:2 = posenc.kv_append ins(%x, %x : tensor<?x2x8xf32>, tensor<?x2x8xf32>) slots(%s : tensor<?xi64>)
    outs(%k, %v : tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>)
  return %r#0, %r#1 : tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>
}

// -----

// A dynamic size that must be a static one.
// CHECK-LABEL: func.func @bounds_of_sizes
// CHECK-SAME: bounds = [#posenc.bound<kind = sizes, input = 1, limit = [3], each = [-2]>]>}
func.func @bounds_of_sizes(%x: tensor<3x?x8xf32>, %p: tensor<?x?xi64>) -> tensor<3x?x8xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<3x?x8xf32>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%x : tensor<3x?x8xf32>)
  return %r : tensor<3x?x8xf32>
}

// -----

// A splat is as long as others in the end.
func.func @large_constant() -> tensor<1000000x1000000xf32> {
  // expected-error @below {{a constant of type 'tensor<1000000x1000000xf32>' has more than 256 MiB: make it an argument}}
  %c = arith.constant dense<1.0> : tensor<1000000x1000000xf32>
  return %c : tensor<1000000x1000000xf32>
}
