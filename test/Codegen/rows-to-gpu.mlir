//===- rows-to-gpu.mlir - loops over rows and reductions on GPUs ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --convert-posenc-rows-to-gpu | FileCheck %s

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Four warps of a block reduce a row each; rows that are aligned are read 16 bytes at a
// time.
// CHECK-LABEL: func.func @sum
// CHECK: scf.if
// CHECK: gpu.launch_func @kernels::@sum_rows blocks in (%{{.*}}, %{{.*}}, %{{.*}}) threads in (%c128, %c1{{.*}}, %c1{{.*}}) dynamic_shared_memory_size
// CHECK: } else {
// CHECK: gpu.launch_func @kernels::@sum_rows_narrow
func.func @sum(%x: memref<?x64xf32, strided<[?, 1]>>, %s: memref<?xf32>) {
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x64xf32, strided<[?, 1]>>) outs(%s : memref<?xf32>) {
  ^bb0(%e: f32, %sum: f32):
    %t = arith.addf %sum, %e : f32
    linalg.yield %t : f32
  }
  return
}

// The buffer of an iteration is in shared memory, and read after a barrier.
// CHECK-LABEL: func.func @mean
// CHECK-NOT: memref.alloc
// CHECK: gpu.launch_func @kernels::@mean_rows
// CHECK-NOT: scf.forall
func.func @mean(%x: memref<?x4096xf32>, %r: memref<?x4096xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (%n) {
    %sum = memref.alloc() : memref<1xf32>
    %in = memref.subview %x[%i, 0] [1, 4096] [1, 1] : memref<?x4096xf32> to memref<1x4096xf32, strided<[4096, 1], offset: ?>>
    %out = memref.subview %r[%i, 0] [1, 4096] [1, 1] : memref<?x4096xf32> to memref<1x4096xf32, strided<[4096, 1], offset: ?>>
    linalg.fill ins(%zero : f32) outs(%sum : memref<1xf32>)
    linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
        ins(%in : memref<1x4096xf32, strided<[4096, 1], offset: ?>>) outs(%sum : memref<1xf32>) {
    ^bb0(%e: f32, %s: f32):
      %t = arith.addf %s, %e : f32
      linalg.yield %t : f32
    }
    linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
        ins(%in, %sum : memref<1x4096xf32, strided<[4096, 1], offset: ?>>, memref<1xf32>)
        outs(%out : memref<1x4096xf32, strided<[4096, 1], offset: ?>>) {
    ^bb0(%e: f32, %s: f32, %o: f32):
      %t = arith.subf %e, %s : f32
      linalg.yield %t : f32
    }
  }
  return
}

// Left alone: the buffer has no bound.
// CHECK-LABEL: func.func @unbounded
// CHECK: scf.forall
func.func @unbounded(%x: memref<?x?xf32>, %n: index, %m: index) {
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (%n) {
    %row = memref.alloc(%m) : memref<?xf32>
    linalg.fill ins(%zero : f32) outs(%row : memref<?xf32>)
  }
  return
}

// Left alone: a matrix product.
// CHECK-LABEL: func.func @product
// CHECK: linalg.matmul
func.func @product(%x: memref<4x4xf32>, %y: memref<4x4xf32>) {
  linalg.matmul ins(%x, %x : memref<4x4xf32>, memref<4x4xf32>) outs(%y : memref<4x4xf32>)
  return
}

// CHECK: gpu.module @kernels
// CHECK: gpu.func @sum_rows(
// CHECK: scf.if
// CHECK: scf.for
// CHECK: vector.load {{.*}} {alignment = 16 : i64} : memref<{{.*}}xf32{{.*}}>, vector<4xf32>
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK-NOT: gpu.barrier
// CHECK: gpu.func @sum_rows_narrow(
// CHECK: memref.load
// CHECK: gpu.func @mean_rows(
// CHECK: gpu.barrier
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK-COUNT-3: gpu.barrier
