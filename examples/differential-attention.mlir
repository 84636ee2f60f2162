//===- differential-attention.mlir - a variant of attention ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The difference of two attentions over the same values, with an RMS norm of each
// head. docs/tutorial.md explains it.

#rotation = #posenc.rotation<pairing = half, frequencies = <dim = 64, base = 10000.0>>
#rows = affine_map<(b, t, h, d) -> (b, t, h, d)>
#row = affine_map<(b, t, h, d) -> (b, t, h)>
#channel = affine_map<(b, t, h, d) -> (d)>

func.func @differential(
    %q1: tensor<?x?x8x64xf32>, %k1: tensor<?x?x2x64xf32>,
    %q2: tensor<?x?x8x64xf32>, %k2: tensor<?x?x2x64xf32>,
    %v: tensor<?x?x2x128xf32>, %lambda: f32, %g: tensor<128xf32>)
    -> tensor<?x?x8x128xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %batch = tensor.dim %q1, %c0 : tensor<?x?x8x64xf32>
  %tokens = tensor.dim %q1, %c1 : tensor<?x?x8x64xf32>
  %o = tensor.empty(%batch, %tokens) : tensor<?x?x8x128xf32>
  %a1 = posenc.attention causal query_rotation = #rotation key_rotation = #rotation
    ins(%q1, %k1, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x128xf32>)
    outs(%o : tensor<?x?x8x128xf32>)
  %a2 = posenc.attention causal query_rotation = #rotation key_rotation = #rotation
    ins(%q2, %k2, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x128xf32>)
    outs(%o : tensor<?x?x8x128xf32>)

  // x = a1 - lambda * a2
  %x = linalg.generic {indexing_maps = [#rows, #rows, #rows],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%a1, %a2 : tensor<?x?x8x128xf32>, tensor<?x?x8x128xf32>)
      outs(%o : tensor<?x?x8x128xf32>) {
    ^bb0(%p: f32, %n: f32, %out: f32):
      %m = arith.mulf %lambda, %n : f32
      %y = arith.subf %p, %m : f32
      linalg.yield %y : f32
  } -> tensor<?x?x8x128xf32>

  // The RMS norm of each head, times 1 - lambda_init.
  %zero = arith.constant 0.0 : f32
  %size = arith.constant 128.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %scale = arith.constant 0.2 : f32
  %e = tensor.empty(%batch, %tokens) : tensor<?x?x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %squares = linalg.generic {indexing_maps = [#rows, #row],
                             iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x : tensor<?x?x8x128xf32>) outs(%f : tensor<?x?x8xf32>) {
    ^bb0(%a: f32, %sum: f32):
      %y = arith.mulf %a, %a : f32
      %z = arith.addf %sum, %y : f32
      linalg.yield %z : f32
  } -> tensor<?x?x8xf32>
  %r = linalg.generic {indexing_maps = [#rows, #row, #channel, #rows],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %squares, %g : tensor<?x?x8x128xf32>, tensor<?x?x8xf32>, tensor<128xf32>)
      outs(%o : tensor<?x?x8x128xf32>) {
    ^bb0(%a: f32, %s: f32, %w: f32, %out: f32):
      %mean = arith.divf %s, %size : f32
      %more = arith.addf %mean, %eps : f32
      %root = math.rsqrt %more : f32
      %y = arith.mulf %a, %root : f32
      %z = arith.mulf %y, %w : f32
      %u = arith.mulf %z, %scale : f32
      linalg.yield %u : f32
  } -> tensor<?x?x8x128xf32>
  return %r : tensor<?x?x8x128xf32>
}
