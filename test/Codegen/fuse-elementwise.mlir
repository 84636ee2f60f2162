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
