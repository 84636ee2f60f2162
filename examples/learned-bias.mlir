//===- learned-bias.mlir - a score region with a gather -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A learned bias for each head and each relative position up to 127.
// docs/tutorial.md explains it.

func.func @learned_bias(
    %q: tensor<?x?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x64xf32>,
    %table: tensor<8x128xf32>) -> tensor<?x?x8x64xf32> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>)
    outs(%q : tensor<?x?x8x64xf32>)
    score(%s, %b, %h, %i, %j) {
      %zero = arith.constant 0 : index
      %last = arith.constant 127 : index
      %relative = arith.subi %i, %j : index
      %positive = arith.maxsi %relative, %zero : index
      %clipped = arith.minsi %positive, %last : index
      %bias = tensor.extract %table[%h, %clipped] : tensor<8x128xf32>
      %y = arith.addf %s, %bias : f32
      posenc.yield %y : f32
    }
  return %r : tensor<?x?x8x64xf32>
}
