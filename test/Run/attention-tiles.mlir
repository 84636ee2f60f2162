//===- attention-tiles.mlir - tiling of attention -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Tiles of batch, heads and queries give the same bits as the whole operation, for
// all masks, regions and caches that depend on positions. Tiles of keys give the
// same sums up to rounding. Controls: without trailing_queries, results differ.
// RUN: rm -rf %t && mkdir %t
// RUN: %python -B %S/Inputs/attention-tiles.py posenc-opt posenc-run %s %t | FileCheck %s
// CHECK: {{^}}18 tilings, 0 wrong, 6 faults found{{$}}

#r = #posenc.rotation<pairing = half, frequencies = <dim = 16, base = 10000.0>>
func.func @full(%q: tensor<2x?x6x16xf32>, %k: tensor<2x?x2x16xf32>, %v: tensor<2x?x2x8xf32>, %o: tensor<2x?x6x8xf32>) -> tensor<2x?x6x8xf32> {
  %r = posenc.attention ins(%q, %k, %v : tensor<2x?x6x16xf32>, tensor<2x?x2x16xf32>, tensor<2x?x2x8xf32>) outs(%o : tensor<2x?x6x8xf32>)
  return %r : tensor<2x?x6x8xf32>
}
func.func @causal(%q: tensor<?x?x6x16xf32>, %k: tensor<?x?x2x16xf32>, %v: tensor<?x?x2x8xf32>, %o: tensor<?x?x6x8xf32>) -> tensor<?x?x6x8xf32> {
  %r = posenc.attention causal window_left = 9 query_rotation = #r key_rotation = #r ins(%q, %k, %v : tensor<?x?x6x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x8xf32>) outs(%o : tensor<?x?x6x8xf32>)
    score(%s, %b, %h, %i, %j) {
      %a = posenc.alibi(%h, %i, %j) heads = 6 : f32
      %c = arith.index_cast %b : index to i64
      %d = arith.sitofp %c : i64 to f32
      %e = arith.mulf %a, %d : f32
      %y = arith.addf %s, %e : f32
      posenc.yield %y : f32
    }
    where(%b, %h, %i, %j) {
      %c = arith.addi %h, %b : index
      %d = arith.addi %c, %j : index
      %c3 = arith.constant 3 : index
      %e = arith.remui %d, %c3 : index
      %z = arith.constant 0 : index
      %y = arith.cmpi ne, %e, %z : index
      posenc.yield %y : i1
    }
  return %r : tensor<?x?x6x8xf32>
}
func.func @cached(%q: tensor<?x6x?x16xbf16>, %k: tensor<?x2x?x16xi8>, %v: tensor<?x2x?x8xi8>, %ks: tensor<?x2x?xf32>, %vs: tensor<?x1x?xf32>, %n: tensor<?xi64>, %m: tensor<?x1x?x?xf32>, %sink: tensor<6xf32>, %o: tensor<?x6x?x8xbf16>, %l: tensor<?x6x?xf32>) -> (tensor<?x6x?x8xbf16>, tensor<?x6x?xf32>) {
  %r:2 = posenc.attention causal query_layout = head_major key_layout = head_major ins(%q, %k, %v : tensor<?x6x?x16xbf16>, tensor<?x2x?x16xi8>, tensor<?x2x?x8xi8>)
    lengths(%n : tensor<?xi64>) mask(%m : tensor<?x1x?x?xf32>) sinks(%sink : tensor<6xf32>) key_scales(%ks : tensor<?x2x?xf32>) value_scales(%vs : tensor<?x1x?xf32>) outs(%o, %l : tensor<?x6x?x8xbf16>, tensor<?x6x?xf32>)
  return %r#0, %r#1 : tensor<?x6x?x8xbf16>, tensor<?x6x?xf32>
}
func.func @paged(%q: tensor<?x?x6x16xf32>, %p: tensor<?x?xi64>, %k: tensor<?x2x4x16xf32>, %v: tensor<?x2x4x8xf32>, %t: tensor<?x?xi32>, %n: tensor<?xi64>, %w: tensor<16xf32>, %o: tensor<?x?x6x8xf32>) -> tensor<?x?x6x8xf32> {
  %r = posenc.attention causal norm_eps = 1.0e-6 key_layout = head_major query_rotation = #r ins(%q, %k, %v : tensor<?x?x6x16xf32>, tensor<?x2x4x16xf32>, tensor<?x2x4x8xf32>)
    query_positions(%p : tensor<?x?xi64>) query_norm(%w : tensor<16xf32>) lengths(%n : tensor<?xi64>) block_table(%t : tensor<?x?xi32>) outs(%o : tensor<?x?x6x8xf32>)
  return %r : tensor<?x?x6x8xf32>
}
func.func @ragged(%q: tensor<?x6x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x8xf32>, %c: tensor<?xi64>, %o: tensor<?x6x8xf32>) -> tensor<?x6x8xf32> {
  %r = posenc.attention causal ins(%q, %k, %v : tensor<?x6x16xf32>, tensor<?x2x16xf32>, tensor<?x2x8xf32>) cu_seqlens(%c, %c : tensor<?xi64>, tensor<?xi64>) outs(%o : tensor<?x6x8xf32>)
  return %r : tensor<?x6x8xf32>
}
func.func @parts(%q: tensor<2x5x16xf32>, %k: tensor<?x16xf32>, %v: tensor<?x8xf32>, %acc: tensor<2x5x8xf32>, %max: tensor<2x5xf32>, %sum: tensor<2x5xf32>) -> (tensor<2x5x8xf32>, tensor<2x5xf32>, tensor<2x5xf32>) {
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  %r:3 = posenc.online_attention causal at(%c0, %c0, %c9, %c0)
    ins(%q, %k, %v : tensor<2x5x16xf32>, tensor<?x16xf32>, tensor<?x8xf32>)
    outs(%acc, %max, %sum : tensor<2x5x8xf32>, tensor<2x5xf32>, tensor<2x5xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x5x8xf32>, tensor<2x5xf32>, tensor<2x5xf32>
}
