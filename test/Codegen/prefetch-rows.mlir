//===- prefetch-rows.mlir - prefetches of the next rows -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(posenc-prefetch-rows{prefetch-distance=8192}))' | FileCheck %s
// RUN: posenc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(posenc-prefetch-rows{prefetch-distance=0}))' | FileCheck %s --check-prefix=NONE
// NONE-NOT: memref.prefetch

// The second loop over a row prefetches the row 8 KiB ahead, if there is one; a
// row has 512 bytes.
// each row has 512 bytes.
// CHECK-LABEL: func.func @norm(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: memref<?x128xf32>, %{{.*}}, %[[N:[a-z0-9]*]]: index)
// CHECK:         scf.for %[[I:.*]] = %c0 to %[[N]]
// CHECK:           scf.for
// CHECK-NOT:         memref.prefetch
// CHECK:             scf.yield
// CHECK:           %[[AHEAD:.*]] = arith.constant 16 : index
// CHECK:           %[[ROWS:.*]] = arith.muli %c1, %[[AHEAD]]
// CHECK:           %[[SUM:.*]] = arith.addi %[[I]], %[[ROWS]]
// CHECK:           %[[IS:.*]] = arith.cmpi ult, %[[SUM]], %[[N]]
// CHECK:           %[[NEXT:.*]] = arith.select %[[IS]], %[[SUM]], %[[I]]
// CHECK:           scf.for %[[J:.*]] = %c0 to %c128
// CHECK:             memref.prefetch %[[X]][%[[NEXT]], %[[J]]], read
// CHECK:             memref.prefetch %[[X]][%[[NEXT]], %{{.*}}], read
// CHECK:             vector.transfer_read %[[X]][%[[I]], %[[J]]]
func.func @norm(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<32xf32>
  scf.for %i = %c0 to %n step %c1 {
    %sums = scf.for %j = %c0 to %c128 step %c32 iter_args(%acc = %zeros) -> (vector<32xf32>) {
      %v = vector.transfer_read %x[%i, %j], %zero {in_bounds = [true]} : memref<?x128xf32>, vector<32xf32>
      %s = math.fma %v, %v, %acc : vector<32xf32>
      scf.yield %s : vector<32xf32>
    }
    scf.for %j = %c0 to %c128 step %c32 {
      %v = vector.transfer_read %x[%i, %j], %zero {in_bounds = [true]} : memref<?x128xf32>, vector<32xf32>
      %p = arith.mulf %v, %sums : vector<32xf32>
      vector.transfer_write %p, %y[%i, %j] {in_bounds = [true]} : vector<32xf32>, memref<?x128xf32>
    }
  }
  return
}

// -----

// Rows of several dimensions, in a view that each iteration creates.
// CHECK-LABEL: func.func @heads(
// CHECK:         %[[NEXT:.*]] = arith.select
// CHECK:         %[[VIEW:.*]] = memref.subview %{{.*}}[%[[NEXT]], 0, 0] [1, 4, 64]
// CHECK:         memref.prefetch %[[VIEW]][%{{.*}}, %{{.*}}, %{{.*}}]
func.func @heads(%x: memref<?x4x64xf32>, %y: memref<?x4x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<16xf32>
  scf.for %i = %c0 to %n step %c1 {
    %row = memref.subview %x[%i, 0, 0] [1, 4, 64] [1, 1, 1] : memref<?x4x64xf32> to memref<1x4x64xf32, strided<[256, 64, 1], offset: ?>>
    %sums = scf.for %h = %c0 to %c4 step %c1 iter_args(%all = %zeros) -> (vector<16xf32>) {
      %sum = scf.for %j = %c0 to %c64 step %c16 iter_args(%acc = %all) -> (vector<16xf32>) {
        %v = vector.transfer_read %row[%c0, %h, %j], %zero {in_bounds = [true]} : memref<1x4x64xf32, strided<[256, 64, 1], offset: ?>>, vector<16xf32>
        %s = arith.addf %v, %acc : vector<16xf32>
        scf.yield %s : vector<16xf32>
      }
      scf.yield %sum : vector<16xf32>
    }
    scf.for %h = %c0 to %c4 step %c1 {
      scf.for %j = %c0 to %c64 step %c16 {
        %v = vector.transfer_read %row[%c0, %h, %j], %zero {in_bounds = [true]} : memref<1x4x64xf32, strided<[256, 64, 1], offset: ?>>, vector<16xf32>
        %p = arith.mulf %v, %sums : vector<16xf32>
        vector.transfer_write %p, %y[%i, %h, %j] {in_bounds = [true]} : vector<16xf32>, memref<?x4x64xf32>
      }
    }
  }
  return
}

// -----

// No prefetches: rows that are read once, scratch memory, and a row that all
// iterations read.
// CHECK-LABEL: func.func @others(
// CHECK-NOT:     memref.prefetch
// CHECK:         return
func.func @others(%x: memref<?x64xf32>, %w: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %scratch = memref.alloca() : memref<1x64xf32>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %c64 step %c16 {
      %v = vector.transfer_read %x[%i, %j], %zero {in_bounds = [true]} : memref<?x64xf32>, vector<16xf32>
      %m = vector.transfer_read %w[%j], %zero {in_bounds = [true]} : memref<64xf32>, vector<16xf32>
      %s = arith.mulf %v, %m : vector<16xf32>
      vector.transfer_write %s, %scratch[%c0, %j] {in_bounds = [true]} : vector<16xf32>, memref<1x64xf32>
    }
    scf.for %j = %c0 to %c64 step %c16 {
      %v = vector.transfer_read %scratch[%c0, %j], %zero {in_bounds = [true]} : memref<1x64xf32>, vector<16xf32>
      %m = vector.transfer_read %w[%j], %zero {in_bounds = [true]} : memref<64xf32>, vector<16xf32>
      %s = arith.addf %v, %m : vector<16xf32>
      vector.transfer_write %s, %scratch[%c0, %j] {in_bounds = [true]} : vector<16xf32>, memref<1x64xf32>
    }
    scf.for %j = %c0 to %c64 step %c16 {
      %v = vector.transfer_read %scratch[%c0, %j], %zero {in_bounds = [true]} : memref<1x64xf32>, vector<16xf32>
      vector.transfer_write %v, %x[%i, %j] {in_bounds = [true]} : vector<16xf32>, memref<?x64xf32>
    }
  }
  return
}
