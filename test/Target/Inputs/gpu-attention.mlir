//===- gpu-attention.mlir - attention whose machine code is checked -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @full_64(%q: tensor<?x?x2x64xbf16>, %k: tensor<?x?x2x64xbf16>, %v: tensor<?x?x2x64xbf16>) -> tensor<?x?x2x64xbf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>)
    outs(%q : tensor<?x?x2x64xbf16>)
  return %r : tensor<?x?x2x64xbf16>
}

func.func @causal_64(%q: tensor<?x?x2x64xbf16>, %k: tensor<?x?x2x64xbf16>, %v: tensor<?x?x2x64xbf16>) -> tensor<?x?x2x64xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>)
    outs(%q : tensor<?x?x2x64xbf16>)
  return %r : tensor<?x?x2x64xbf16>
}

func.func @full_128(%q: tensor<?x?x2x128xbf16>, %k: tensor<?x?x2x128xbf16>, %v: tensor<?x?x2x128xbf16>) -> tensor<?x?x2x128xbf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>)
    outs(%q : tensor<?x?x2x128xbf16>)
  return %r : tensor<?x?x2x128xbf16>
}

func.func @causal_128(%q: tensor<?x?x2x128xbf16>, %k: tensor<?x?x2x128xbf16>, %v: tensor<?x?x2x128xbf16>) -> tensor<?x?x2x128xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>)
    outs(%q : tensor<?x?x2x128xbf16>)
  return %r : tensor<?x?x2x128xbf16>
}

func.func @window_128(%q: tensor<?x?x8x128xbf16>, %k: tensor<?x?x2x128xbf16>, %v: tensor<?x?x2x128xbf16>) -> tensor<?x?x8x128xbf16> {
  %r = posenc.attention causal window_left = 512
    ins(%q, %k, %v : tensor<?x?x8x128xbf16>, tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>)
    outs(%q : tensor<?x?x8x128xbf16>)
  return %r : tensor<?x?x8x128xbf16>
}

func.func @full_256(%q: tensor<?x?x2x256xbf16>, %k: tensor<?x?x2x256xbf16>, %v: tensor<?x?x2x256xbf16>) -> tensor<?x?x2x256xbf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x2x256xbf16>, tensor<?x?x2x256xbf16>, tensor<?x?x2x256xbf16>)
    outs(%q : tensor<?x?x2x256xbf16>)
  return %r : tensor<?x?x2x256xbf16>
}

func.func @causal_256(%q: tensor<?x?x2x256xbf16>, %k: tensor<?x?x2x256xbf16>, %v: tensor<?x?x2x256xbf16>) -> tensor<?x?x2x256xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x2x256xbf16>, tensor<?x?x2x256xbf16>, tensor<?x?x2x256xbf16>)
    outs(%q : tensor<?x?x2x256xbf16>)
  return %r : tensor<?x?x2x256xbf16>
}

// Some tiles are skipped, and some have no masked pairs.
func.func @documents_128(%q: tensor<?x?x2x128xbf16>, %k: tensor<?x?x2x128xbf16>, %v: tensor<?x?x2x128xbf16>, %d: tensor<?xi32>) -> tensor<?x?x2x128xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>)
    outs(%q : tensor<?x?x2x128xbf16>)
    where(%b, %h, %i, %j) {
      %x = tensor.extract %d[%i] : tensor<?xi32>
      %y = tensor.extract %d[%j] : tensor<?xi32>
      %same = arith.cmpi eq, %x, %y : i32
      posenc.yield %same : i1
    }
  return %r : tensor<?x?x2x128xbf16>
}

// Scores that a region or a mask changes have two consumers with more registers.
func.func @alibi_64(%q: tensor<?x?x2x64xbf16>, %k: tensor<?x?x2x64xbf16>, %v: tensor<?x?x2x64xbf16>) -> tensor<?x?x2x64xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>)
    outs(%q : tensor<?x?x2x64xbf16>)
    score(%s, %b, %h, %i, %j) {
      %a = posenc.alibi(%h, %i, %j) heads = 2 : f32
      %y = arith.addf %s, %a : f32
      posenc.yield %y : f32
    }
  return %r : tensor<?x?x2x64xbf16>
}

func.func @alibi_128(%q: tensor<?x?x2x128xbf16>, %k: tensor<?x?x2x128xbf16>, %v: tensor<?x?x2x128xbf16>) -> tensor<?x?x2x128xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>)
    outs(%q : tensor<?x?x2x128xbf16>)
    score(%s, %b, %h, %i, %j) {
      %a = posenc.alibi(%h, %i, %j) heads = 2 : f32
      %y = arith.addf %s, %a : f32
      posenc.yield %y : f32
    }
  return %r : tensor<?x?x2x128xbf16>
}

func.func @mask_128(%q: tensor<?x?x2x128xbf16>, %k: tensor<?x?x2x128xbf16>, %v: tensor<?x?x2x128xbf16>, %m: tensor<?x?x?x?xf32>) -> tensor<?x?x2x128xbf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>)
    mask(%m : tensor<?x?x?x?xf32>)
    outs(%q : tensor<?x?x2x128xbf16>)
  return %r : tensor<?x?x2x128xbf16>
}

// Warpgroups share the rows of wide heads.
func.func @causal_latent(%q: tensor<?x?x16x576xbf16>, %k: tensor<?x?x1x576xbf16>, %v: tensor<?x?x1x512xbf16>, %o: tensor<?x?x16x512xbf16>) -> tensor<?x?x16x512xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x16x576xbf16>, tensor<?x?x1x576xbf16>, tensor<?x?x1x512xbf16>)
    outs(%o : tensor<?x?x16x512xbf16>)
  return %r : tensor<?x?x16x512xbf16>
}

// Few queries, of which a thread has one row, two and four.
func.func @decode_128(%q: tensor<?x1x8x128xbf16>, %k: tensor<?x2x2048x128xbf16>, %v: tensor<?x2x2048x128xbf16>, %n: tensor<?xi64>) -> tensor<?x1x8x128xbf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x8x128xbf16>, tensor<?x2x2048x128xbf16>, tensor<?x2x2048x128xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x1x8x128xbf16>)
  return %r : tensor<?x1x8x128xbf16>
}

func.func @decode_64(%q: tensor<?x1x16x64xf16>, %k: tensor<?x1x2048x64xf16>, %v: tensor<?x1x2048x64xf16>, %n: tensor<?xi64>) -> tensor<?x1x16x64xf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x16x64xf16>, tensor<?x1x2048x64xf16>, tensor<?x1x2048x64xf16>)
    lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x1x16x64xf16>)
  return %r : tensor<?x1x16x64xf16>
}

func.func @speculative_128(%q: tensor<?x8x8x128xbf16>, %k: tensor<?x2x2048x128xbf16>, %v: tensor<?x2x2048x128xbf16>, %n: tensor<?xi64>) -> tensor<?x8x8x128xbf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x8x8x128xbf16>, tensor<?x2x2048x128xbf16>, tensor<?x2x2048x128xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x8x8x128xbf16>)
  return %r : tensor<?x8x8x128xbf16>
}

// Pages of a dynamic size, and of 16 tokens.
func.func @paged_64(%q: tensor<?x?x8x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>, %t: tensor<?x?xi32>, %n: tensor<?xi64>) -> tensor<?x?x8x64xbf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x?x8x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>)
    lengths(%n : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x?x8x64xbf16>)
  return %r : tensor<?x?x8x64xbf16>
}

func.func @paged_128(%q: tensor<?x?x8x128xbf16>, %k: tensor<?x2x?x128xbf16>, %v: tensor<?x2x?x128xbf16>, %t: tensor<?x?xi32>, %n: tensor<?xi64>) -> tensor<?x?x8x128xbf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x?x8x128xbf16>, tensor<?x2x?x128xbf16>, tensor<?x2x?x128xbf16>)
    lengths(%n : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x?x8x128xbf16>)
  return %r : tensor<?x?x8x128xbf16>
}

func.func @pages_16_128(%q: tensor<?x?x8x128xbf16>, %k: tensor<?x16x2x128xbf16>, %v: tensor<?x16x2x128xbf16>, %t: tensor<?x?xi32>, %n: tensor<?xi64>) -> tensor<?x?x8x128xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x8x128xbf16>, tensor<?x16x2x128xbf16>, tensor<?x16x2x128xbf16>)
    lengths(%n : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x?x8x128xbf16>)
  return %r : tensor<?x?x8x128xbf16>
}

// The values of latent attention are the first channels of the keys.
func.func @decode_latent(%q: tensor<?x2x16x576xbf16>, %k: tensor<?x1x2048x576xbf16>, %n: tensor<?xi64>, %o: tensor<?x2x16x512xbf16>) -> tensor<?x2x16x512xbf16> {
  %c0 = arith.constant 0 : index
  %b = tensor.dim %k, %c0 : tensor<?x1x2048x576xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, 2048, 512] [1, 1, 1, 1] : tensor<?x1x2048x576xbf16> to tensor<?x1x2048x512xbf16>
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x2x16x576xbf16>, tensor<?x1x2048x576xbf16>, tensor<?x1x2048x512xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%o : tensor<?x2x16x512xbf16>)
  return %r : tensor<?x2x16x512xbf16>
}
