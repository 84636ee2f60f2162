//===- expand-tiles.mlir - AMX tiles as buffers and loops -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --pass-pipeline='builtin.module(func.func(posenc-expand-tiles))' --split-input-file | FileCheck %s

// Tiles that are no longer used give their buffers to others.
// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[A:.*]]: memref<64x16xf32>, %[[B:.*]]: memref<64x32xbf16>, %[[C:.*]]: memref<32x16xf32>, %[[I:.*]]: index)
// CHECK-COUNT-4: memref.alloca() : memref<16x16xf32>
// CHECK-NOT: memref.alloca
// CHECK: scf.for
// CHECK: scf.for %[[ROW:.*]] = %c0{{.*}} to %c16
// CHECK-NEXT: %[[AT:.*]] = arith.addi %[[I]], %[[ROW]]
// CHECK-NEXT: %[[WORDS:.*]] = vector.load %[[A]][%[[AT]], %c0{{.*}}] : memref<64x16xf32>, vector<16xf32>
// CHECK-NEXT: vector.store %[[WORDS]], %[[TILE:.*]][%[[ROW]], %c0
// CHECK: %[[NARROW:.*]] = vector.load %[[B]]{{.*}}, vector<32xbf16>
// CHECK-NEXT: vector.bitcast %[[NARROW]] : vector<32xbf16> to vector<16xf32>
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args(%[[EVEN:.*]] = %{{.*}}, %[[ODD:.*]] = %{{.*}})
// CHECK: memref.load %[[TILE]]
// CHECK: math.fma {{.*}}, %[[EVEN]]
// CHECK: math.fma {{.*}}, %[[ODD]]
// CHECK: scf.yield
// CHECK: arith.addf
// CHECK: arith.addf
// CHECK: vector.store %{{.*}}, %[[C]]
// CHECK-NOT: amx
func.func @product(%a: memref<64x16xf32>, %b: memref<64x32xbf16>, %c: memref<32x16xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = amx.tile_zero : !amx.tile<16x16xf32>
  %0 = amx.tile_load %a[%i, %c0] : memref<64x16xf32> into !amx.tile<16x32xbf16>
  %1 = amx.tile_load %b[%c16, %c0] : memref<64x32xbf16> into !amx.tile<16x32xbf16>
  %2 = amx.tile_mulf %0, %1, %zero : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  amx.tile_store %c[%c0, %c0], %2 : memref<32x16xf32>, !amx.tile<16x16xf32>
  %3 = amx.tile_load %c[%c16, %c0] : memref<32x16xf32> into !amx.tile<16x16xf32>
  amx.tile_store %c[%c0, %c0], %3 : memref<32x16xf32>, !amx.tile<16x16xf32>
  return
}

// -----

// A tile from outside of a loop keeps its buffer in the loop.
// CHECK-LABEL: func.func @loop
// CHECK: %[[OTHER:.*]] = memref.alloca() : memref<16x16xf32>
// CHECK: %[[OUTER:.*]] = memref.alloca() : memref<16x16xf32>
// CHECK: vector.store %{{.*}}, %[[OUTER]]
// CHECK: vector.load %[[OUTER]]
// CHECK: vector.store %{{.*}}, %[[OTHER]]
// CHECK: vector.load %[[OTHER]]
func.func @loop(%a: memref<16x16xf32>, %c: memref<16x16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = amx.tile_load %a[%c0, %c0] : memref<16x16xf32> into !amx.tile<16x16xf32>
  scf.for %i = %c0 to %n step %c1 {
    amx.tile_store %c[%c0, %c0], %0 : memref<16x16xf32>, !amx.tile<16x16xf32>
    %1 = amx.tile_load %c[%c0, %c0] : memref<16x16xf32> into !amx.tile<16x16xf32>
    amx.tile_store %a[%c0, %c0], %1 : memref<16x16xf32>, !amx.tile<16x16xf32>
  }
  return
}

// -----

// Memory whose rows vectors cannot read is left alone.
// CHECK-LABEL: func.func @indices
// CHECK: amx.tile_load
func.func @indices(%b: memref<16x16xindex>) {
  %c0 = arith.constant 0 : index
  %0 = amx.tile_load %b[%c0, %c0] : memref<16x16xindex> into !amx.tile<16x16xf32>
  return
}

// -----

// Loads with a stride, and what uses them, are left alone.
// CHECK-LABEL: func.func @stride
// CHECK: amx.tile_load
// CHECK: amx.tile_store
func.func @stride(%a: memref<4096xf32>, %c: memref<16x16xf32>, %s: index) {
  %c0 = arith.constant 0 : index
  %0 = amx.tile_load %a[%c0], %s : memref<4096xf32> into !amx.tile<16x16xf32>
  amx.tile_store %c[%c0, %c0], %0 : memref<16x16xf32>, !amx.tile<16x16xf32>
  return
}
