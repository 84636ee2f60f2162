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

// Two ropes of one input: neither result may be it, the other still reads it.
// CHECK-LABEL: func.func @both
// CHECK-SAME: in_place = [-1, -1]
func.func @both(%x: tensor<4x16xf32>, %p: tensor<4xi64>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %a = posenc.rope half #posenc.frequencies<dim = 16> ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  %b = posenc.rope interleaved #posenc.frequencies<dim = 16> ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  return %a, %b : tensor<4x16xf32>, tensor<4x16xf32>
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
