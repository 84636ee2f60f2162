//===- interleave-tiles.mlir - vectors among products of tiles ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --pass-pipeline='builtin.module(func.func(posenc-interleave-tiles))' --split-input-file | FileCheck %s

!bf16 = !amx.tile<16x32xbf16>
!f32 = !amx.tile<16x16xf32>

// Half of the vector operations follow each product, in their order. The store
// of a sum waits until the next sum starts, and loads of sums for their first
// product.
// CHECK-LABEL: func.func @shares
// CHECK: amx.tile_zero
// CHECK-NEXT: %[[SUM:.*]] = amx.tile_mulf
// CHECK-NEXT: %[[X:.*]] = vector.load
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[X]], %[[X]]
// CHECK-NEXT: amx.tile_store %{{.*}}, %[[SUM]]
// CHECK-NEXT: %[[ACC:.*]] = amx.tile_load %{{.*}} into !amx.tile<16x16xf32>
// CHECK-NEXT: %[[NEXT:.*]] = amx.tile_mulf %{{.*}}, %{{.*}}, %[[ACC]]
// CHECK-NEXT: %[[Z:.*]] = arith.mulf %[[Y]], %[[Y]]
// CHECK-NEXT: vector.store %[[Z]]
// CHECK-NEXT: amx.tile_store %{{.*}}, %[[NEXT]]
// CHECK-NEXT: return
func.func @shares(%tiles: memref<2x16x16xf32>) {
  %c0 = arith.constant 0 : index
  %s = memref.alloca() : memref<16x16xf32>
  %acc = memref.alloca() : memref<16x16xf32>
  %p = memref.alloca() : memref<32xf32>
  %a = amx.tile_load %tiles[%c0, %c0, %c0] : memref<2x16x16xf32> into !bf16
  %zero = amx.tile_zero : !f32
  %sum = amx.tile_mulf %a, %a, %zero : !bf16, !bf16, !f32
  amx.tile_store %s[%c0, %c0], %sum : memref<16x16xf32>, !f32
  %before = amx.tile_load %acc[%c0, %c0] : memref<16x16xf32> into !f32
  %next = amx.tile_mulf %a, %a, %before : !bf16, !bf16, !f32
  amx.tile_store %acc[%c0, %c0], %next : memref<16x16xf32>, !f32
  %x = vector.load %p[%c0] : memref<32xf32>, vector<16xf32>
  %y = arith.addf %x, %x : vector<16xf32>
  %z = arith.mulf %y, %y : vector<16xf32>
  vector.store %z, %p[%c0] : memref<32xf32>, vector<16xf32>
  return
}

// -----

!bf16 = !amx.tile<16x32xbf16>
!f32 = !amx.tile<16x16xf32>

// A sum is stored before vectors or other tiles read it, and vectors are stored
// before a tile reads them, also if they might be the same memory.
// CHECK-LABEL: func.func @dependences
// CHECK: %[[SUM:.*]] = amx.tile_mulf
// CHECK-NEXT: amx.tile_store %[[S:.*]][%{{.*}}], %[[SUM]]
// CHECK-NEXT: %[[X:.*]] = vector.load %[[S]]
// CHECK-NEXT: vector.store %[[X]], %[[T:.*]][
// CHECK-NEXT: %[[B:.*]] = amx.tile_load %[[T]]
// CHECK-NEXT: %[[ACC:.*]] = amx.tile_load %[[S]]
// CHECK-NEXT: amx.tile_mulf %{{.*}}, %[[B]], %[[ACC]]
// CHECK-NEXT: vector.load %[[U:.*]][
// CHECK: vector.store %{{.*}}, %[[U]]
func.func @dependences(%tiles: memref<16x16xf32>, %t: memref<16x16xf32>, %u: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %s = memref.alloca() : memref<16x16xf32>
  %a = amx.tile_load %tiles[%c0, %c0] : memref<16x16xf32> into !bf16
  %zero = amx.tile_zero : !f32
  %sum = amx.tile_mulf %a, %a, %zero : !bf16, !bf16, !f32
  amx.tile_store %s[%c0, %c0], %sum : memref<16x16xf32>, !f32
  %x = vector.load %s[%c0, %c0] : memref<16x16xf32>, vector<16xf32>
  vector.store %x, %t[%c0, %c0] : memref<16x16xf32>, vector<16xf32>
  %b = amx.tile_load %t[%c0, %c0] : memref<16x16xf32> into !bf16
  %acc = amx.tile_load %s[%c0, %c0] : memref<16x16xf32> into !f32
  %next = amx.tile_mulf %a, %b, %acc : !bf16, !bf16, !f32
  amx.tile_store %s[%c0, %c0], %next : memref<16x16xf32>, !f32
  %y = vector.load %u[%c0, %c0] : memref<16x16xf32>, vector<16xf32>
  %z = arith.addf %y, %y : vector<16xf32>
  vector.store %z, %u[%c0, %c0] : memref<16x16xf32>, vector<16xf32>
  return
}

// -----

!bf16 = !amx.tile<16x32xbf16>
!f32 = !amx.tile<16x16xf32>

// One buffer of two is written while the other is read. Without the assumption,
// the store would have to wait.
// CHECK-LABEL: func.func @distinct
// CHECK-NOT: memref.distinct_objects
// CHECK: amx.tile_mulf
// CHECK-COUNT-2: arith.select
// CHECK-NEXT: vector.load
// CHECK-NEXT: amx.tile_mulf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: vector.store
// CHECK-NEXT: amx.tile_store
// CHECK-LABEL: func.func @perhaps_the_same
// CHECK: amx.tile_mulf
// CHECK-COUNT-2: arith.select
// CHECK-NEXT: amx.tile_mulf
// CHECK-NEXT: amx.tile_store
// CHECK-NEXT: vector.load
// CHECK-NEXT: arith.addf
// CHECK-NEXT: vector.store
func.func @distinct(%tiles: memref<16x16xf32>, %flag: i1) {
  %c0 = arith.constant 0 : index
  %s0 = memref.alloca() : memref<16x16xf32>
  %s1 = memref.alloca() : memref<16x16xf32>
  %p = memref.alloca() : memref<16xf32>
  %read = arith.select %flag, %s0, %s1 : memref<16x16xf32>
  %write = arith.select %flag, %s1, %s0 : memref<16x16xf32>
  %r, %w = memref.distinct_objects %read, %write : memref<16x16xf32>, memref<16x16xf32>
  %a = amx.tile_load %tiles[%c0, %c0] : memref<16x16xf32> into !bf16
  %zero = amx.tile_zero : !f32
  %one = amx.tile_mulf %a, %a, %zero : !bf16, !bf16, !f32
  %two = amx.tile_mulf %a, %a, %one : !bf16, !bf16, !f32
  amx.tile_store %w[%c0, %c0], %two : memref<16x16xf32>, !f32
  %x = vector.load %r[%c0, %c0] : memref<16x16xf32>, vector<16xf32>
  %y = arith.addf %x, %x : vector<16xf32>
  vector.store %y, %p[%c0] : memref<16xf32>, vector<16xf32>
  return
}
func.func @perhaps_the_same(%tiles: memref<16x16xf32>, %flag: i1) {
  %c0 = arith.constant 0 : index
  %s0 = memref.alloca() : memref<16x16xf32>
  %s1 = memref.alloca() : memref<16x16xf32>
  %p = memref.alloca() : memref<16xf32>
  %read = arith.select %flag, %s0, %s1 : memref<16x16xf32>
  %write = arith.select %flag, %s1, %s0 : memref<16x16xf32>
  %a = amx.tile_load %tiles[%c0, %c0] : memref<16x16xf32> into !bf16
  %zero = amx.tile_zero : !f32
  %one = amx.tile_mulf %a, %a, %zero : !bf16, !bf16, !f32
  %two = amx.tile_mulf %a, %a, %one : !bf16, !bf16, !f32
  amx.tile_store %write[%c0, %c0], %two : memref<16x16xf32>, !f32
  %x = vector.load %read[%c0, %c0] : memref<16x16xf32>, vector<16xf32>
  %y = arith.addf %x, %x : vector<16xf32>
  vector.store %y, %p[%c0] : memref<16xf32>, vector<16xf32>
  return
}

// -----

!bf16 = !amx.tile<16x32xbf16>
!f32 = !amx.tile<16x16xf32>

// Constant indices tell the tiles of a buffer apart. Nothing crosses an
// operation whose effects are unknown.
// CHECK-LABEL: func.func @apart
// CHECK: amx.tile_mulf
// CHECK-NEXT: vector.load
// CHECK-NEXT: amx.tile_mulf
// CHECK: amx.tile_store
// CHECK-NEXT: llvm.fence
// CHECK-NEXT: vector.load
// CHECK-NEXT: vector.store
func.func @apart(%tiles: memref<2x16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = memref.alloca() : memref<16xf32>
  %a = amx.tile_load %tiles[%c0, %c0, %c0] : memref<2x16x16xf32> into !bf16
  %zero = amx.tile_zero : !f32
  %one = amx.tile_mulf %a, %a, %zero : !bf16, !bf16, !f32
  %two = amx.tile_mulf %a, %a, %one : !bf16, !bf16, !f32
  amx.tile_store %tiles[%c0, %c0, %c0], %two : memref<2x16x16xf32>, !f32
  %x = vector.load %tiles[%c1, %c0, %c0] : memref<2x16x16xf32>, vector<16xf32>
  vector.store %x, %p[%c0] : memref<16xf32>, vector<16xf32>
  llvm.fence syncscope("singlethread") acquire
  %y = vector.load %tiles[%c1, %c0, %c0] : memref<2x16x16xf32>, vector<16xf32>
  vector.store %y, %p[%c0] : memref<16xf32>, vector<16xf32>
  return
}
