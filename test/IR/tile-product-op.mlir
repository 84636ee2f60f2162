//===- tile-product-op.mlir - syntax of tile_product ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-roundtrip | FileCheck %s
// RUN: posenc-opt %s --mlir-print-op-generic | posenc-opt | FileCheck %s
// RUN: posenc-opt %s --emit-bytecode | posenc-opt | FileCheck %s

// CHECK-LABEL: func @tensors(
// CHECK: posenc.tile_product floats ins(%{{.*}}, %{{.*}} : tensor<8x?xf32>, tensor<?x32xbf16>) sums(%{{.*}} : tensor<8x32xf32>){{$}}
// CHECK: posenc.tile_product bf16_pairs transposed ins(%{{.*}}, %{{.*}} : tensor<?x8xi32>, tensor<?x32xi32>) sums(%{{.*}} : tensor<8x32xf32>){{$}}
func.func @tensors(%a: tensor<8x?xf32>, %b: tensor<?x32xbf16>, %x: tensor<?x8xi32>, %y: tensor<?x32xi32>, %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = posenc.tile_product floats ins(%a, %b : tensor<8x?xf32>, tensor<?x32xbf16>) sums(%c : tensor<8x32xf32>)
  %1 = posenc.tile_product bf16_pairs transposed ins(%x, %y : tensor<?x8xi32>, tensor<?x32xi32>) sums(%0 : tensor<8x32xf32>)
  return %1 : tensor<8x32xf32>
}

// CHECK-LABEL: func @memrefs(
// CHECK: posenc.tile_product f16_pairs skips_zeros ins(%{{.*}}, %{{.*}} : memref<?x?xf32>, memref<?x?xi32>) sums(%{{.*}} : memref<?x?xf32>){{$}}
// CHECK: %{{.*}} = posenc.tile_product floats transposed skips_zeros ins(%{{.*}}, %{{.*}} : memref<?x?xf64>, memref<?x?xf64>) sums(%{{.*}} : vector<4x2x8xf64>) {note}
func.func @memrefs(%a: memref<?x?xf32>, %b: memref<?x?xi32>, %c: memref<?x?xf32>, %x: memref<?x?xf64>, %v: vector<4x2x8xf64>) -> vector<4x2x8xf64> {
  posenc.tile_product f16_pairs skips_zeros ins(%a, %b : memref<?x?xf32>, memref<?x?xi32>) sums(%c : memref<?x?xf32>)
  %0 = posenc.tile_product floats skips_zeros transposed ins(%x, %x : memref<?x?xf64>, memref<?x?xf64>) sums(%v : vector<4x2x8xf64>) {note}
  return %0 : vector<4x2x8xf64>
}

// Sums in a tensor become a buffer that is written in place. The size of a result is
// that of the sums.
// RUN: posenc-opt %s --one-shot-bufferize=bufferize-function-boundaries --canonicalize | FileCheck %s --check-prefix=BUFFER
// RUN: posenc-opt %s --resolve-ranked-shaped-type-result-dims | FileCheck %s --check-prefix=SIZE
// BUFFER-LABEL: func @size(
// BUFFER-SAME: %[[A:.*]]: memref<?x?xf32{{.*}}>, %[[C:.*]]: memref<?x?xf32{{.*}}>)
// BUFFER-NOT: alloc
// BUFFER: posenc.tile_product floats ins(%[[A]], %[[A]] : {{.*}}) sums(%[[C]] : memref<?x?xf32{{.*}}>){{$}}
// SIZE-LABEL: func @size(
// SIZE-SAME: %{{.*}}, %[[C:.*]]: tensor<?x?xf32>)
// SIZE: tensor.dim %[[C]]
func.func @size(%a: tensor<?x?xf32>, %c: tensor<?x?xf32>) -> (tensor<?x?xf32>, index) {
  %c1 = arith.constant 1 : index
  %0 = posenc.tile_product floats ins(%a, %a : tensor<?x?xf32>, tensor<?x?xf32>) sums(%c : tensor<?x?xf32>)
  %1 = tensor.dim %0, %c1 : tensor<?x?xf32>
  return %0, %1 : tensor<?x?xf32>, index
}
