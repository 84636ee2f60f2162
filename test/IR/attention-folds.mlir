//===- attention-folds.mlir - folding casts into attention operands -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --canonicalize | FileCheck %s

// Casts to less static types fold into the operation, with and without regions.
// CHECK-LABEL: func.func @attention
// CHECK: %[[R:.*]] = posenc.attention ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<1x5x2x16xf32>, tensor<1x5x2x16xf32>, tensor<1x5x2x16xf32>) outs(%{{.*}} : tensor<1x5x2x16xf32>)
// CHECK: tensor.cast %[[R]] : tensor<1x5x2x16xf32> to tensor<?x?x2x16xf32>
func.func @attention(%x: tensor<1x5x2x16xf32>) -> tensor<?x?x2x16xf32> {
  %q = tensor.cast %x : tensor<1x5x2x16xf32> to tensor<?x?x2x16xf32>
  %r = posenc.attention ins(%q, %q, %q : tensor<?x?x2x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x16xf32>) outs(%q : tensor<?x?x2x16xf32>)
  return %r : tensor<?x?x2x16xf32>
}

// CHECK-LABEL: func.func @tile
// CHECK: posenc.online_attention at(%{{.*}}) ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x3x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>)
// CHECK: arith.addf
func.func @tile(%q: tensor<2x3x16xf32>, %x: tensor<4x16xf32>, %i: index, %max: tensor<2x3xf32>) -> tensor<2x3x16xf32> {
  %k = tensor.cast %x : tensor<4x16xf32> to tensor<?x16xf32>
  %r:3 = posenc.online_attention at(%i, %i, %i, %i) ins(%q, %k, %k : tensor<2x3x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
    outs(%q, %max, %max : tensor<2x3x16xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
    score(%s, %b, %h, %i0, %j) {
      %y = arith.addf %s, %s : f32
      posenc.yield %y : f32
    }
  return %r#0 : tensor<2x3x16xf32>
}
