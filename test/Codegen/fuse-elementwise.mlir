//===- fuse-elementwise.mlir - fusion of elementwise chains ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --split-input-file --mlir-print-local-scope \
// RUN:   --pass-pipeline='builtin.module(func.func(posenc-fuse-elementwise))' \
// RUN:   | FileCheck %s

// A named op is fused into its only user, which may be a reduction.
// CHECK-LABEL: func.func @chain(
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "reduction"]
// CHECK:           arith.addf
// CHECK:           arith.mulf
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @chain(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %e: tensor<?x?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %s = linalg.add ins(%x, %y : tensor<?x?xf32>, tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%s : tensor<?x?xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32, %c: f32):
    %p = arith.mulf %a, %a : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// Ops with fewer loops would be recomputed for each row, and ops with other
// users would be computed twice, so neither is fused.
// CHECK-LABEL: func.func @apart(
// CHECK-COUNT-3: linalg.generic
func.func @apart(%x: tensor<?x?xf32>, %w: tensor<?xf32>, %e: tensor<?xf32>, %o: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %v = linalg.exp ins(%w : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x, %v : tensor<?x?xf32>, tensor<?xf32>) outs(%o : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<?x?xf32>
  %r = linalg.negf ins(%s : tensor<?x?xf32>) outs(%o : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %s, %r : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// Matrix products are tiled separately.
// CHECK-LABEL: func.func @product(
// CHECK:         linalg.generic
// CHECK:         linalg.matmul
func.func @product(%x: tensor<?x?xf32>, %w: tensor<?x?xf32>, %e: tensor<?x?xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %v = linalg.exp ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.matmul ins(%v, %w : tensor<?x?xf32>, tensor<?x?xf32>) outs(%o : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

// A product reads a constant matrix through a transposition and a broadcast
// along its batch. Matrices that are no constants stay as they are.
// CHECK-LABEL: func.func @constant_matrix(
// CHECK-DAG:     %[[W:.*]] = arith.constant dense<{{.*}}> : tensor<3x2xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>,
// CHECK-SAME:      affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>]
// CHECK-SAME:      ins(%{{.*}}, %[[W]] : tensor<?x?x2xf32>, tensor<3x2xf32>)
// CHECK:         linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<5x2xf32>, tensor<2x3xf32>)
func.func @constant_matrix(%x: tensor<?x?x2xf32>, %e: tensor<?x2x3xf32>, %o: tensor<?x?x3xf32>,
    %a: tensor<5x2xf32>, %v: tensor<3x2xf32>, %p: tensor<5x3xf32>) -> (tensor<?x?x3xf32>, tensor<5x3xf32>) {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %empty = tensor.empty() : tensor<2x3xf32>
  %t = linalg.transpose ins(%w : tensor<3x2xf32>) outs(%empty : tensor<2x3xf32>) permutation = [1, 0]
  %b = linalg.generic {indexing_maps = [affine_map<(b, k, n) -> (k, n)>, affine_map<(b, k, n) -> (b, k, n)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%t : tensor<2x3xf32>) outs(%e : tensor<?x2x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<?x2x3xf32>
  %s = linalg.transpose ins(%v : tensor<3x2xf32>) outs(%empty : tensor<2x3xf32>) permutation = [1, 0]
  %y = linalg.batch_matmul ins(%x, %b : tensor<?x?x2xf32>, tensor<?x2x3xf32>) outs(%o : tensor<?x?x3xf32>) -> tensor<?x?x3xf32>
  %z = linalg.matmul ins(%a, %s : tensor<5x2xf32>, tensor<2x3xf32>) outs(%p : tensor<5x3xf32>) -> tensor<5x3xf32>
  return %y, %z : tensor<?x?x3xf32>, tensor<5x3xf32>
}
