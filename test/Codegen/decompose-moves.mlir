//===- decompose-moves.mlir - concatenations of many tensors --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --mlir-print-local-scope \
// RUN:   --pass-pipeline='builtin.module(func.func(posenc-decompose-moves))' \
// RUN:   | FileCheck %s

// Up to 8 tensors are inserted into one, which bufferization analyses.

// CHECK-LABEL: func.func @few
// CHECK: tensor.empty() : tensor<8x4xf32>
// CHECK-COUNT-8: tensor.insert_slice
// CHECK-NOT: memref.subview
// CHECK: bufferization.materialize_in_destination
func.func @few(%x: tensor<1x4xf32>, %out: memref<8x4xf32, strided<[?, 1]>>) attributes {posenc.abi = #posenc.abi<inputs = [#posenc.arg<"x", tensor<1x4xf32>, []>], outputs = [#posenc.arg<"y", tensor<8x4xf32>, []>], sizes = [], in_place = [-1]>} {
  %c = tensor.concat dim(0) %x, %x, %x, %x, %x, %x, %x, %x : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32>
  bufferization.materialize_in_destination %c in restrict writable %out : (tensor<8x4xf32>, memref<8x4xf32, strided<[?, 1]>>) -> ()
  return
}

// More are written to slices of the output.

// CHECK-LABEL: func.func @output
// CHECK-SAME: %[[X:.*]]: tensor<1x4xf32>, %[[OUT:.*]]: memref<9x4xf32
// CHECK: %[[FIRST:.*]] = memref.subview %[[OUT]][0, 0] [1, 4] [1, 1]
// CHECK-COUNT-7: memref.subview %[[OUT]]
// CHECK: %[[LAST:.*]] = memref.subview %[[OUT]][8, 0] [1, 4] [1, 1]
// CHECK: bufferization.materialize_in_destination %[[X]] in restrict writable %[[FIRST]]
// CHECK-COUNT-7: bufferization.materialize_in_destination %[[X]] in
// CHECK: bufferization.materialize_in_destination %[[X]] in restrict writable %[[LAST]]
// CHECK-NEXT: return
func.func @output(%x: tensor<1x4xf32>, %out: memref<9x4xf32, strided<[?, 1]>>) attributes {posenc.abi = #posenc.abi<inputs = [#posenc.arg<"x", tensor<1x4xf32>, []>], outputs = [#posenc.arg<"y", tensor<9x4xf32>, []>], sizes = [], in_place = [-1]>} {
  %c = tensor.concat dim(0) %x, %x, %x, %x, %x, %x, %x, %x, %x : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<9x4xf32>
  bufferization.materialize_in_destination %c in restrict writable %out : (tensor<9x4xf32>, memref<9x4xf32, strided<[?, 1]>>) -> ()
  return
}

// An output that an input may share is written last.

// CHECK-LABEL: func.func @in_place
// CHECK: %[[BUFFER:.*]] = memref.alloc() {alignment = 64 : i64} : memref<9x4xf32>
// CHECK: %[[C:.*]] = bufferization.to_tensor %[[BUFFER]] restrict : memref<9x4xf32>
// CHECK-NEXT: bufferization.materialize_in_destination %[[C]] in restrict writable %{{.*}} :
func.func @in_place(%x: tensor<1x4xf32>, %y: tensor<9x4xf32>, %out: memref<9x4xf32, strided<[?, 1]>>) attributes {posenc.abi = #posenc.abi<inputs = [#posenc.arg<"x", tensor<1x4xf32>, []>, #posenc.arg<"y", tensor<9x4xf32>, []>], outputs = [#posenc.arg<"z", tensor<9x4xf32>, []>], sizes = [], in_place = [1]>} {
  %c = tensor.concat dim(0) %x, %x, %x, %x, %x, %x, %x, %x, %x : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<9x4xf32>
  bufferization.materialize_in_destination %c in restrict writable %out : (tensor<9x4xf32>, memref<9x4xf32, strided<[?, 1]>>) -> ()
  return
}

// Other results are in a buffer, which is not writable: operands share it.

// CHECK-LABEL: func.func @buffer
// CHECK: %[[BUFFER:.*]] = memref.alloc() {alignment = 64 : i64} : memref<9x4xf32>
// CHECK-COUNT-9: memref.subview %[[BUFFER]]
// CHECK-COUNT-9: bufferization.materialize_in_destination
// CHECK: %[[C:.*]] = bufferization.to_tensor %[[BUFFER]] restrict : memref<9x4xf32>
// CHECK: return %[[C]]
func.func @buffer(%x: tensor<1x4xf32>) -> tensor<9x4xf32> {
  %c = tensor.concat dim(0) %x, %x, %x, %x, %x, %x, %x, %x, %x : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<9x4xf32>
  return %c : tensor<9x4xf32>
}

// A part that is a concatenation itself is written to the slice of the whole.

// CHECK-LABEL: func.func @nested
// CHECK-COUNT-1: memref.alloc()
// CHECK-NOT: memref.alloc()
// CHECK: %[[WHOLE:.*]] = memref.subview %{{.*}}[0, 0] [9, 4]
// CHECK-NEXT: memref.subview %[[WHOLE]][0, 0] [1, 4]
// CHECK-NOT: memref.alloc()
// CHECK: return
func.func @nested(%x: tensor<1x4xf32>) -> tensor<17x4xf32> {
  %c = tensor.concat dim(0) %x, %x, %x, %x, %x, %x, %x, %x, %x : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<9x4xf32>
  %d = tensor.concat dim(0) %c, %x, %x, %x, %x, %x, %x, %x, %x : (tensor<9x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<17x4xf32>
  return %d : tensor<17x4xf32>
}

// Offsets of dynamic sizes are not known at the beginning of the function.

// CHECK-LABEL: func.func @dynamic
// CHECK-COUNT-9: tensor.insert_slice
// CHECK-NOT: memref
// CHECK: return
func.func @dynamic(%x: tensor<1x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c = tensor.concat dim(0) %y, %x, %x, %x, %x, %x, %x, %x, %x : (tensor<?x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
  return %c : tensor<?x4xf32>
}
