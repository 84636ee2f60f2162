// ===- serving.mlir - decode and serving of the GPU benchmark ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ===----------------------------------------------------------------------===//

// ../serving.txt lists the sizes. Nothing is rotated, so that PyTorch's functions have
// the same results.

// A query of each sequence, and a cache with its keys.
func.func @decode_128(%q: tensor<?x1x32x128xbf16>, %k: tensor<?x8x?x128xbf16>, %v: tensor<?x8x?x128xbf16>, %n: tensor<?xi64>) -> tensor<?x1x32x128xbf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x32x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x1x32x128xbf16>)
  return %r : tensor<?x1x32x128xbf16>
}

// Pages of 16 tokens, as vLLM has them.
func.func @pages_128(%q: tensor<?x1x32x128xbf16>, %k: tensor<?x16x8x128xbf16>, %v: tensor<?x16x8x128xbf16>, %t: tensor<?x?xi32>, %n: tensor<?xi64>) -> tensor<?x1x32x128xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x1x32x128xbf16>, tensor<?x16x8x128xbf16>, tensor<?x16x8x128xbf16>)
    lengths(%n : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x1x32x128xbf16>)
  return %r : tensor<?x1x32x128xbf16>
}

// A call of a server: sequences of one query, and prompts.
func.func @serve_128(%q: tensor<?x32x128xbf16>, %k: tensor<?x16x8x128xbf16>, %v: tensor<?x16x8x128xbf16>, %t: tensor<?x?xi32>, %c: tensor<?xi64>, %n: tensor<?xi64>) -> tensor<?x32x128xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x32x128xbf16>, tensor<?x16x8x128xbf16>, tensor<?x16x8x128xbf16>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x32x128xbf16>)
  return %r : tensor<?x32x128xbf16>
}

// MLA: values are the first channels of the keys.
func.func @latent_128(%q: tensor<?x1x128x576xbf16>, %k: tensor<?x1x?x576xbf16>, %n: tensor<?xi64>, %o: tensor<?x1x128x512xbf16>) -> tensor<?x1x128x512xbf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x1x?x576xbf16>
  %c = tensor.dim %k, %c2 : tensor<?x1x?x576xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %c, 512] [1, 1, 1, 1] : tensor<?x1x?x576xbf16> to tensor<?x1x?x512xbf16>
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x128x576xbf16>, tensor<?x1x?x576xbf16>, tensor<?x1x?x512xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%o : tensor<?x1x128x512xbf16>)
  return %r : tensor<?x1x128x512xbf16>
}

// Keys and values of new tokens, rotated, scaled and rounded to a cache of 8 bits.
func.func @append_f8(%k: tensor<?x8x128xbf16>, %v: tensor<?x8x128xbf16>, %p: tensor<?xi64>, %s: tensor<?xi64>, %kc: tensor<?x8x?x128xf8E4M3FN>, %vc: tensor<?x8x?x128xf8E4M3FN>, %ks: tensor<?x8x?xf32>, %vs: tensor<?x8x?xf32>) -> (tensor<?x8x?x128xf8E4M3FN>, tensor<?x8x?x128xf8E4M3FN>, tensor<?x8x?xf32>, tensor<?x8x?xf32>) {
  %r:4 = posenc.kv_append cache_layout = head_major
    rotation = <pairing = half, frequencies = <dim = 128, base = 5.0e+05>>
    ins(%k, %v : tensor<?x8x128xbf16>, tensor<?x8x128xbf16>) positions(%p : tensor<?xi64>) slots(%s : tensor<?xi64>)
    outs(%kc, %vc, %ks, %vs : tensor<?x8x?x128xf8E4M3FN>, tensor<?x8x?x128xf8E4M3FN>, tensor<?x8x?xf32>, tensor<?x8x?xf32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<?x8x?x128xf8E4M3FN>, tensor<?x8x?x128xf8E4M3FN>, tensor<?x8x?xf32>, tensor<?x8x?xf32>
}
