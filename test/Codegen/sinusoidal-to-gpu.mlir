//===- sinusoidal-to-gpu.mlir - tables as GPU kernels ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --convert-posenc-sinusoidal-to-gpu --canonicalize --cse --split-input-file | FileCheck %s

// A thread computes a run of positions, with the base position in registers.
// Indices are divided in 32 bits: first the block's, then the remainder by
// threads.
// CHECK-LABEL: gpu.func @interleaved(
// CHECK: %[[BLOCK:.*]] = gpu.block_id x
// CHECK: %[[BLOCK32:.*]] = arith.index_castui %[[BLOCK]] : index to i32
// CHECK: arith.divui %[[BLOCK32]], %c4_i32 : i32
// CHECK: %[[BEGIN:.*]] = arith.remui %[[BLOCK32]], %c4_i32 : i32
// CHECK: %[[AT:.*]] = arith.index_castui %[[BEGIN]] : i32 to index
// CHECK: arith.muli %[[AT]], %c128 : index
// CHECK: arith.minui %{{.*}}, %c32 : index
// CHECK: scf.for %{{.*}} iter_args(%{{.*}}, %{{.*}}, %{{.*}}) -> (i64, vector<2xf64>, vector<2xf64>)
// CHECK: %[[OTHER:.*]] = arith.cmpi ne
// CHECK: scf.if %[[OTHER]] -> (vector<2xf64>, vector<2xf64>)
// Elements near zero are recomputed from their own phase.
// CHECK: %[[SMALL:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : i32
// CHECK: scf.if %[[SMALL]] -> (vector<2xf32>, vector<2xf32>)
// CHECK: vector.interleave
// CHECK: vector.store %{{.*}} {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
func.func @interleaved(%p: memref<?xi32>, %t: memref<?x16xf32>) {
  posenc.sinusoidal interleaved #posenc.frequencies<dim = 16> positions(%p : memref<?xi32>) outs(%t : memref<?x16xf32>)
  return
}

// -----

// CHECK-LABEL: gpu.func @apart(
// CHECK: arith.minui %{{.*}}, %c64 : index
// CHECK-COUNT-2: vector.store %{{.*}} {alignment = 16 : i64} : memref<?xbf16>, vector<8xbf16>
func.func @apart(%p: memref<?xi64>, %c: memref<?x8xbf16>, %s: memref<?x8xbf16>) {
  posenc.sincos <dim = 16> positions(%p : memref<?xi64>) outs(%c, %s : memref<?x8xbf16>, memref<?x8xbf16>)
  return
}

// -----

// f64 tables have no runs.
// CHECK-LABEL: gpu.func @wide(
// CHECK-NOT: iter_args
// CHECK: vector.store
func.func @wide(%p: i64, %t: memref<?x16xf64>) {
  posenc.sinusoidal sin_cos #posenc.frequencies<dim = 16> positions(%p : i64) outs(%t : memref<?x16xf64>)
  return
}

// -----

// A single position.
// CHECK-LABEL: func.func @alone
// CHECK: gpu.launch_func @kernels::@alone blocks in (%c1,
func.func @alone(%p: memref<i64>, %t: memref<256xf32>) {
  posenc.sinusoidal interleaved #posenc.frequencies<dim = 256> positions(%p : memref<i64>) outs(%t : memref<256xf32>)
  return
}

// -----

// The thread of a row's first pairs writes the zero at its end.
// CHECK-LABEL: gpu.func @zeros(
// CHECK: %[[IS:.*]] = arith.cmpi eq, %{{.*}}, %c7_i64 : i64
// CHECK: %[[C:.*]] = arith.select %[[IS]], %{{.*}}, %{{.*}} : vector<4xf32>
// CHECK: %[[S:.*]] = arith.select %[[IS]], %{{.*}}, %{{.*}} : vector<4xf32>
// CHECK: scf.if
// CHECK: vector.store %{{.*}} : memref<?xf32>, vector<1xf32>
// CHECK: vector.store
func.func @zeros(%p: memref<?xi64>, %t: memref<?x17xf32>) {
  posenc.sinusoidal sin_cos #posenc.frequencies<dim = 16> zero_pad padding_position = 7 positions(%p : memref<?xi64>) outs(%t : memref<?x17xf32>)
  return
}

// -----

// The lanes of a pair depend on its axis.
// CHECK-LABEL: gpu.func @axes(
// CHECK: %[[SECOND:.*]] = arith.cmpi uge, %{{.*}}, %c8 : index
// CHECK: arith.select %[[SECOND]], %c24, %c8 : index
// CHECK: arith.select %[[SECOND]], %c8, %c0 : index
func.func @axes(%p: memref<2x?xi64>, %t: memref<?x48xf32>) {
  posenc.sinusoidal sin_cos #posenc.frequencies<dim = 48> axes <axial, [8, 16]> positions(%p : memref<2x?xi64>) outs(%t : memref<?x48xf32>)
  return
}
