//===- expand-index-casts.mlir - casts of indices that wrap ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-expand-index-casts --canonicalize | FileCheck %s
// RUN: posenc-opt %s --posenc-to-linalg | FileCheck %s
// RUN: posenc-run %s --function=score --input=1x300x1x8xf32=random --reference \
// RUN:   | FileCheck %s --check-prefix=VALUE
// VALUE: result #0: max error

// CHECK-LABEL: func.func @score
// CHECK: arith.trunci %{{.*}} : i64 to i8
func.func @score(%q: tensor<1x?x1x8xf32>) -> tensor<1x?x1x8xf32> {
  %r = posenc.attention
    ins(%q, %q, %q : tensor<1x?x1x8xf32>, tensor<1x?x1x8xf32>, tensor<1x?x1x8xf32>)
    outs(%q : tensor<1x?x1x8xf32>)
    score(%s, %b, %h, %i, %j) {
      %n = arith.index_cast %j : index to i8
      %w = arith.index_cast %n : i8 to index
      %l = arith.index_cast %w : index to i64
      %f = arith.sitofp %l : i64 to f32
      %c = arith.constant 0.01 : f32
      %m = arith.mulf %f, %c : f32
      %y = arith.addf %s, %m : f32
      posenc.yield %y : f32
    }
  return %r : tensor<1x?x1x8xf32>
}

// CHECK-LABEL: func.func @unsigned
// CHECK: arith.trunci %{{.*}} : tensor<4xi64> to tensor<4xi16>
func.func @unsigned(%i: tensor<4xindex>) -> tensor<4xindex> {
  %n = arith.index_castui %i : tensor<4xindex> to tensor<4xi16>
  %w = arith.index_castui %n : tensor<4xi16> to tensor<4xindex>
  return %w : tensor<4xindex>
}

// Every index fits i64.
// CHECK-LABEL: func.func @whole
// CHECK-SAME: (%[[I:.*]]: index)
// CHECK-NEXT: return %[[I]]
func.func @whole(%i: index) -> index {
  %n = arith.index_cast %i : index to i64
  %w = arith.index_cast %n : i64 to index
  return %w : index
}
