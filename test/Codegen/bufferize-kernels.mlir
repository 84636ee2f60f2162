//===- bufferize-kernels.mlir - kernels on strided memrefs ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --mlir-print-local-scope --posenc-create-kernels --posenc-bufferize-kernels --canonicalize | FileCheck %s

// Kernel arguments have dynamic strides; arguments of rank 1 are contiguous.
// Nothing is allocated or copied.
// CHECK-LABEL: func.func @rope(
// CHECK-SAME: %[[X:[^:]+]]: memref<?x4x8xf32, strided<[?, ?, 1]>>, %[[P:[^:]+]]: memref<?xi64>, %[[OUT:[^:]+]]: memref<?x4x8xf32, strided<[?, ?, 1]>>)
// CHECK-NEXT: posenc.rope {{.*}} ins(%[[X]] {{.*}} positions(%[[P]] {{.*}} outs(%[[OUT]]
// CHECK-NEXT: return
func.func @rope(%x: tensor<?x4x8xf32>, %p: tensor<?xi64>) -> tensor<?x4x8xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<?x4x8xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x4x8xf32>)
  return %r : tensor<?x4x8xf32>
}

// Private functions take and return parts of buffers.
// CHECK-LABEL: func.func private @pick(
// CHECK-SAME: %[[X:[^:]+]]: memref<2x16x8xf32, strided<[?, ?, 1], offset: ?>>) -> memref<16x8xf32, strided<[?, 1], offset: ?>>
func.func private @pick(%x: tensor<2x16x8xf32>) -> tensor<16x8xf32> {
  %s = tensor.extract_slice %x[1, 0, 0] [1, 16, 8] [1, 1, 1] : tensor<2x16x8xf32> to tensor<16x8xf32>
  return %s : tensor<16x8xf32>
}

// CHECK-LABEL: func.func @caller(
// CHECK-NOT: alloc
// CHECK-NOT: copy
// CHECK: %[[PART:.*]] = call @pick
// CHECK: posenc.rope {{.*}} ins(%[[PART]]
// CHECK: return
func.func @caller(%x: tensor<2x16x8xf32>, %p: tensor<16xi64>) -> tensor<16x8xf32> {
  %s = func.call @pick(%x) : (tensor<2x16x8xf32>) -> tensor<16x8xf32>
  %e = tensor.empty() : tensor<16x8xf32>
  %r = posenc.rope half #posenc.frequencies<dim = 8> ins(%s : tensor<16x8xf32>) positions(%p : tensor<16xi64>) dims = [0] outs(%e : tensor<16x8xf32>)
  return %r : tensor<16x8xf32>
}

// Constants have the order of their uses, in whatever order functions are bufferized.
// CHECK-LABEL: func.func private @constants(
// CHECK: memref.get_global @__constant : memref<2xf32>
// CHECK: memref.get_global @__constant_0 : memref<2xf32>
// CHECK-LABEL: func.func private @more_constants(
// CHECK: memref.get_global @__constant_1 : memref<3xf32>
// CHECK: memref.get_global @__constant_0 : memref<2xf32>
func.func private @constants(%i: index) -> (f32, f32) {
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = arith.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %x = tensor.extract %a[%i] : tensor<2xf32>
  %y = tensor.extract %b[%i] : tensor<2xf32>
  return %x, %y : f32, f32
}

func.func private @more_constants(%i: index) -> (f32, f32) {
  %a = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %b = arith.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %x = tensor.extract %a[%i] : tensor<3xf32>
  %y = tensor.extract %b[%i] : tensor<2xf32>
  return %x, %y : f32, f32
}

// A view drops the dimension of size 1 that its sizes say, also where strides are dynamic.
// CHECK-LABEL: func.func private @dropped(
// CHECK: %[[VIEW:.*]] = memref.subview %{{.*}}[0, 0, %{{.*}}, 0] [1, 5, 1, 2] [1, 1, 1, 1]
// CHECK-SAME: to memref<1x5x1x2xf32
// CHECK: memref.collapse_shape %[[VIEW]] {{\[\[}}0], [1], [2, 3]]
func.func private @dropped(%x: tensor<1x5x3x2xf32>, %i: index) -> tensor<1x5x2xf32> {
  %s = tensor.extract_slice %x[0, 0, %i, 0] [1, 5, 1, 2] [1, 1, 1, 1] : tensor<1x5x3x2xf32> to tensor<1x5x2xf32>
  return %s : tensor<1x5x2xf32>
}

// A reshape of no elements needs no buffer of its source.
// CHECK-LABEL: func.func private @nothing(
// CHECK-NOT: memref.collapse_shape
// CHECK: memref.alloc() {{.*}}: memref<0xf32>
func.func private @nothing(%x: tensor<0x?xf32>) -> tensor<?xf32> {
  %r = tensor.collapse_shape %x [[0, 1]] : tensor<0x?xf32> into tensor<?xf32>
  return %r : tensor<?xf32>
}

// A slice of a buffer may hold the result for another slice while that is computed, but
// not beyond the write to it: the second product is computed elsewhere.
// CHECK-LABEL: func.func private @slices(
// CHECK-DAG: %[[FIRST:.*]] = memref.subview %[[BUFFER:.*]][0, 0] [1, 4]
// CHECK-DAG: %[[SECOND:.*]] = memref.subview %[[BUFFER]][1, 0] [1, 4]
// CHECK: linalg.matmul {{.*}} outs(%[[A:alloc[_0-9]*]] :
// CHECK: linalg.matmul {{.*}} outs(%[[B:alloc[_0-9]*]] :
// CHECK: memref.copy %[[A]], %[[FIRST]]
// CHECK: memref.copy %[[B]], %[[SECOND]]
// CHECK-NOT: memref.copy
// CHECK: return
func.func private @slices(%m: memref<2x4xf32>, %x: tensor<1x4xf32>, %v: tensor<4x4xf32>, %w: tensor<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %first = memref.subview %m[0, 0] [1, 4] [1, 1] : memref<2x4xf32> to memref<1x4xf32, strided<[4, 1]>>
  %second = memref.subview %m[1, 0] [1, 4] [1, 1] : memref<2x4xf32> to memref<1x4xf32, strided<[4, 1], offset: 4>>
  %d = bufferization.to_tensor %first restrict writable : memref<1x4xf32, strided<[4, 1]>> to tensor<1x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%d : tensor<1x4xf32>) -> tensor<1x4xf32>
  %a = linalg.matmul ins(%x, %v : tensor<1x4xf32>, tensor<4x4xf32>) outs(%f : tensor<1x4xf32>) -> tensor<1x4xf32>
  %b = linalg.matmul ins(%x, %w : tensor<1x4xf32>, tensor<4x4xf32>) outs(%f : tensor<1x4xf32>) -> tensor<1x4xf32>
  bufferization.materialize_in_destination %a in restrict writable %first : (tensor<1x4xf32>, memref<1x4xf32, strided<[4, 1]>>) -> ()
  bufferization.materialize_in_destination %b in restrict writable %second : (tensor<1x4xf32>, memref<1x4xf32, strided<[4, 1], offset: 4>>) -> ()
  return
}

// The result that is computed after the write to the slice is not in the slice.
// CHECK-LABEL: func.func private @later(
// CHECK: %[[SLICE:.*]] = memref.subview
// CHECK: linalg.negf {{.*}} outs(%[[A:alloc[_0-9]*]] :
// CHECK: memref.copy %[[A]], %[[SLICE]]
// CHECK: linalg.negf {{.*}} outs(%[[B:alloc[_0-9]*]] :
// CHECK: memref.copy %[[B]], %{{arg[0-9]+}}
// CHECK: return
func.func private @later(%m: memref<2x4xf32>, %n: memref<1x4xf32>, %x: tensor<1x4xf32>, %y: tensor<1x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %slice = memref.subview %m[0, 0] [1, 4] [1, 1] : memref<2x4xf32> to memref<1x4xf32, strided<[4, 1]>>
  %d = bufferization.to_tensor %slice restrict writable : memref<1x4xf32, strided<[4, 1]>> to tensor<1x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%d : tensor<1x4xf32>) -> tensor<1x4xf32>
  %a = linalg.negf ins(%x : tensor<1x4xf32>) outs(%f : tensor<1x4xf32>) -> tensor<1x4xf32>
  bufferization.materialize_in_destination %a in restrict writable %slice : (tensor<1x4xf32>, memref<1x4xf32, strided<[4, 1]>>) -> ()
  %b = linalg.negf ins(%y : tensor<1x4xf32>) outs(%f : tensor<1x4xf32>) -> tensor<1x4xf32>
  bufferization.materialize_in_destination %b in restrict writable %n : (tensor<1x4xf32>, memref<1x4xf32>) -> ()
  return
}
