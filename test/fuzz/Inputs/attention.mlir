//===- attention.mlir - attention and KV cache ops ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @causal(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x2x16xf32>, %v: tensor<?x?x2x16xf32>, %p: tensor<?x?xi64>, %o: tensor<?x?x4x16xf32>) -> tensor<?x?x4x16xf32> {
  %r = posenc.attention causal window_left = 7 scale = 0.5
    query_rotation = <pairing = half, frequencies = <dim = 16, base = 1.000000e+04>>
    key_rotation = <pairing = interleaved, frequencies = <dim = 8, base = 1.000000e+04>, offset = 4>
    ins(%q, %k, %v : tensor<?x?x4x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x16xf32>)
    query_positions(%p : tensor<?x?xi64>)
    outs(%o : tensor<?x?x4x16xf32>)
  return %r : tensor<?x?x4x16xf32>
}

// -----

func.func @regions(%q: tensor<1x4x9x8xbf16>, %k: tensor<1x4x9x8xbf16>, %v: tensor<1x4x9x12xbf16>, %t: tensor<32x4xf32>, %s: tensor<4xf32>, %o: tensor<1x4x9x12xbf16>, %l: tensor<1x4x9xf32>) -> (tensor<1x4x9x12xbf16>, tensor<1x4x9xf32>) {
  %cap = arith.constant 30.0 : f32
  %r:2 = posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %k, %v : tensor<1x4x9x8xbf16>, tensor<1x4x9x8xbf16>, tensor<1x4x9x12xbf16>)
    sinks(%s : tensor<4xf32>)
    outs(%o, %l : tensor<1x4x9x12xbf16>, tensor<1x4x9xf32>)
    score(%x, %b, %h, %i, %j) {
      %d = arith.subi %j, %i : index
      %n = posenc.t5_bucket bidirectional %d : index
      %u = tensor.extract %t[%n, %h] : tensor<32x4xf32>
      %a = posenc.alibi(%h, %i, %j) heads = 4 : f32
      %y = arith.divf %x, %cap : f32
      %z = math.tanh %y : f32
      %w = arith.mulf %z, %cap : f32
      %e = arith.addf %w, %u : f32
      %f = arith.addf %e, %a : f32
      posenc.yield %f : f32
    }
    where(%b, %h, %i, %j) {
      %c = arith.cmpi sle, %j, %i : index
      posenc.yield %c : i1
    }
  return %r#0, %r#1 : tensor<1x4x9x12xbf16>, tensor<1x4x9xf32>
}

// -----

func.func @paged(%q: tensor<?x4x8xf16>, %k: tensor<?x16x2x8xf16>, %v: tensor<?x16x2x8xf16>, %c: tensor<?xi32>, %n: tensor<?xi64>, %t: tensor<?x?xi32>, %o: tensor<?x4x8xf16>) -> tensor<?x4x8xf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x4x8xf16>, tensor<?x16x2x8xf16>, tensor<?x16x2x8xf16>)
    lengths(%n : tensor<?xi64>) cu_seqlens(%c : tensor<?xi32>) block_table(%t : tensor<?x?xi32>)
    outs(%o : tensor<?x4x8xf16>)
  return %r : tensor<?x4x8xf16>
}

// -----

func.func @masked(%q: tensor<2x?x2x8xf64>, %k: tensor<2x?x1x8xf64>, %v: tensor<2x?x1x8xf64>, %m: tensor<1x2x?x?xi1>, %w: tensor<8xf64>, %o: tensor<2x?x2x8xf64>) -> tensor<2x?x2x8xf64> {
  %r = posenc.attention norm_eps = 1.000000e-06
    ins(%q, %k, %v : tensor<2x?x2x8xf64>, tensor<2x?x1x8xf64>, tensor<2x?x1x8xf64>)
    query_norm(%w : tensor<8xf64>) key_norm(%w : tensor<8xf64>)
    mask(%m : tensor<1x2x?x?xi1>)
    outs(%o : tensor<2x?x2x8xf64>)
  return %r : tensor<2x?x2x8xf64>
}

// -----

func.func @tile(%q: tensor<2x16x8xf32>, %k: tensor<?x8xf32>, %v: tensor<?x8xf32>, %b: index, %i: index, %acc: tensor<2x16x8xf32>, %max: tensor<2x16xf32>, %sum: tensor<2x16xf32>) -> (tensor<2x16x8xf32>, tensor<2x16xf32>, tensor<2x16xf32>) {
  %r:3 = posenc.online_attention causal at(%b, %b, %i, %i) keys(%b)
    ins(%q, %k, %v : tensor<2x16x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
    outs(%acc, %max, %sum : tensor<2x16x8xf32>, tensor<2x16xf32>, tensor<2x16xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x16x8xf32>, tensor<2x16xf32>, tensor<2x16xf32>
}

// -----

func.func @append(%k: tensor<?x?x2x8xf32>, %v: tensor<?x?x2x8xf32>, %p: tensor<?x?xi64>, %n: tensor<?xi64>, %kc: tensor<?x2x?x8xf32>, %vc: tensor<?x2x?x8xf32>) -> (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) {
  %r:2 = posenc.kv_append cache_layout = head_major rotation = <pairing = half, frequencies = <dim = 8, base = 1.000000e+04>>
    ins(%k, %v : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>)
    positions(%p : tensor<?x?xi64>) lengths(%n : tensor<?xi64>)
    outs(%kc, %vc : tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>)
  return %r#0, %r#1 : tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>
}
