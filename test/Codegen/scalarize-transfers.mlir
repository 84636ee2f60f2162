//===- scalarize-transfers.mlir - strided transfers of one element --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --pass-pipeline='builtin.module(func.func(posenc-scalarize-transfers))' | FileCheck %s

// CHECK-LABEL: func.func @copy(
// CHECK-SAME: %[[X:.*]]: memref<1xf32, strided<[?]>>, %[[Y:.*]]: memref<1xf32, strided<[?]>>, %[[I:.*]]: index)
// CHECK: %[[ELEMENT:.*]] = memref.load %[[X]][%[[I]]]
// CHECK: %[[VECTOR:.*]] = vector.broadcast %[[ELEMENT]] : f32 to vector<f32>
// CHECK: %[[OUT:.*]] = vector.extract %[[VECTOR]][]
// CHECK: memref.store %[[OUT]], %[[Y]][%[[I]]]
func.func @copy(%x: memref<1xf32, strided<[?]>>, %y: memref<1xf32, strided<[?]>>, %i: index) {
  %pad = arith.constant 0.0 : f32
  %0 = vector.transfer_read %x[%i], %pad : memref<1xf32, strided<[?]>>, vector<f32>
  vector.transfer_write %0, %y[%i] : vector<f32>, memref<1xf32, strided<[?]>>
  return
}

// Upstream lowers transfers of contiguous elements, and those of vectors.
// CHECK-LABEL: func.func @others(
// CHECK: vector.transfer_read {{.*}} : memref<4xf32>, vector<f32>
// CHECK: vector.transfer_read {{.*}} : memref<4xf32, strided<[?]>>, vector<4xf32>
// CHECK-NOT: memref.load
func.func @others(%x: memref<4xf32>, %y: memref<4xf32, strided<[?]>>) -> (vector<f32>, vector<4xf32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %0 = vector.transfer_read %x[%c0], %pad : memref<4xf32>, vector<f32>
  %1 = vector.transfer_read %y[%c0], %pad {in_bounds = [true]} : memref<4xf32, strided<[?]>>, vector<4xf32>
  return %0, %1 : vector<f32>, vector<4xf32>
}
