//===- order-tile-loads.mlir - loads of a register tile -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(posenc-order-tile-loads))' | FileCheck %s

// Each element is loaded before its multiply-add, and behind the last one.
// CHECK-LABEL: func.func @column(
// CHECK-SAME:    %[[A:.*]]: memref<8x64xf32>
// CHECK:         scf.for %[[K:.*]] = %c0 to %c64
// CHECK-NOT:       vector.transfer_read %[[A]]
// CHECK:           %[[B:.*]] = vector.load
// CHECK:           %[[A0:.*]] = memref.load %[[A]][%c1, %[[K]]] : memref<8x64xf32>
// CHECK:           %[[X0:.*]] = vector.broadcast %[[A0]] : f32 to vector<16xf32>
// CHECK:           math.fma %[[X0]], %[[B]]
// CHECK-NEXT:      llvm.fence syncscope("singlethread") acquire
// CHECK:           memref.load %[[A]]
// CHECK:           math.fma
// CHECK-NEXT:      llvm.fence syncscope("singlethread") acquire
// CHECK:           memref.load %[[A]]
// CHECK:           math.fma
// CHECK-NEXT:      llvm.fence syncscope("singlethread") acquire
// CHECK:           memref.load %[[A]][%c4{{.*}}, %[[K]]] : memref<8x64xf32>
// CHECK:           math.fma
// CHECK-NEXT:      llvm.fence syncscope("singlethread") acquire
// CHECK:           scf.yield
func.func @column(%a: memref<8x64xf32>, %b: memref<64x16xf32>, %s: vector<16xf32>) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %r:4 = scf.for %k = %c0 to %c64 step %c1 iter_args(%s0 = %s, %s1 = %s, %s2 = %s, %s3 = %s) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
    %x = vector.transfer_read %a[%c1, %k], %zero {in_bounds = [true, true]} : memref<8x64xf32>, vector<4x1xf32>
    %y = vector.load %b[%k, %c0] : memref<64x16xf32>, vector<16xf32>
    %a0 = vector.extract %x[0, 0] : f32 from vector<4x1xf32>
    %x0 = vector.broadcast %a0 : f32 to vector<16xf32>
    %t0 = math.fma %x0, %y, %s0 : vector<16xf32>
    %a1 = vector.extract %x[1, 0] : f32 from vector<4x1xf32>
    %x1 = vector.broadcast %a1 : f32 to vector<16xf32>
    %t1 = math.fma %x1, %y, %s1 : vector<16xf32>
    %a2 = vector.extract %x[2, 0] : f32 from vector<4x1xf32>
    %x2 = vector.broadcast %a2 : f32 to vector<16xf32>
    %t2 = math.fma %x2, %y, %s2 : vector<16xf32>
    %a3 = vector.extract %x[3, 0] : f32 from vector<4x1xf32>
    %x3 = vector.broadcast %a3 : f32 to vector<16xf32>
    %t3 = math.fma %x3, %y, %s3 : vector<16xf32>
    scf.yield %t0, %t1, %t2, %t3 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
  }
  return %r#0, %r#1, %r#2, %r#3 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
}

// -----

// An element of several multiply-adds, of which the last one is before the fence.
// CHECK-LABEL: func.func @vectors(
// CHECK-NOT:     vector.transfer_read
// CHECK:           memref.load
// CHECK:           %[[X:.*]] = vector.broadcast
// CHECK-NEXT:      math.fma %[[X]], %{{.*}}, %{{.*}}
// CHECK-NEXT:      math.fma %[[X]], %{{.*}}, %{{.*}}
// CHECK-NEXT:      llvm.fence
// CHECK:           memref.load
// CHECK:           %[[X:.*]] = vector.broadcast
// CHECK-NEXT:      math.fma %[[X]], %{{.*}}, %{{.*}}
// CHECK-NEXT:      math.fma %[[X]], %{{.*}}, %{{.*}}
// CHECK-NEXT:      llvm.fence
// CHECK:           memref.load
// CHECK:           %[[X:.*]] = vector.broadcast
// CHECK-NEXT:      math.fma %[[X]], %{{.*}}, %{{.*}}
// CHECK-NEXT:      math.fma %[[X]], %{{.*}}, %{{.*}}
// CHECK-NEXT:      llvm.fence
// CHECK:           memref.load
// CHECK:           %[[X:.*]] = vector.broadcast
// CHECK-NEXT:      math.fma %[[X]], %{{.*}}, %{{.*}}
// CHECK-NEXT:      math.fma %[[X]], %{{.*}}, %{{.*}}
// CHECK-NEXT:      llvm.fence
func.func @vectors(%a: memref<8x64xf32>, %y: vector<16xf32>, %s: vector<16xf32>) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %r:4 = scf.for %k = %c0 to %c64 step %c1 iter_args(%s0 = %s, %s1 = %s, %s2 = %s, %s3 = %s) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
    %x = vector.transfer_read %a[%c0, %k], %zero {in_bounds = [true, true]} : memref<8x64xf32>, vector<4x1xf32>
    %a0 = vector.extract %x[0, 0] : f32 from vector<4x1xf32>
    %x0 = vector.broadcast %a0 : f32 to vector<16xf32>
    %t0 = math.fma %x0, %y, %s0 : vector<16xf32>
    %u0 = math.fma %x0, %t0, %y : vector<16xf32>
    %a1 = vector.extract %x[1, 0] : f32 from vector<4x1xf32>
    %x1 = vector.broadcast %a1 : f32 to vector<16xf32>
    %t1 = math.fma %x1, %y, %s1 : vector<16xf32>
    %u1 = math.fma %x1, %t1, %y : vector<16xf32>
    %a2 = vector.extract %x[2, 0] : f32 from vector<4x1xf32>
    %x2 = vector.broadcast %a2 : f32 to vector<16xf32>
    %t2 = math.fma %x2, %y, %s2 : vector<16xf32>
    %u2 = math.fma %x2, %t2, %y : vector<16xf32>
    %a3 = vector.extract %x[3, 0] : f32 from vector<4x1xf32>
    %x3 = vector.broadcast %a3 : f32 to vector<16xf32>
    %t3 = math.fma %x3, %y, %s3 : vector<16xf32>
    %u3 = math.fma %x3, %t3, %y : vector<16xf32>
    scf.yield %u0, %u1, %u2, %u3 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
  }
  return %r#0, %r#1, %r#2, %r#3 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
}

// -----

// An element with another use keeps the vector.
// CHECK-LABEL: func.func @other_use(
// CHECK:         vector.transfer_read
// CHECK-NOT:     llvm.fence
func.func @other_use(%a: memref<8x64xf32>, %y: vector<16xf32>, %s: vector<16xf32>) -> (vector<16xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %r:2 = scf.for %k = %c0 to %c64 step %c1 iter_args(%s0 = %s, %e = %zero) -> (vector<16xf32>, f32) {
    %x = vector.transfer_read %a[%c0, %k], %zero {in_bounds = [true, true]} : memref<8x64xf32>, vector<4x1xf32>
    %a0 = vector.extract %x[0, 0] : f32 from vector<4x1xf32>
    %x0 = vector.broadcast %a0 : f32 to vector<16xf32>
    %t0 = math.fma %x0, %y, %s0 : vector<16xf32>
    %a1 = vector.extract %x[1, 0] : f32 from vector<4x1xf32>
    %x1 = vector.broadcast %a1 : f32 to vector<16xf32>
    %t1 = math.fma %x1, %y, %t0 : vector<16xf32>
    %a2 = vector.extract %x[2, 0] : f32 from vector<4x1xf32>
    %x2 = vector.broadcast %a2 : f32 to vector<16xf32>
    %t2 = math.fma %x2, %y, %t1 : vector<16xf32>
    %a3 = vector.extract %x[3, 0] : f32 from vector<4x1xf32>
    %x3 = vector.broadcast %a3 : f32 to vector<16xf32>
    %t3 = math.fma %x3, %y, %t2 : vector<16xf32>
    %u = arith.addf %a3, %e : f32
    scf.yield %t3, %u : vector<16xf32>, f32
  }
  return %r#0, %r#1 : vector<16xf32>, f32
}

// -----

// Elements that are loads already, each for one sum.
// CHECK-LABEL: func.func @loads(
// CHECK-COUNT-4:   llvm.fence
// CHECK-NEXT:      scf.yield
func.func @loads(%a: memref<8x64xf32>, %b: memref<64x16xf32>, %s: vector<16xf32>) -> vector<16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c64 = arith.constant 64 : index
  %r:4 = scf.for %k = %c0 to %c64 step %c1 iter_args(%s0 = %s, %s1 = %s, %s2 = %s, %s3 = %s) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
    %y = vector.load %b[%k, %c0] : memref<64x16xf32>, vector<16xf32>
    %a0 = memref.load %a[%c0, %k] : memref<8x64xf32>
    %x0 = vector.broadcast %a0 : f32 to vector<16xf32>
    %t0 = math.fma %x0, %y, %s0 : vector<16xf32>
    %a1 = memref.load %a[%c1, %k] : memref<8x64xf32>
    %x1 = vector.broadcast %a1 : f32 to vector<16xf32>
    %t1 = math.fma %x1, %y, %s1 : vector<16xf32>
    %a2 = memref.load %a[%c2, %k] : memref<8x64xf32>
    %x2 = vector.broadcast %a2 : f32 to vector<16xf32>
    %t2 = math.fma %x2, %y, %s2 : vector<16xf32>
    %a3 = memref.load %a[%c3, %k] : memref<8x64xf32>
    %x3 = vector.broadcast %a3 : f32 to vector<16xf32>
    %t3 = math.fma %x3, %y, %s3 : vector<16xf32>
    scf.yield %t0, %t1, %t2, %t3 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
  }
  return %r#0 : vector<16xf32>
}
