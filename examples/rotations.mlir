//===- rotations.mlir - rotations beyond one rope -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// posenc-run examples/rotations.mlir --reference --function=xpos \
//   --input=2x37x4x64xf32=random:seed=1 --input=2x37x2x64xf32=random:seed=2 --input=2x37xi64=iota
//
//===----------------------------------------------------------------------===//

#plain = #posenc.frequencies<dim = 64>
#yarn = #posenc.frequencies<dim = 64, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0>>
#linear = #posenc.frequencies<dim = 64, base = 5.0e5, scaling = #posenc.linear<factor = 2.0>>
#queries = #posenc.xpos<base = 512.0, gamma = 0.4>
#keys = #posenc.xpos<base = 512.0, gamma = 0.4, reciprocal = true>

// XPos: scores decay with the distance of query and key.
func.func @xpos(%q: tensor<?x?x4x64xf32>, %k: tensor<?x?x2x64xf32>, %p: tensor<?x?xi64>) -> (tensor<?x?x4x64xf32>, tensor<?x?x2x64xf32>) {
  %r = posenc.rope interleaved #plain scale #queries ins(%q : tensor<?x?x4x64xf32>)
    positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%q : tensor<?x?x4x64xf32>)
  %s = posenc.rope interleaved #plain scale #keys ins(%k : tensor<?x?x2x64xf32>)
    positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%k : tensor<?x?x2x64xf32>)
  return %r, %s : tensor<?x?x4x64xf32>, tensor<?x?x2x64xf32>
}

// Cached keys move from one scaling and position to another, in one pass.
func.func @rescaled(%k: tensor<?x?x8x64xf32>, %p: tensor<?x?xi64>, %q: tensor<?x?xi64>) -> tensor<?x?x8x64xf32> {
  %a = posenc.rope half inverse #yarn
    ins(%k : tensor<?x?x8x64xf32>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%k : tensor<?x?x8x64xf32>)
  %r = posenc.rope half #linear
    ins(%a : tensor<?x?x8x64xf32>) positions(%q : tensor<?x?xi64>) dims = [0, 1] outs(%a : tensor<?x?x8x64xf32>)
  return %r : tensor<?x?x8x64xf32>
}

// RoPE-Mixed: row and column have learned frequencies for each pair. The
// rotation by the sum of both angles is one pass.
func.func @mixed(%x: tensor<?x8x64xf32>, %i: tensor<?xi64>, %j: tensor<?xi64>, %fi: tensor<32xf32>, %fj: tensor<32xf32>) -> tensor<?x8x64xf32> {
  %hi, %li = posenc.turns values(%fi : tensor<32xf32>)
  %hj, %lj = posenc.turns values(%fj : tensor<32xf32>)
  %a = posenc.rope half #plain
    ins(%x : tensor<?x8x64xf32>) positions(%i : tensor<?xi64>) turns(%hi, %li : tensor<32xi64>, tensor<32xi64>) dims = [0] outs(%x : tensor<?x8x64xf32>)
  %r = posenc.rope half #plain
    ins(%a : tensor<?x8x64xf32>) positions(%j : tensor<?xi64>) turns(%hj, %lj : tensor<32xi64>, tensor<32xi64>) dims = [0] outs(%x : tensor<?x8x64xf32>)
  return %r : tensor<?x8x64xf32>
}

// Weights of a checkpoint with interleaved pairs, for a rope with half pairing:
// 8 heads of 64 channels.
func.func @weights(%w: tensor<?x512xbf16>) -> tensor<?x512xbf16> {
  %d0 = arith.constant 0 : index
  %n = tensor.dim %w, %d0 : tensor<?x512xbf16>
  %heads = tensor.expand_shape %w [[0], [1, 2]] output_shape [%n, 8, 64] : tensor<?x512xbf16> into tensor<?x8x64xbf16>
  %half = posenc.convert_pairing interleaved to half dim = 64 %heads : tensor<?x8x64xbf16>
  %r = tensor.collapse_shape %half [[0], [1, 2]] : tensor<?x8x64xbf16> into tensor<?x512xbf16>
  return %r : tensor<?x512xbf16>
}
