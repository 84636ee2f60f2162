//===- expand.mlir - conversions, copies and scratch memory ===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --pass-pipeline='builtin.module(posenc-expand-bf16,func.func(posenc-expand-copies,posenc-hoist-scratch))' | FileCheck %s

// The choice of a NaN falls among 32-bit lanes.
// CHECK-LABEL: func.func @truncate
// CHECK: %[[NAN:.*]] = arith.cmpf uno
// CHECK: arith.select %[[NAN]], %{{.*}}, %{{.*}} : vector<8xi1>, vector<8xi32>
// CHECK: arith.trunci %{{.*}} : vector<8xi32> to vector<8xi16>
// CHECK: arith.bitcast %{{.*}} : vector<8xi16> to vector<8xbf16>
func.func @truncate(%x: vector<8xf32>) -> vector<8xbf16> {
  %r = arith.truncf %x : vector<8xf32> to vector<8xbf16>
  return %r : vector<8xbf16>
}

// CHECK-LABEL: func.func @extend
// CHECK: arith.extui %{{.*}} : i16 to i32
// CHECK: arith.shli
func.func @extend(%x: bf16) -> f32 {
  %r = arith.extf %x : bf16 to f32
  return %r : f32
}

// CHECK-LABEL: func.func @f16
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @f16(%x: f32) -> f16 {
  %r = arith.truncf %x : f32 to f16
  return %r : f16
}

// Tensors, whose size is not known here, become loops first.
// CHECK-LABEL: func.func private @tensors
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: arith.extf
func.func private @tensors(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = arith.truncf %x : tensor<?xf32> to tensor<?xbf16>
  %s = arith.extf %r : tensor<?xbf16> to tensor<?xf32>
  return %s : tensor<?xf32>
}

// CHECK-LABEL: func.func @copy
// CHECK: linalg.copy
func.func @copy(%a: memref<4x8xf32, strided<[16, 1]>>, %b: memref<4x8xf32>) {
  memref.copy %a, %b : memref<4x8xf32, strided<[16, 1]>> to memref<4x8xf32>
  return
}

// CHECK-LABEL: func.func @scratch
// CHECK-NEXT: memref.alloca() : memref<4xi64>
// CHECK: scf.for
// CHECK-NOT: memref.alloc()
func.func @scratch(%n: index, %v: i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.alloc() : memref<4xi64>
    memref.store %v, %a[%c0] : memref<4xi64>
  }
  return
}

// A buffer that leaves its block, or is large, stays on the heap.
// CHECK-LABEL: func.func @kept
// CHECK: memref.alloc()
// CHECK: memref.alloc()
func.func @kept(%v: i64) -> memref<4xi64> {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<4xi64>
  %b = memref.alloc() : memref<4096xi64>
  memref.store %v, %b[%c0] : memref<4096xi64>
  return %a : memref<4xi64>
}
