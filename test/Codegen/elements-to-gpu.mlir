//===- elements-to-gpu.mlir - elements as threads of a GPU ===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --convert-posenc-elements-to-gpu --canonicalize --cse | FileCheck %s

// A thread an element, whose indices follow from its number. Numbers from
// outside are passed, constants are the kernel's.
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

// Copies are as well.
// CHECK-LABEL: func.func @copy
// CHECK: gpu.launch_func @kernels::@copy_elements
func.func @copy(%a: memref<?x4xf32, strided<[?, 1]>>, %o: memref<?x4xf32>) {
  memref.copy %a, %o : memref<?x4xf32, strided<[?, 1]>> to memref<?x4xf32>
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
// A sum in 16 bits is one in f32 that is rounded.
// CHECK: %[[WIDE:.*]] = arith.extf %[[X]] : bf16 to f32
// CHECK: arith.addf %[[WIDE]], %{{.*}} : f32
// CHECK: arith.truncf
// CHECK: arith.cmpi slt, %[[J]],
// CHECK: memref.store
// CHECK: gpu.func @copy_elements(
