//===- stack.mlir - kernels with different stack sizes --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#frequencies = #posenc.frequencies<dim = 128, base = 10000.0>
#rotation = #posenc.rotation<pairing = half, frequencies = <dim = 128, base = 10000.0>>
#interleaved = #posenc.rotation<pairing = interleaved, frequencies = <dim = 128, base = 10000.0>>

func.func @attention(%q: tensor<?x?x4x128xf32> {posenc.name = "q"}, %k: tensor<?x?x2x128xf32> {posenc.name = "k"},
                     %v: tensor<?x?x2x128xf32> {posenc.name = "v"}, %o: tensor<?x?x4x128xf32> {posenc.name = "o"})
    -> (tensor<?x?x4x128xf32> {posenc.name = "r"}) {
  %r = posenc.attention causal query_rotation = #rotation key_rotation = #rotation
    ins(%q, %k, %v : tensor<?x?x4x128xf32>, tensor<?x?x2x128xf32>, tensor<?x?x2x128xf32>)
    outs(%o : tensor<?x?x4x128xf32>)
  return %r : tensor<?x?x4x128xf32>
}

// Decode with one query, whose keys are divided among threads.
func.func @decode(%q: tensor<?x1x4x128xf32> {posenc.name = "q"}, %k: tensor<?x2x?x128xf32> {posenc.name = "k"},
                  %v: tensor<?x2x?x128xf32> {posenc.name = "v"}, %lengths: tensor<?xi64> {posenc.name = "lengths"})
    -> (tensor<?x1x4x128xf32> {posenc.name = "r"}) {
  %r = posenc.attention causal query_rotation = #interleaved key_rotation = #interleaved key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x4x128xf32>, tensor<?x2x?x128xf32>, tensor<?x2x?x128xf32>)
    lengths(%lengths : tensor<?xi64>) outs(%q : tensor<?x1x4x128xf32>)
  return %r : tensor<?x1x4x128xf32>
}

// Two attentions, which are not divided among threads.
func.func @both(%q: tensor<?x?x4x128xf32> {posenc.name = "q"}, %k: tensor<?x?x2x128xf32> {posenc.name = "k"},
                %a: tensor<1x1x4x64xf32> {posenc.name = "a"}, %b: tensor<1x?x4x64xf32> {posenc.name = "b"})
    -> (tensor<?x?x4x128xf32> {posenc.name = "r"}, tensor<1x1x4x64xf32> {posenc.name = "s"}) {
  %r = posenc.attention ins(%q, %k, %k : tensor<?x?x4x128xf32>, tensor<?x?x2x128xf32>, tensor<?x?x2x128xf32>)
    outs(%q : tensor<?x?x4x128xf32>)
  %s = posenc.attention ins(%a, %b, %b : tensor<1x1x4x64xf32>, tensor<1x?x4x64xf32>, tensor<1x?x4x64xf32>)
    outs(%a : tensor<1x1x4x64xf32>)
  return %r, %s : tensor<?x?x4x128xf32>, tensor<1x1x4x64xf32>
}

func.func @rope(%q: tensor<?x?x4x128xf32> {posenc.name = "q"}, %p: tensor<?x?xi64> {posenc.name = "p"})
    -> (tensor<?x?x4x128xf32> {posenc.name = "r"}) {
  %r = posenc.rope half #frequencies ins(%q : tensor<?x?x4x128xf32>)
    positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%q : tensor<?x?x4x128xf32>)
  return %r : tensor<?x?x4x128xf32>
}

func.func @table(%first: i64 {posenc.name = "first"}, %n: index {posenc.name = "n"})
    -> (tensor<?x128xf32> {posenc.name = "r"}) {
  %e = tensor.empty(%n) : tensor<?x128xf32>
  %r = posenc.sinusoidal sin_cos #frequencies positions(%first : i64) outs(%e : tensor<?x128xf32>)
  return %r : tensor<?x128xf32>
}
