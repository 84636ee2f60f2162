//===- prefetch-panels.mlir - prefetches of the next part of a panel ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(posenc-prefetch-panels{product-unroll=4}))' | FileCheck %s
// RUN: posenc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(posenc-prefetch-panels{prefetch-distance=0}))' | FileCheck %s --check-prefix=NONE
// NONE-NOT: memref.prefetch
// RUN: posenc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(posenc-prefetch-panels{product-unroll=4 product-panel-cache=2}))' | FileCheck %s --check-prefix=IN-L2

// RUN: posenc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(posenc-prefetch-panels{product-prefetch=1 prefetch-distance=0}),canonicalize,cse)' | FileCheck %s --check-prefix=RESULTS

#ahead = affine_map<()[s0, s1] -> (s0 + s1)>

// Four register tiles read 256 rows of two cache lines. Each tile prefetches
// 128 of the next 512 lines, one in two iterations.
// CHECK-LABEL: func.func @product(
// CHECK-SAME:    %{{.*}}: memref<32x?xf32>, %[[W:[a-z0-9]*]]: memref<?x32xf32>
// CHECK:         scf.for %[[TILE:.*]] = %c0 to %c32 step %c8
// CHECK:           %[[LINE:.*]] = arith.muli %{{.*}}, %c128{{.*}} : index
// CHECK:           %[[FIRST:.*]] = arith.muli %[[LINE]], %c16{{.*}} : index
// CHECK:           %[[NEXT:.*]] = affine.apply #{{.*}}()[%{{.*}}, %c256]
// CHECK:           scf.for %[[K:.*]] = %c0 to %c256
// CHECK:             %[[ROW:.*]] = affine.apply #{{.*}}()[%{{.*}}, %[[K]]]
// CHECK:             %[[STEP:.*]] = arith.muli %[[K]], %c8{{.*}} : index
// CHECK:             %[[AT:.*]] = arith.addi %[[FIRST]], %[[STEP]] : index
// CHECK:             memref.prefetch %[[W]][%[[NEXT]], %[[AT]]]
// CHECK-NOT:         memref.prefetch
// CHECK:             vector.transfer_read %[[W]][%[[ROW]], %c0]
func.func @product(%x: memref<32x?xf32>, %w: memref<?x32xf32>, %y: memref<32x32xf32>, %from: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f32
  scf.for %tile = %c0 to %c32 step %c8 {
    %start = vector.transfer_read %y[%tile, %c0], %zero {in_bounds = [true]} : memref<32x32xf32>, vector<32xf32>
    %sum = scf.for %k = %c0 to %c256 step %c1 iter_args(%acc = %start) -> (vector<32xf32>) {
      %row = affine.apply #ahead()[%from, %k]
      %a = memref.load %x[%tile, %row] : memref<32x?xf32>
      %as = vector.broadcast %a : f32 to vector<32xf32>
      %b = vector.transfer_read %w[%row, %c0], %zero {in_bounds = [true]} : memref<?x32xf32>, vector<32xf32>
      %s = math.fma %as, %b, %acc : vector<32xf32>
      scf.yield %s : vector<32xf32>
    }
    vector.transfer_write %sum, %y[%tile, %c0] {in_bounds = [true]} : vector<32xf32>, memref<32x32xf32>
  }
  return
}

// -----

// A row that is read in two vectors is prefetched once. Two vectors of a wider row are
// not.
// CHECK-LABEL: func.func @vectors(
// CHECK-SAME:    %{{.*}}: memref<32x256xf32>, %[[W:[a-z0-9]*]]: memref<256x32xf32>
// CHECK:         scf.for %{{.*}} = %c0 to %c256
// CHECK:           memref.prefetch %[[W]]
// CHECK-NOT:       memref.prefetch
// CHECK:           vector.transfer_read %[[W]][%{{.*}}, %c0]
// CHECK-NOT:       memref.prefetch
// CHECK:           vector.transfer_read %[[W]][%{{.*}}, %c16]
// CHECK-NOT:       memref.prefetch
// CHECK:         return
func.func @vectors(%x: memref<32x256xf32>, %w: memref<256x32xf32>, %v: memref<256x48xf32>, %y: memref<32x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f32
  %start = arith.constant dense<0.0> : vector<16xf32>
  scf.for %tile = %c0 to %c32 step %c8 {
    %sum:2 = scf.for %k = %c0 to %c256 step %c1 iter_args(%s0 = %start, %s1 = %start) -> (vector<16xf32>, vector<16xf32>) {
      %a = memref.load %x[%tile, %k] : memref<32x256xf32>
      %as = vector.broadcast %a : f32 to vector<16xf32>
      %b0 = vector.transfer_read %w[%k, %c0], %zero {in_bounds = [true]} : memref<256x32xf32>, vector<16xf32>
      %b1 = vector.transfer_read %w[%k, %c16], %zero {in_bounds = [true]} : memref<256x32xf32>, vector<16xf32>
      %d0 = vector.transfer_read %v[%k, %c0], %zero {in_bounds = [true]} : memref<256x48xf32>, vector<16xf32>
      %d1 = vector.transfer_read %v[%k, %c16], %zero {in_bounds = [true]} : memref<256x48xf32>, vector<16xf32>
      %t0 = math.fma %as, %b0, %s0 : vector<16xf32>
      %t1 = math.fma %as, %b1, %s1 : vector<16xf32>
      %u0 = math.fma %as, %d0, %t0 : vector<16xf32>
      %u1 = math.fma %as, %d1, %t1 : vector<16xf32>
      scf.yield %u0, %u1 : vector<16xf32>, vector<16xf32>
    }
    vector.transfer_write %sum#0, %y[%tile, %c0] {in_bounds = [true]} : vector<16xf32>, memref<32x32xf32>
    vector.transfer_write %sum#1, %y[%tile, %c16] {in_bounds = [true]} : vector<16xf32>, memref<32x32xf32>
  }
  return
}

// -----

// A packed argument has dynamic strides.
// CHECK-LABEL: func.func @argument(
// CHECK:         memref.prefetch
func.func @argument(%x: memref<32x?xf32>, %w: memref<?x32xf32, strided<[?, 1]>>, %y: memref<32x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f32
  scf.for %tile = %c0 to %c32 step %c8 {
    %start = vector.transfer_read %y[%tile, %c0], %zero {in_bounds = [true]} : memref<32x32xf32>, vector<32xf32>
    %sum = scf.for %k = %c0 to %c256 step %c1 iter_args(%acc = %start) -> (vector<32xf32>) {
      %a = memref.load %x[%tile, %k] : memref<32x?xf32>
      %as = vector.broadcast %a : f32 to vector<32xf32>
      %b = vector.transfer_read %w[%k, %c0], %zero {in_bounds = [true]} : memref<?x32xf32, strided<[?, 1]>>, vector<32xf32>
      %s = math.fma %as, %b, %acc : vector<32xf32>
      scf.yield %s : vector<32xf32>
    }
    vector.transfer_write %sum, %y[%tile, %c0] {in_bounds = [true]} : vector<32xf32>, memref<32x32xf32>
  }
  return
}

// -----

// The rows of a part of a wider panel are not consecutive.
// CHECK-LABEL: func.func @wide(
// CHECK-NOT:     memref.prefetch
func.func @wide(%x: memref<32x?xf32>, %w: memref<?x32xf32, strided<[64, 1]>>, %y: memref<32x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f32
  scf.for %tile = %c0 to %c32 step %c8 {
    %start = vector.transfer_read %y[%tile, %c0], %zero {in_bounds = [true]} : memref<32x32xf32>, vector<32xf32>
    %sum = scf.for %k = %c0 to %c256 step %c1 iter_args(%acc = %start) -> (vector<32xf32>) {
      %a = memref.load %x[%tile, %k] : memref<32x?xf32>
      %as = vector.broadcast %a : f32 to vector<32xf32>
      %b = vector.transfer_read %w[%k, %c0], %zero {in_bounds = [true]} : memref<?x32xf32, strided<[64, 1]>>, vector<32xf32>
      %s = math.fma %as, %b, %acc : vector<32xf32>
      scf.yield %s : vector<32xf32>
    }
    vector.transfer_write %sum, %y[%tile, %c0] {in_bounds = [true]} : vector<32xf32>, memref<32x32xf32>
  }
  return
}

// -----

// One register tile prefetches all lines.
// CHECK-LABEL: func.func @few_rows(
// CHECK:         scf.for
// CHECK:           memref.prefetch
// CHECK:           memref.prefetch
// CHECK-NOT:       memref.prefetch
// CHECK:           scf.yield
func.func @few_rows(%w: memref<?x32xf32>, %n: index, %start: vector<32xf32>) -> vector<32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %start) -> (vector<32xf32>) {
    %b = vector.transfer_read %w[%k, %c0], %zero {in_bounds = [true]} : memref<?x32xf32>, vector<32xf32>
    %s = arith.addf %b, %acc : vector<32xf32>
    scf.yield %s : vector<32xf32>
  }
  return %sum : vector<32xf32>
}

// -----

// An unknown number of register tiles divides the lines, if fences keep their
// operations in order. A single one prefetches all of them, 8 KiB (128 lines) ahead
// of its reads.
// CHECK-LABEL: func.func @unknown_tiles(
// CHECK-SAME:    %[[W:[a-z0-9]*]]: memref<256x32xf32>
// CHECK:         scf.for %[[TILE:.*]] = %c0 to %{{.*}} step %c8
// CHECK:           %[[COUNT:.*]] = arith.ceildivui %{{.*}}, %c8{{.*}} : index
// CHECK:           %[[SHARE:.*]] = arith.ceildivui %c32{{.*}}, %[[COUNT]] : index
// CHECK:           %[[IS_ONLY:.*]] = arith.cmpi eq, %[[COUNT]], %c1{{.*}} : index
// CHECK:           %[[FIRST:.*]] = arith.select %[[IS_ONLY]], %c-6144{{.*}}, %{{.*}} : index
// CHECK:           scf.for %[[K:.*]] = %c0 to %c256
// CHECK:             %[[STEP:.*]] = arith.muli %[[K]], %[[SHARE]] : index
// CHECK:             %[[AT:.*]] = arith.addi %[[FIRST]], %[[STEP]] : index
// CHECK:             memref.prefetch %[[W]][%c256, %[[AT]]]
// CHECK:             %[[IS_MORE:.*]] = arith.cmpi ugt, %[[SHARE]], %c16{{.*}} : index
// CHECK:             scf.if %[[IS_MORE]] {
// CHECK:               %[[AT1:.*]] = arith.addi %[[AT]], %c16{{.*}} : index
// CHECK:               memref.prefetch %[[W]][%c256, %[[AT1]]]
// CHECK-NOT:           memref.prefetch
func.func @unknown_tiles(%w: memref<256x32xf32>, %y: memref<?x32xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f32
  scf.for %tile = %c0 to %n step %c8 {
    %start = vector.transfer_read %y[%tile, %c0], %zero {in_bounds = [true]} : memref<?x32xf32>, vector<32xf32>
    %sum = scf.for %k = %c0 to %c256 step %c1 iter_args(%acc = %start) -> (vector<32xf32>) {
      %b = vector.transfer_read %w[%k, %c0], %zero {in_bounds = [true]} : memref<256x32xf32>, vector<32xf32>
      %s = arith.addf %b, %acc : vector<32xf32>
      llvm.fence syncscope("singlethread") acq_rel
      scf.yield %s : vector<32xf32>
    }
    vector.transfer_write %sum, %y[%tile, %c0] {in_bounds = [true]} : vector<32xf32>, memref<?x32xf32>
  }
  return
}

// -----

// Conditions would divide the body of a loop that LLVM reorders, which prefetches a line
// for each row.
// CHECK-LABEL: func.func @unordered_tiles(
// CHECK-NOT:     scf.if
// CHECK:         memref.prefetch
// CHECK-NOT:     memref.prefetch
// CHECK:         return
func.func @unordered_tiles(%w: memref<256x32xf32>, %y: memref<?x32xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f32
  scf.for %tile = %c0 to %n step %c8 {
    %start = vector.transfer_read %y[%tile, %c0], %zero {in_bounds = [true]} : memref<?x32xf32>, vector<32xf32>
    %sum = scf.for %k = %c0 to %c256 step %c1 iter_args(%acc = %start) -> (vector<32xf32>) {
      %b = vector.transfer_read %w[%k, %c0], %zero {in_bounds = [true]} : memref<256x32xf32>, vector<32xf32>
      %s = arith.addf %b, %acc : vector<32xf32>
      scf.yield %s : vector<32xf32>
    }
    vector.transfer_write %sum, %y[%tile, %c0] {in_bounds = [true]} : vector<32xf32>, memref<?x32xf32>
  }
  return
}

// -----

// Scratch memory, parts of rows, every other row, and scalars are not prefetched.
// CHECK-LABEL: func.func @others(
// CHECK-NOT:     memref.prefetch
// CHECK:         return
func.func @others(%w: memref<?x64xf32>, %v: memref<?x32xf32>, %m: memref<f32>, %n: index, %start: vector<32xf32>) -> vector<32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %scratch = memref.alloca() : memref<256x32xf32>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %start) -> (vector<32xf32>) {
    %double = affine.apply affine_map<(d0) -> (d0 * 2)>(%k)
    %a = vector.transfer_read %w[%k, %c0], %zero {in_bounds = [true]} : memref<?x64xf32>, vector<32xf32>
    %b = vector.transfer_read %scratch[%k, %c0], %zero {in_bounds = [true]} : memref<256x32xf32>, vector<32xf32>
    %c = vector.transfer_read %v[%double, %c0], %zero {in_bounds = [true]} : memref<?x32xf32>, vector<32xf32>
    %d = vector.transfer_read %m[], %zero : memref<f32>, vector<f32>
    %e = vector.broadcast %d : vector<f32> to vector<32xf32>
    %p = math.fma %a, %b, %acc : vector<32xf32>
    %s = math.fma %e, %c, %p : vector<32xf32>
    scf.yield %s : vector<32xf32>
  }
  return %sum : vector<32xf32>
}

// -----

// Each register tile prefetches the results of the one below, which has as many
// rows. Results in scratch are in the cache.
// RESULTS-LABEL: func.func @product(
// RESULTS-NOT:     memref.prefetch
// RESULTS-LABEL: func.func @results(
// RESULTS-SAME:    %{{.*}}, %[[Y:.*]]: memref<32x32xf32>
// RESULTS:         scf.for %[[TILE:.*]] = %c0 to %c32 step %c2
// RESULTS-DAG:       %[[ROW2:.*]] = arith.addi %[[TILE]], %c2{{.*}} : index
// RESULTS-DAG:       %[[ROW3:.*]] = arith.addi %[[TILE]], %c3{{.*}} : index
// RESULTS-DAG:       memref.prefetch %[[Y]][%[[ROW2]], %c0{{.*}}], read, locality<3>, data
// RESULTS-DAG:       memref.prefetch %[[Y]][%[[ROW2]], %c16{{.*}}], read, locality<3>, data
// RESULTS-DAG:       memref.prefetch %[[Y]][%[[ROW3]], %c0{{.*}}], read, locality<3>, data
// RESULTS-DAG:       memref.prefetch %[[Y]][%[[ROW3]], %c16{{.*}}], read, locality<3>, data
// RESULTS:           scf.for
// RESULTS-NOT:     memref.prefetch
func.func @results(%w: memref<256x32xf32>, %y: memref<32x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant dense<0.0> : vector<2x32xf32>
  %pad = arith.constant 0.0 : f32
  %scratch = memref.alloca() : memref<32x32xf32>
  scf.for %tile = %c0 to %c32 step %c2 {
    %sum = scf.for %k = %c0 to %c256 step %c1 iter_args(%acc = %zero) -> (vector<2x32xf32>) {
      %b = vector.transfer_read %w[%k, %c0], %pad {in_bounds = [true]} : memref<256x32xf32>, vector<32xf32>
      %bs = vector.broadcast %b : vector<32xf32> to vector<2x32xf32>
      %s = arith.addf %bs, %acc : vector<2x32xf32>
      scf.yield %s : vector<2x32xf32>
    }
    vector.transfer_write %sum, %y[%tile, %c0] {in_bounds = [true, true]} : vector<2x32xf32>, memref<32x32xf32>
    vector.transfer_write %sum, %scratch[%tile, %c0] {in_bounds = [true, true]} : vector<2x32xf32>, memref<32x32xf32>
  }
  return
}

// -----

// An iteration that reads four rows prefetches a line: four tiles share the lines.
// CHECK-LABEL: func.func @unrolled(
// CHECK-SAME:    %{{.*}}: memref<32x256xf32>, %[[W:[a-z0-9]*]]: memref<256x16xf32>
// CHECK:           scf.for %[[K:.*]] = %c0 to %c256 step %c4
// CHECK:             %[[ITERATION:.*]] = arith.divui %[[K]], %c4
// CHECK:             %[[STEP:.*]] = arith.muli %[[ITERATION]], %c16
// CHECK:             memref.prefetch %[[W]]{{.*}}, read, locality<3>
// CHECK-NOT:         memref.prefetch %[[W]]
// CHECK:             scf.yield
// IN-L2-LABEL: func.func @unrolled(
// IN-L2:         memref.prefetch {{.*}}, read, locality<2>
func.func @unrolled(%x: memref<32x256xf32>, %w: memref<256x16xf32>, %y: memref<32x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f32
  scf.for %tile = %c0 to %c32 step %c8 {
    %start = vector.transfer_read %y[%tile, %c0], %zero {in_bounds = [true]} : memref<32x16xf32>, vector<16xf32>
    %sum = scf.for %k = %c0 to %c256 step %c4 iter_args(%acc = %start) -> (vector<16xf32>) {
      %a = memref.load %x[%tile, %k] : memref<32x256xf32>
      %as = vector.broadcast %a : f32 to vector<16xf32>
      %b = vector.transfer_read %w[%k, %c0], %zero {in_bounds = [true]} : memref<256x16xf32>, vector<16xf32>
      %s = math.fma %as, %b, %acc : vector<16xf32>
      %k1 = arith.addi %k, %c1 : index
      %a1 = memref.load %x[%tile, %k1] : memref<32x256xf32>
      %as1 = vector.broadcast %a1 : f32 to vector<16xf32>
      %b1 = vector.transfer_read %w[%k1, %c0], %zero {in_bounds = [true]} : memref<256x16xf32>, vector<16xf32>
      %s1 = math.fma %as1, %b1, %s : vector<16xf32>
      scf.yield %s1 : vector<16xf32>
    }
    vector.transfer_write %sum, %y[%tile, %c0] {in_bounds = [true]} : vector<16xf32>, memref<32x16xf32>
  }
  return
}
