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
// REDEFINE: %{passes} = posenc-tile-contractions{vector-bytes=64 bf16-dots=true bf16-tiles=true}
// RUN: %{lower} | FileCheck %s --check-prefix=TILES
// REDEFINE: %{passes} = posenc-lower-dots
// RUN: %{lower} | FileCheck %s --check-prefix=LOWER

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
// CHECK: %[[A:.*]] = vector.transfer_read {{.*}}xi32>, vector<8x1xi32>
// CHECK: %[[B:.*]] = vector.transfer_read {{.*}}xi32>, vector<32xi32>
// CHECK: vector.contract {{.*}} : vector<8x2xbf16>, vector<32x2xbf16> into vector<8x32xf32>
// With tiles, a register tile has 32 rows and columns. Words after the last elements of
// the sum, up to a multiple of 16, are zeros.
// TILES-LABEL: func.func @product
// TILES: linalg.fill ins(%c0_i32
// TILES: linalg.generic {{.*}}"parallel", "parallel", "reduction"]} ins({{.*}} : tensor<32x?xi32>, tensor<?x32xi32>) outs({{.*}} : tensor<32x32xf32>)
// TILES-NOT: vector.contract
// TILES-LABEL: func.func @pairs
// NONE-LABEL: func.func @product
// NONE-NOT: vector.contract
// NONE-LABEL: func.func @pairs
func.func @product(%a: tensor<16x100xbf16>, %b: tensor<100x64xbf16>, %c: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<16x100xbf16>, tensor<100x64xbf16>) outs(%c : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

// -----

// LOWER-LABEL: func.func @pairs
// LOWER-COUNT-4: x86vector.avx512.dot {{.*}} : vector<32xbf16> -> vector<16xf32>
// LOWER-NOT: x86vector.avx512.dot
// LOWER-NOT: vector.contract
func.func @pairs(%a: vector<2x2xbf16>, %b: vector<32x2xbf16>, %c: vector<2x32xf32>) -> vector<2x32xf32> {
  %0 = vector.contract {indexing_maps = [affine_map<(m, n, p) -> (m, p)>, affine_map<(m, n, p) -> (n, p)>, affine_map<(m, n, p) -> (m, n)>],
                        iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
    %a, %b, %c : vector<2x2xbf16>, vector<32x2xbf16> into vector<2x32xf32>
  return %0 : vector<2x32xf32>
}

// -----

// Not bf16, too few columns, and a max reduction: not changed.
// LOWER-LABEL: func.func @others
// LOWER-COUNT-3: vector.contract
// LOWER-NOT: x86vector
#a = affine_map<(m, n, p) -> (m, p)>
#b = affine_map<(m, n, p) -> (n, p)>
#c = affine_map<(m, n, p) -> (m, n)>
func.func @others(%a4: vector<2x4xbf16>, %b4: vector<16x4xbf16>, %a: vector<2x2xbf16>, %b: vector<16x2xbf16>, %few: vector<8x2xbf16>,
                  %c: vector<2x16xf32>, %d: vector<2x8xf32>) -> (vector<2x16xf32>, vector<2x8xf32>, vector<2x16xf32>) {
  %0 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
    %a4, %b4, %c : vector<2x4xbf16>, vector<16x4xbf16> into vector<2x16xf32>
  %1 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
    %a, %few, %d : vector<2x2xbf16>, vector<8x2xbf16> into vector<2x8xf32>
  %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<maximumf>}
    %a, %b, %c : vector<2x2xbf16>, vector<16x2xbf16> into vector<2x16xf32>
  return %0, %1, %2 : vector<2x16xf32>, vector<2x8xf32>, vector<2x16xf32>
}
