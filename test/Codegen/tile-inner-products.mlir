//===- tile-inner-products.mlir - matrix products of cached operands ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{avx512} = func.func(posenc-tile-inner-products{vector-bytes=64})
// DEFINE: %{avx2} = func.func(posenc-tile-inner-products{vector-bytes=32})
// RUN: posenc-opt %s --pass-pipeline='builtin.module(%{avx512},canonicalize,cse)' \
// RUN:   --split-input-file --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --pass-pipeline='builtin.module(%{avx2},canonicalize,cse)' \
// RUN:   --split-input-file --mlir-print-local-scope \
// RUN:   | FileCheck %s --check-prefix=AVX2
// RUN: posenc-opt %s --pass-pipeline='builtin.module(func.func(posenc-tile-inner-products{vector-bytes=64 bf16-dots=true}),cse)' \
// RUN:   --split-input-file --mlir-print-local-scope \
// RUN:   | FileCheck %s --check-prefix=DOTS

// The sums of a tile fit into registers. Users of the product are fused into
// the tile, and the fill into its start. A transposed matrix is read without a
// copy.
// CHECK-LABEL: func.func @used(
// CHECK-SAME:    %[[A:.*]]: tensor<64x48xf32>, %[[B:.*]]: tensor<48x32xf32>,
// CHECK:         scf.for
// CHECK:           scf.for %[[I:[a-z0-9]+]] = %c0 to %c64 step %c8
// CHECK:             %[[ROWS:.*]] = tensor.extract_slice %[[A]][%[[I]], 0] [8, 48]
// CHECK:             %[[ZEROS:.*]] = linalg.fill {{.*}} tensor<8x32xf32>
// CHECK:             %[[SUMS:.*]] = posenc.tile_product floats ins(%[[ROWS]], %[[B]] : {{.*}}) sums(%[[ZEROS]] :
// CHECK:             linalg.generic {{.*}} ins(%[[SUMS]] :
// CHECK-NEXT:        ^bb0
// CHECK-NEXT:          arith.mulf
// AVX2-LABEL: func.func @used(
// AVX2:         scf.for
// AVX2:           scf.for %{{.*}} = %c0 to %c64 step %c4
// AVX2:             scf.for %{{.*}} = %c0 to %c32 step %c16
// AVX2:               linalg.fill {{.*}} tensor<4x16xf32>
func.func @used(%a: tensor<64x48xf32>, %b: tensor<48x32xf32>, %x: f32, %c: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%acc = %c) -> tensor<64x32xf32> {
    %et = tensor.empty() : tensor<32x48xf32>
    %t = linalg.transpose ins(%b : tensor<48x32xf32>) outs(%et : tensor<32x48xf32>) permutation = [1, 0]
    %e = tensor.empty() : tensor<64x32xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
    %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
                         iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %t : tensor<64x48xf32>, tensor<32x48xf32>) outs(%f : tensor<64x32xf32>) {
    ^bb0(%u: f32, %v: f32, %s: f32):
      %m = arith.mulf %u, %v : f32
      %n = arith.addf %m, %s : f32
      linalg.yield %n : f32
    } -> tensor<64x32xf32>
    %scaled = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
                              iterator_types = ["parallel", "parallel"]}
        ins(%p : tensor<64x32xf32>) outs(%acc : tensor<64x32xf32>) {
    ^bb0(%u: f32, %s: f32):
      %m = arith.mulf %u, %x : f32
      %n = arith.addf %m, %s : f32
      linalg.yield %n : f32
    } -> tensor<64x32xf32>
    scf.yield %scaled : tensor<64x32xf32>
  }
  return %r : tensor<64x32xf32>
}

// -----

// A matrix of another type is converted before the loop that takes slices of
// it. Remaining rows are a separate tile.
// CHECK-LABEL: func.func @converted(
// CHECK-SAME:    %[[A:.*]]: tensor<10x8xbf16>, %[[B:.*]]: tensor<24x8xbf16>
// CHECK-DAG:     %[[LEFT:.*]] = linalg.generic {{.*}} ins(%[[A]] : tensor<10x8xbf16>) outs(%{{.*}} : tensor<10x8xf32>)
// CHECK-DAG:     %[[RIGHT:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>]{{.*}} ins(%[[B]] : tensor<24x8xbf16>) outs(%{{.*}} : tensor<8x24xf32>)
// CHECK:         scf.for
// CHECK:           tensor.extract_slice %[[RIGHT]][0, 0] [%{{.*}}, 24]
// CHECK:           tensor.extract_slice %{{.*}}[0, 0] [8, 24]
// CHECK:           posenc.tile_product floats {{.*}} sums(%{{.*}} : tensor<8x24xf32>)
// CHECK:           tensor.extract_slice %{{.*}}[8, 0] [2, 24]
// CHECK:           posenc.tile_product floats {{.*}} sums(%{{.*}} : tensor<2x24xf32>)
func.func @converted(%a: tensor<10x8xbf16>, %b: tensor<24x8xbf16>, %c: tensor<10x24xf32>) -> tensor<10x24xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%acc = %c) -> tensor<10x24xf32> {
    %n = affine.min affine_map<(d0) -> (d0 + 3, 8)>(%i)
    %sa = tensor.extract_slice %a[0, 0] [10, %n] [1, 1] : tensor<10x8xbf16> to tensor<10x?xbf16>
    %sb = tensor.extract_slice %b[0, 0] [24, %n] [1, 1] : tensor<24x8xbf16> to tensor<24x?xbf16>
    %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
                         iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%sa, %sb : tensor<10x?xbf16>, tensor<24x?xbf16>) outs(%acc : tensor<10x24xf32>) {
    ^bb0(%u: bf16, %v: bf16, %s: f32):
      %x = arith.extf %u : bf16 to f32
      %y = arith.extf %v : bf16 to f32
      %m = arith.mulf %x, %y : f32
      %q = arith.addf %m, %s : f32
      linalg.yield %q : f32
    } -> tensor<10x24xf32>
    scf.yield %p : tensor<10x24xf32>
  }
  return %r : tensor<10x24xf32>
}

// -----

// bf16 matrices become words of two elements, all at once if a loop uses one
// after the other. An op that only rounds a matrix is fused into that.
// DOTS-LABEL: func.func @words(
// DOTS-SAME:    %[[A:.*]]: tensor<64x32xf32>, %[[B:.*]]: tensor<5x64x32xbf16>,
// DOTS:         %[[ALL:.*]] = scf.for %{{.*}} = %c0 to %c5 step %c1 iter_args(%{{.*}} = %{{.*}}) -> (tensor<5x32x32xi32>)
// DOTS:         scf.for %[[I:[a-z0-9]+]] = %c0 to %c5
// DOTS:           %[[RIGHT:.*]] = tensor.extract_slice %[[ALL]][%[[I]], 0, 0] [1, 32, 32]
// DOTS:             posenc.tile_product bf16_pairs transposed ins(%{{.*}}, %{{.*}} : tensor<32x8xi32>, tensor<32x32xi32>) sums(%{{.*}} : tensor<8x32xf32>)
// CHECK-LABEL: func.func @words(
// CHECK-NOT:     bf16_pairs
func.func @words(%a: tensor<64x32xf32>, %b: tensor<5x64x32xbf16>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %e = tensor.empty() : tensor<64x32xbf16>
  %w = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<64x32xf32>) outs(%e : tensor<64x32xbf16>) {
  ^bb0(%u: f32, %v: bf16):
    %t = arith.truncf %u : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<64x32xbf16>
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%acc = %c) -> tensor<32x32xf32> {
    %s = tensor.extract_slice %b[%i, 0, 0] [1, 64, 32] [1, 1, 1] : tensor<5x64x32xbf16> to tensor<64x32xbf16>
    %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                         iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%w, %s : tensor<64x32xbf16>, tensor<64x32xbf16>) outs(%acc : tensor<32x32xf32>) {
    ^bb0(%u: bf16, %v: bf16, %o: f32):
      %x = arith.extf %u : bf16 to f32
      %y = arith.extf %v : bf16 to f32
      %m = arith.mulf %x, %y : f32
      %q = arith.addf %m, %o : f32
      linalg.yield %q : f32
    } -> tensor<32x32xf32>
    scf.yield %p : tensor<32x32xf32>
  }
  return %r : tensor<32x32xf32>
}

// -----

// Products outside of loops and of unbounded size are left to
// posenc-tile-contractions.
// CHECK-LABEL: func.func @left(
// CHECK-NOT:     scf.for {{.*}} step %c8
// CHECK:         linalg.matmul
// CHECK:         linalg.matmul
func.func @left(%a: tensor<64x48xf32>, %b: tensor<48x32xf32>, %c: tensor<64x32xf32>, %d: tensor<64x?xf32>, %e: tensor<?x32xf32>) -> tensor<64x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %p = linalg.matmul ins(%a, %b : tensor<64x48xf32>, tensor<48x32xf32>) outs(%c : tensor<64x32xf32>) -> tensor<64x32xf32>
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%acc = %p) -> tensor<64x32xf32> {
    %q = linalg.matmul ins(%d, %e : tensor<64x?xf32>, tensor<?x32xf32>) outs(%acc : tensor<64x32xf32>) -> tensor<64x32xf32>
    scf.yield %q : tensor<64x32xf32>
  }
  return %r : tensor<64x32xf32>
}
