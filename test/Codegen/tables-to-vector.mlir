//===- tables-to-vector.mlir - tables of positions as vectors -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --convert-posenc-tables-to-vector --split-input-file --verify-diagnostics | FileCheck %s

// The base position of a run is its middle: there are constants of cos and sin
// for 16 rotation steps, and two vectors on the stack. Four runs are a stretch:
// 2 rotation steps from its middle to those of the runs, and two more vectors.
// CHECK: memref.global "private" constant @turns : memref<32xf64>
// CHECK: memref.global "private" constant @steps : memref<256xf64>
// CHECK-LABEL: func.func @interleaved
// CHECK: %[[ANCHOR:.*]] = memref.alloca() {alignment = 64 : i64} : memref<16xf64>
// CHECK: %[[STRETCH:.*]] = memref.alloca() {alignment = 64 : i64} : memref<16xf64>
// The base position and the stretch are recomputed only if they change.
// CHECK: %[[OTHER:.*]] = arith.cmpi ne
// CHECK: scf.if %[[OTHER]]
// CHECK: %[[FAR:.*]] = arith.cmpi ne
// CHECK: scf.if %[[FAR]]
// CHECK: vector.store %{{.*}}, %[[STRETCH]]
// CHECK: memref.get_global @turns
// CHECK: vector.store %{{.*}}, %[[ANCHOR]]
// CHECK: math.fma %{{.*}} : vector<8xf64>
// CHECK: %[[V:.*]] = vector.shuffle %{{.*}}, %{{.*}} [0, 8, 1, 9, 4, 12, 5, 13, 2, 10, 3, 11, 6, 14, 7, 15] : vector<8xf32>, vector<8xf32>
// CHECK: vector.store %[[V]]
// Elements near zero are recomputed from their own phase.
// CHECK: %[[SMALL:.*]] = vector.reduction <or>
// CHECK: scf.if %[[SMALL]]
// CHECK: vector.store
func.func @interleaved(%p: memref<4xi32>, %t: memref<4x16xf32>) {
  posenc.sinusoidal interleaved #posenc.frequencies<dim = 16> positions(%p : memref<4xi32>) outs(%t : memref<4x16xf32>)
  return
}

// -----

// CHECK-LABEL: func.func @halves
// CHECK-NOT: vector.shuffle
// CHECK-COUNT-2: vector.store %{{.*}} : memref<4x16xf32>, vector<8xf32>
func.func @halves(%first: index, %t: memref<4x16xf32>) {
  posenc.sinusoidal cos_sin #posenc.frequencies<dim = 16> positions(%first : index) outs(%t : memref<4x16xf32>)
  return
}

// -----

// bf16 tables use f32 products. A sine of frequency 0 is not recomputed.
// CHECK: memref.global "private" constant @steps : memref<512xf32>
// CHECK: memref.global "private" constant @still_pairs : memref<8xi32> = dense<[0, 0, 0, 0, 0, 0, 2147483647, 2147483647]>
// CHECK-LABEL: func.func @bf16
func.func @bf16(%p: memref<4xi32>, %t: memref<4x16xbf16>) {
  posenc.sinusoidal interleaved #posenc.frequencies<dim = 16, scaling = #posenc.explicit<values = [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.0, 0.0]>> positions(%p : memref<4xi32>) outs(%t : memref<4x16xbf16>)
  return
}

// -----

// If the next 32 positions are a whole run, two positions at the same distance
// before and after its middle are computed together.
// CHECK-LABEL: func.func @runs
// CHECK: scf.while
// CHECK: %[[NEXT:.*]] = vector.load %{{.*}} : memref<?xi64>, vector<32xi64>
// CHECK: %[[CHANGE:.*]] = arith.xori %[[NEXT]]
// CHECK: vector.reduction <or>, %[[CHANGE]]
// CHECK: memref.get_global @steps
// CHECK: %[[SINSIN:.*]] = arith.mulf %{{.*}} : vector<8xf64>
// CHECK: %[[COSSIN:.*]] = arith.mulf %{{.*}} : vector<8xf64>
// CHECK: %[[MINUS:.*]] = arith.negf %[[SINSIN]]
// CHECK: math.fma %[[COS:.*]], %[[STEP:.*]], %[[MINUS]]
// CHECK: math.fma %[[SIN:.*]], %[[STEP]], %[[COSSIN]]
// CHECK: %[[MINUS:.*]] = arith.negf %[[COSSIN]]
// CHECK: math.fma %[[COS]], %[[STEP]], %[[SINSIN]]
// CHECK: math.fma %[[SIN]], %[[STEP]], %[[MINUS]]
func.func @runs(%p: memref<?xi64>, %t: memref<?x16xf32>) {
  posenc.sinusoidal interleaved #posenc.frequencies<dim = 16> positions(%p : memref<?xi64>) outs(%t : memref<?x16xf32>)
  return
}

// -----

// A single position.
// CHECK-LABEL: func.func @alone
// CHECK-NOT: scf.while
// CHECK: vector.store
func.func @alone(%p: memref<i64>, %t: memref<256xf32>) {
  posenc.sinusoidal interleaved #posenc.frequencies<dim = 256> positions(%p : memref<i64>) outs(%t : memref<256xf32>)
  return
}

// -----

func.func @tensors(%p: tensor<4xi64>, %c: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{expected memrefs, got tensors: bufferize first}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 16> positions(%p : tensor<4xi64>) outs(%c, %c : tensor<4x8xf32>, tensor<4x8xf32>)
  return %r#0 : tensor<4x8xf32>
}

// -----

// Each axis is a table of its own, at its lanes of the row.
// CHECK-LABEL: func.func @axes
// CHECK-SAME: %[[P:.*]]: memref<2x?xi64>, %[[T:.*]]: memref<?x32xf32>
// CHECK: memref.subview %[[P]][0, 0] [1, %{{.*}}] [1, 1] : memref<2x?xi64> to memref<?xi64
// CHECK: memref.subview %[[P]][1, 0] [1, %{{.*}}] [1, 1] : memref<2x?xi64> to memref<?xi64
func.func @axes(%p: memref<2x?xi64>, %t: memref<?x32xf32>) {
  posenc.sinusoidal sin_cos #posenc.frequencies<dim = 32> axes <axial, [8, 8]> positions(%p : memref<2x?xi64>) outs(%t : memref<?x32xf32>)
  return
}

// -----

// A last loop writes the zeros at the ends of rows, and the rows of padding.
// CHECK-LABEL: func.func @zeros
// CHECK-SAME: %[[P:.*]]: memref<?xi32>, %[[T:.*]]: memref<?x17xf32>
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %dim
// CHECK: vector.store %{{.*}}, %[[T]][%[[I]], %c16{{.*}}] : memref<?x17xf32>, vector<1xf32>
// CHECK: %[[POSITION:.*]] = memref.load %[[P]][%[[I]]]
// CHECK: %[[WIDE:.*]] = arith.extsi %[[POSITION]] : i32 to i64
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[WIDE]], %c7_i64
// CHECK: scf.if %[[IS]]
// CHECK: vector.store %{{.*}}, %[[T]][%[[I]], %{{.*}}] : memref<?x17xf32>, vector<8xf32>
func.func @zeros(%p: memref<?xi32>, %t: memref<?x17xf32>) {
  posenc.sinusoidal sin_cos #posenc.frequencies<dim = 16> zero_pad padding_position = 7 positions(%p : memref<?xi32>) outs(%t : memref<?x17xf32>)
  return
}
