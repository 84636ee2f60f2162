//===- contraction-misses.mlir - products that are not tiled --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --pass-pipeline='builtin.module(func.func(posenc-tile-contractions{vector-bytes=64}))' \
// RUN:   | FileCheck %s

// A loop of the result is called a reduction, which the verifier accepts.
// CHECK-LABEL: func.func @reduced_batch(
// CHECK-NOT:     tensor.extract_slice
func.func @reduced_batch(%p: tensor<2x2x4x16xf32>, %v: tensor<2x2x16x8xf32>, %o: tensor<2x2x4x8xf32>) -> tensor<2x2x4x8xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(b, h, i, d, j) -> (b, h, i, j)>, affine_map<(b, h, i, d, j) -> (b, h, j, d)>, affine_map<(b, h, i, d, j) -> (b, h, i, d)>], iterator_types = ["reduction", "parallel", "parallel", "parallel", "reduction"]} ins(%p, %v : tensor<2x2x4x16xf32>, tensor<2x2x16x8xf32>) outs(%o : tensor<2x2x4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %c, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x2x4x8xf32>
  return %0 : tensor<2x2x4x8xf32>
}
