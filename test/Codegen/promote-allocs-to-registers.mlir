//===- promote-allocs-to-registers.mlir - buffers become registers --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-promote-allocs-to-registers | FileCheck %s

// CHECK-LABEL: func.func @promoted(
// CHECK-SAME:    %[[V:.*]]: vector<4xf32>
// CHECK-NOT:     memref
// CHECK:         return %[[V]], %[[V]]
func.func @promoted(%v: vector<4xf32>, %b: i1) -> (vector<4xf32>, vector<4xf32>) {
  %c0 = arith.constant 0 : index
  %m = memref.alloca() : memref<4xf32>
  %unused = memref.subview %m[0] [4] [1] : memref<4xf32> to memref<4xf32, strided<[1]>>
  vector.store %v, %m[%c0] : memref<4xf32>, vector<4xf32>
  %w = vector.load %m[%c0] : memref<4xf32>, vector<4xf32>
  %x = vector.load %m[%c0] : memref<4xf32>, vector<4xf32>
  return %w, %x : vector<4xf32>, vector<4xf32>
}

// Not promoted: two stores, another slice, and a load that may precede the
// store.
// CHECK-LABEL: func.func @left(
// CHECK-COUNT-3: memref.alloca
// CHECK-COUNT-3: vector.load
func.func @left(%v: vector<4xf32>, %b: i1) -> (vector<4xf32>, vector<2xf32>, vector<4xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %m = memref.alloca() : memref<4xf32>
  %n = memref.alloca() : memref<4xf32>
  %o = memref.alloca() : memref<4xf32>
  vector.store %v, %m[%c0] : memref<4xf32>, vector<4xf32>
  vector.store %v, %m[%c0] : memref<4xf32>, vector<4xf32>
  %w = vector.load %m[%c0] : memref<4xf32>, vector<4xf32>
  vector.store %v, %n[%c0] : memref<4xf32>, vector<4xf32>
  %x = vector.load %n[%c2] : memref<4xf32>, vector<2xf32>
  scf.if %b {
    vector.store %v, %o[%c0] : memref<4xf32>, vector<4xf32>
  }
  %y = vector.load %o[%c0] : memref<4xf32>, vector<4xf32>
  return %w, %x, %y : vector<4xf32>, vector<2xf32>, vector<4xf32>
}
