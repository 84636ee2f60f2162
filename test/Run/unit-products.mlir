//===- unit-products.mlir - products with a loop of one iteration ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Products with a loop of one iteration, and a dimension of the batch behind it in an operand:
// rank-reducing slices of them would not say which unit dimension they keep.
//
// DEFINE: %{run} = posenc-run %s --reference
// RUN: %{run} --function=one_step --input=2x1x3x2xf64=random:seed=1 \
// RUN:   --input=3x1x17x2xf64=random:seed=2 | FileCheck %s
// RUN: %{run} --function=one_row --input=1x5x3x2xf64=random:seed=1 \
// RUN:   --input=3x5x17x2xf64=random:seed=2 | FileCheck %s
// RUN: %{run} --function=one_column --input=7x5x3xf32=random:seed=1 \
// RUN:   --input=5x1x3xf32=random:seed=2 | FileCheck %s
// CHECK: result #0: max error

#a = affine_map<(b, c, m, n, k) -> (m, k, b, c)>
#b = affine_map<(b, c, m, n, k) -> (b, k, n, c)>
#o = affine_map<(b, c, m, n, k) -> (b, c, m, n)>
#loops = {indexing_maps = [#a, #b, #o],
          iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}

func.func @one_step(%x: tensor<2x1x3x2xf64>, %y: tensor<3x1x17x2xf64>) -> tensor<3x2x2x17xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<3x2x2x17xf64>
  %f = linalg.fill ins(%zero : f64) outs(%e : tensor<3x2x2x17xf64>) -> tensor<3x2x2x17xf64>
  %r = linalg.generic #loops
      ins(%x, %y : tensor<2x1x3x2xf64>, tensor<3x1x17x2xf64>)
      outs(%f : tensor<3x2x2x17xf64>) {
  ^bb0(%p: f64, %q: f64, %s: f64):
    %t = arith.mulf %p, %q : f64
    %u = arith.addf %s, %t : f64
    linalg.yield %u : f64
  } -> tensor<3x2x2x17xf64>
  return %r : tensor<3x2x2x17xf64>
}

func.func @one_row(%x: tensor<1x5x3x2xf64>, %y: tensor<3x5x17x2xf64>) -> tensor<3x2x1x17xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<3x2x1x17xf64>
  %f = linalg.fill ins(%zero : f64) outs(%e : tensor<3x2x1x17xf64>) -> tensor<3x2x1x17xf64>
  %r = linalg.generic #loops
      ins(%x, %y : tensor<1x5x3x2xf64>, tensor<3x5x17x2xf64>)
      outs(%f : tensor<3x2x1x17xf64>) {
  ^bb0(%p: f64, %q: f64, %s: f64):
    %t = arith.mulf %p, %q : f64
    %u = arith.addf %s, %t : f64
    linalg.yield %u : f64
  } -> tensor<3x2x1x17xf64>
  return %r : tensor<3x2x1x17xf64>
}

func.func @one_column(%x: tensor<7x5x3xf32>, %y: tensor<5x1x3xf32>) -> tensor<3x7x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x7x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x7x1xf32>) -> tensor<3x7x1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (m, k, b)>,
                                        affine_map<(b, m, n, k) -> (k, n, b)>,
                                        affine_map<(b, m, n, k) -> (b, m, n)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<7x5x3xf32>, tensor<5x1x3xf32>) outs(%f : tensor<3x7x1xf32>) {
  ^bb0(%p: f32, %q: f32, %s: f32):
    %t = arith.mulf %p, %q : f32
    %u = arith.addf %s, %t : f32
    linalg.yield %u : f32
  } -> tensor<3x7x1xf32>
  return %r : tensor<3x7x1xf32>
}
