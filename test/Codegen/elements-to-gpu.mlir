//===- elements-to-gpu.mlir - elementwise loops as GPU kernels ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --convert-posenc-elements-to-gpu --canonicalize --cse | FileCheck %s

// One thread per element computes its indices from its number. Scalars from
// outside become kernel arguments, constants are cloned.
// CHECK-LABEL: func.func @sum
// CHECK-DAG: %[[COUNT:.*]] = arith.muli %[[ROWS:.*]], %c16
// CHECK-DAG: %[[BLOCKS:.*]] = arith.ceildivui %[[COUNT]], %c256
// CHECK: gpu.launch_func @kernels::@sum_elements blocks in (%[[BLOCKS]], %c1, %c1) threads in (%c256, %c1, %c1)
// CHECK-SAME: %arg3 : index
func.func @sum(%a: memref<?x16xbf16>, %b: memref<16xbf16>, %o: memref<?x16xbf16>, %n: index) {
  %two = arith.constant 2.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a, %b : memref<?x16xbf16>, memref<16xbf16>) outs(%o : memref<?x16xbf16>) {
  ^bb0(%x: bf16, %y: bf16, %z: bf16):
    %s = arith.addf %x, %y : bf16
    %w = arith.extf %s : bf16 to f32
    %t = arith.mulf %w, %two : f32
    %r = arith.truncf %t : f32 to bf16
    %j = linalg.index 1 : index
    %c = arith.cmpi slt, %j, %n : index
    %u = arith.select %c, %r, %x : bf16
    linalg.yield %u : bf16
  }
  return
}

// Copies become kernels, too.
// CHECK-LABEL: func.func @copy
// CHECK: gpu.launch_func @kernels::@copy_elements
func.func @copy(%a: memref<?x4xf32, strided<[?, 1]>>, %o: memref<?x4xf32>) {
  memref.copy %a, %o : memref<?x4xf32, strided<[?, 1]>> to memref<?x4xf32>
  return
}

// Indices have 64 bits, as on the CPU.
// CHECK-LABEL: func.func @squares
func.func @squares(%a: memref<?xi64>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%a : memref<?xi64>) {
  ^bb0(%x: i64):
    %i = arith.index_cast %x : i64 to index
    %j = linalg.index 0 : index
    %k = arith.muli %i, %j : index
    %y = arith.index_cast %k : index to i64
    linalg.yield %y : i64
  }
  return
}

// Loops that cannot become kernels are not changed.
// CHECK-LABEL: func.func @product
// CHECK-NEXT: linalg.matmul
func.func @product(%a: memref<4x8xf32>, %b: memref<8x4xf32>, %o: memref<4x4xf32>) {
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x4xf32>) outs(%o : memref<4x4xf32>)
  return
}

// CHECK-LABEL: func.func @tensors
// CHECK-NEXT: linalg.exp
func.func @tensors(%a: tensor<4x8xf32>, %o: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = linalg.exp ins(%a : tensor<4x8xf32>) outs(%o : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @bytes
// CHECK-NEXT: memref.copy
func.func @bytes(%a: memref<4xi8>, %o: memref<4xi8>) {
  memref.copy %a, %o : memref<4xi8> to memref<4xi8>
  return
}

// CHECK-LABEL: gpu.module @kernels
// CHECK: gpu.func @sum_elements(
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK: scf.if
// CHECK: %[[J:.*]] = arith.remui %[[NUMBER:.*]], %c16
// CHECK: %[[I:.*]] = arith.divui %[[NUMBER]], %c16
// CHECK: %[[X:.*]] = memref.load
// CHECK: %[[Y:.*]] = memref.load %{{.*}}[%[[J]]]
// A 16-bit sum is computed in f32 and rounded.
// CHECK: %[[WIDE:.*]] = arith.extf %[[X]] : bf16 to f32
// CHECK: arith.addf %[[WIDE]], %{{.*}} : f32
// CHECK: arith.truncf
// CHECK: %[[COLUMN:.*]] = arith.index_cast %[[J]] : index to i64
// CHECK: arith.cmpi slt, %[[COLUMN]],
// CHECK: memref.store
// CHECK: gpu.func @copy_elements(

// CHECK: gpu.func @squares_elements
// CHECK: %[[X:.*]] = memref.load
// CHECK: %[[J:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK: %[[Y:.*]] = arith.muli %[[X]], %[[J]] : i64
// CHECK: memref.store %[[Y]]
