//===- dots.mlir - matrix products with bf16 dot products -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{passes} = posenc-tile-contractions{vector-bytes=64 bf16-dots=true}
// DEFINE: %{lower} = posenc-opt %s --split-input-file \
// DEFINE:   --pass-pipeline='builtin.module(func.func(%{passes}))'
// RUN: %{lower} | FileCheck %s
// REDEFINE: %{passes} = posenc-tile-contractions{vector-bytes=64}
// RUN: %{lower} | FileCheck %s --check-prefix=NONE
// REDEFINE: %{passes} = posenc-tile-contractions{vector-bytes=32 bf16-dots=true}
// RUN: %{lower} | FileCheck %s --check-prefix=NONE
// REDEFINE: %{passes} = posenc-tile-contractions{vector-bytes=64 bf16-dots=true amx-bf16=true}
// RUN: %{lower} | FileCheck %s --check-prefix=TILES

// Both matrices become words of two elements that are 32 apart in the order of
// the sum. 100 elements are a block of 64 and a block of 36, with 4 words of
// two elements and 28 of one.
// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[A:.*]]: tensor<16x100xbf16>, %[[B:.*]]: tensor<100x64xbf16>
// CHECK: %[[LOW:.*]] = tensor.extract_slice %{{.*}}[0, %{{.*}}] [%{{.*}}, 32] [1, 1] : {{.*}}bf16
// CHECK: %[[HIGH:.*]] = tensor.extract_slice %{{.*}}[0, %{{.*}}] [%{{.*}}, 32] [1, 1] : {{.*}}bf16
// CHECK: linalg.generic {{.*}} ins(%[[LOW]], %[[HIGH]] :
// CHECK: arith.shli %{{.*}}, %c16
// CHECK: arith.ori
// CHECK: posenc.tile_product bf16_pairs ins(%{{.*}} : tensor<8x?xi32>, tensor<?x32xi32>) sums(%{{.*}} : tensor<8x32xf32>)
// With tiles, a register tile has 32 rows and columns. Words after the last elements of
// the sum, up to a multiple of 16, are zeros.
// TILES-LABEL: func.func @product
// TILES: linalg.fill ins(%c0_i32
// TILES: posenc.tile_product bf16_pairs ins(%{{.*}} : tensor<32x?xi32>, tensor<?x32xi32>) sums(%{{.*}} : tensor<32x32xf32>)
// NONE-LABEL: func.func @product
// NONE-NOT: bf16_pairs
// NONE: posenc.tile_product floats
// NONE-NOT: bf16_pairs
func.func @product(%a: tensor<16x100xbf16>, %b: tensor<100x64xbf16>, %c: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<16x100xbf16>, tensor<100x64xbf16>) outs(%c : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

// -----

// A constant is packed while it is compiled, so register tiles read it in place.
// CHECK-LABEL: func.func @constant
// CHECK: %[[B:.*]] = arith.constant dense<{{.*}}> : tensor<1x16x32xi32>
// CHECK: %[[PANEL:.*]] = tensor.extract_slice %[[B]][
// CHECK: %[[STEPS:.*]] = tensor.extract_slice %[[PANEL]][
// CHECK: posenc.tile_product bf16_pairs ins(%{{.*}}, %[[STEPS]] :
// With tiles, the rows of one register tile are copied at a time, for all panels of a
// block.
// TILES-LABEL: func.func @constant
// TILES: %[[STEP:.*]] = arith.constant 32 : index
// TILES: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %[[STEP]] iter_args
// TILES: tensor.empty() : tensor<32x256xi32>
// TILES: posenc.tile_product
func.func @constant(%a: tensor<40x2xbf16>, %c: tensor<40x4xf32>) -> tensor<40x4xf32> {
  %b = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xbf16>
  %0 = linalg.matmul ins(%a, %b : tensor<40x2xbf16>, tensor<2x4xbf16>) outs(%c : tensor<40x4xf32>) -> tensor<40x4xf32>
  return %0 : tensor<40x4xf32>
}
