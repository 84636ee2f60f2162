//===- latent-forms.mlir - decode of latent attention ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As decode-forms.mlir: multi-head latent attention, whose values are the first
// channels of the keys. A tile has 64 keys on sm_90a, of which each of two warpgroups
// has the scores of 32.
//
//===----------------------------------------------------------------------===//

// One KV split, and two, of which sequences use two, one and none. The last tiles have 39
// keys, 3 and 1, so that the second warpgroup has 7 and none.
// INPUTS: 2x1x16x576xbf16 2x1x70x576xbf16 i64[64,7] 2x1x16x512xbf16=0
// INPUTS: 4x1x16x576xbf16 4x1x2300x576xbf16 i64[2279,67,1,0] 4x1x16x512xbf16=0
// INPUTS: 0x1x16x576xbf16 0x1x9x576xbf16 0xi64=0 0x1x16x512xbf16=0
func.func @heads_16(%q: tensor<?x1x16x576xbf16>, %k: tensor<?x1x?x576xbf16>, %n: tensor<?xi64>, %o: tensor<?x1x16x512xbf16>) -> tensor<?x1x16x512xbf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x1x?x576xbf16>
  %c = tensor.dim %k, %c2 : tensor<?x1x?x576xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %c, 512] [1, 1, 1, 1] : tensor<?x1x?x576xbf16> to tensor<?x1x?x512xbf16>
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x16x576xbf16>, tensor<?x1x?x576xbf16>, tensor<?x1x?x512xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%o : tensor<?x1x16x512xbf16>)
  return %r : tensor<?x1x16x512xbf16>
}

// All heads of the only token, which become tokens: two tiles of 64 rows.
// INPUTS: 2x1x128x576xf16 2x1x2200x576xf16 i64[2100,63] 2x1x128x512xf16=0
func.func @heads_128(%q: tensor<?x1x128x576xf16>, %k: tensor<?x1x?x576xf16>, %n: tensor<?xi64>, %o: tensor<?x1x128x512xf16>) -> tensor<?x1x128x512xf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x1x?x576xf16>
  %c = tensor.dim %k, %c2 : tensor<?x1x?x576xf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %c, 512] [1, 1, 1, 1] : tensor<?x1x?x576xf16> to tensor<?x1x?x512xf16>
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x128x576xf16>, tensor<?x1x?x576xf16>, tensor<?x1x?x512xf16>)
    lengths(%n : tensor<?xi64>)
    outs(%o : tensor<?x1x128x512xf16>)
  return %r : tensor<?x1x128x512xf16>
}

// With the log-sum-exp, heads stay heads. Pairs of channels of queries rotate.
// INPUTS: 1x1x128x576xbf16 1x1x2300x576xbf16 i64[2240] 1x1x128x512xbf16=0 1x1x128xf32=0
func.func @sums_128(%q: tensor<?x1x128x576xbf16>, %k: tensor<?x1x?x576xbf16>, %n: tensor<?xi64>, %o: tensor<?x1x128x512xbf16>, %l: tensor<?x1x128xf32>) -> (tensor<?x1x128x512xbf16>, tensor<?x1x128xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x1x?x576xbf16>
  %c = tensor.dim %k, %c2 : tensor<?x1x?x576xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %c, 512] [1, 1, 1, 1] : tensor<?x1x?x576xbf16> to tensor<?x1x?x512xbf16>
  %r:2 = posenc.attention causal scale = 0.07216878 query_rotation = <pairing = interleaved, frequencies = <dim = 64>, offset = 512> key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x128x576xbf16>, tensor<?x1x?x576xbf16>, tensor<?x1x?x512xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%o, %l : tensor<?x1x128x512xbf16>, tensor<?x1x128xf32>)
  return %r#0, %r#1 : tensor<?x1x128x512xbf16>, tensor<?x1x128xf32>
}

// Four queries of 16 heads: a tile of 64 rows. The first queries see no key of the last
// tile.
// INPUTS: 2x4x16x576xf16 2x1x2200x576xf16 i64[2114,3] 2x4x16x512xf16=0 2x4x16xf32=0
func.func @four_16(%q: tensor<?x4x16x576xf16>, %k: tensor<?x1x?x576xf16>, %n: tensor<?xi64>, %o: tensor<?x4x16x512xf16>, %l: tensor<?x4x16xf32>) -> (tensor<?x4x16x512xf16>, tensor<?x4x16xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x1x?x576xf16>
  %c = tensor.dim %k, %c2 : tensor<?x1x?x576xf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %c, 512] [1, 1, 1, 1] : tensor<?x1x?x576xf16> to tensor<?x1x?x512xf16>
  %r:2 = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x4x16x576xf16>, tensor<?x1x?x576xf16>, tensor<?x1x?x512xf16>)
    lengths(%n : tensor<?xi64>)
    outs(%o, %l : tensor<?x4x16x512xf16>, tensor<?x4x16xf32>)
  return %r#0, %r#1 : tensor<?x4x16x512xf16>, tensor<?x4x16xf32>
}

// Two queries of 128 heads: four tiles of rows, of one query each.
// INPUTS: 1x2x128x576xbf16 1x1x200x576xbf16 i64[193] 1x2x128x512xbf16=0
func.func @two_128(%q: tensor<?x2x128x576xbf16>, %k: tensor<?x1x?x576xbf16>, %n: tensor<?xi64>, %o: tensor<?x2x128x512xbf16>) -> tensor<?x2x128x512xbf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x1x?x576xbf16>
  %c = tensor.dim %k, %c2 : tensor<?x1x?x576xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %c, 512] [1, 1, 1, 1] : tensor<?x1x?x576xbf16> to tensor<?x1x?x512xbf16>
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x2x128x576xbf16>, tensor<?x1x?x576xbf16>, tensor<?x1x?x512xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%o : tensor<?x2x128x512xbf16>)
  return %r : tensor<?x2x128x512xbf16>
}

// Twenty heads with sinks and three queries: rows without a query in both tiles of rows.
// The window begins in the second split.
// INPUTS: 2x3x20x576xbf16 2x1x2300x576xbf16 i64[2290,90] 2x3x20x512xbf16=0 20xf32 2x3x20xf32=0
func.func @three_20(%q: tensor<?x3x20x576xbf16>, %k: tensor<?x1x?x576xbf16>, %n: tensor<?xi64>, %o: tensor<?x3x20x512xbf16>, %s: tensor<20xf32>, %l: tensor<?x3x20xf32>) -> (tensor<?x3x20x512xbf16>, tensor<?x3x20xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x1x?x576xbf16>
  %c = tensor.dim %k, %c2 : tensor<?x1x?x576xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %c, 512] [1, 1, 1, 1] : tensor<?x1x?x576xbf16> to tensor<?x1x?x512xbf16>
  %r:2 = posenc.attention causal window_left = 150 key_layout = head_major
    ins(%q, %k, %v : tensor<?x3x20x576xbf16>, tensor<?x1x?x576xbf16>, tensor<?x1x?x512xbf16>)
    lengths(%n : tensor<?xi64>)
    sinks(%s : tensor<20xf32>)
    outs(%o, %l : tensor<?x3x20x512xbf16>, tensor<?x3x20xf32>)
  return %r#0, %r#1 : tensor<?x3x20x512xbf16>, tensor<?x3x20xf32>
}

// Scores of a region, and tiles that another one masks: all but two, of two
// KV splits.
// INPUTS: 1x2x16x576xbf16 1x1x2200x576xbf16 i64[2150] 1x2x16x512xbf16=0
func.func @region(%q: tensor<?x2x16x576xbf16>, %k: tensor<?x1x?x576xbf16>, %n: tensor<?xi64>, %o: tensor<?x2x16x512xbf16>) -> tensor<?x2x16x512xbf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x1x?x576xbf16>
  %c = tensor.dim %k, %c2 : tensor<?x1x?x576xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %c, 512] [1, 1, 1, 1] : tensor<?x1x?x576xbf16> to tensor<?x1x?x512xbf16>
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x2x16x576xbf16>, tensor<?x1x?x576xbf16>, tensor<?x1x?x512xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%o : tensor<?x2x16x512xbf16>)
    score(%x, %g, %h, %i, %j) {
      %a = posenc.alibi(%h, %i, %j) heads = 16 : f32
      %y = arith.addf %x, %a : f32
      posenc.yield %y : f32
    }
    where(%g, %h, %i, %j) {
      %first = arith.constant 40 : index
      %last = arith.constant 2140 : index
      %sink = arith.cmpi ult, %j, %first : index
      %near = arith.cmpi uge, %j, %last : index
      %seen = arith.ori %sink, %near : i1
      posenc.yield %seen : i1
    }
  return %r : tensor<?x2x16x512xbf16>
}

// The keys of a token have one head. Narrower keys have fewer columns.
// INPUTS: 2x1x8x448xbf16 2x200x1x448xbf16 i64[200,129] 2x1x8x384xbf16=0
func.func @token_major(%q: tensor<?x1x8x448xbf16>, %k: tensor<?x?x1x448xbf16>, %n: tensor<?xi64>, %o: tensor<?x1x8x384xbf16>) -> tensor<?x1x8x384xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %k, %c0 : tensor<?x?x1x448xbf16>
  %c = tensor.dim %k, %c1 : tensor<?x?x1x448xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, %c, 1, 384] [1, 1, 1, 1] : tensor<?x?x1x448xbf16> to tensor<?x?x1x384xbf16>
  %r = posenc.attention causal 
    ins(%q, %k, %v : tensor<?x1x8x448xbf16>, tensor<?x?x1x448xbf16>, tensor<?x?x1x384xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%o : tensor<?x1x8x384xbf16>)
  return %r : tensor<?x1x8x384xbf16>
}

// The keys are the values.
// INPUTS: 1x1x12x512xbf16 1x1x300x512xbf16 i64[260]
func.func @same(%q: tensor<?x1x12x512xbf16>, %k: tensor<?x1x?x512xbf16>, %n: tensor<?xi64>) -> tensor<?x1x12x512xbf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %k : tensor<?x1x12x512xbf16>, tensor<?x1x?x512xbf16>, tensor<?x1x?x512xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x1x12x512xbf16>)
  return %r : tensor<?x1x12x512xbf16>
}

// The dimension of the only head is added to keys and values alike.
// INPUTS: 2x3x4x576xf16 2x70x576xf16 i64[70,66] 2x3x4x512xf16=0
func.func @expanded(%q: tensor<?x3x4x576xf16>, %all: tensor<?x?x576xf16>, %n: tensor<?xi64>, %o: tensor<?x3x4x512xf16>) -> tensor<?x3x4x512xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %all, %c0 : tensor<?x?x576xf16>
  %c = tensor.dim %all, %c1 : tensor<?x?x576xf16>
  %first = tensor.extract_slice %all[0, 0, 0] [%b, %c, 512] [1, 1, 1] : tensor<?x?x576xf16> to tensor<?x?x512xf16>
  %k = tensor.expand_shape %all [[0], [1, 2], [3]] output_shape [%b, 1, %c, 576] : tensor<?x?x576xf16> into tensor<?x1x?x576xf16>
  %v = tensor.expand_shape %first [[0], [1, 2], [3]] output_shape [%b, 1, %c, 512] : tensor<?x?x512xf16> into tensor<?x1x?x512xf16>
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x3x4x576xf16>, tensor<?x1x?x576xf16>, tensor<?x1x?x512xf16>)
    lengths(%n : tensor<?xi64>)
    outs(%o : tensor<?x3x4x512xf16>)
  return %r : tensor<?x3x4x512xf16>
}

// A tile has four pages, in nine columns each; the table ends in the last tile.
// INPUTS: 2x1x16x576xbf16 268x16x1x576xbf16 2x134xi32=iota i64[2138,65] 2x1x16x512xbf16=0
func.func @pages_16(%q: tensor<?x1x16x576xbf16>, %k: tensor<?x16x1x576xbf16>, %t: tensor<?x?xi32>, %n: tensor<?xi64>, %o: tensor<?x1x16x512xbf16>) -> tensor<?x1x16x512xbf16> {
  %c0 = arith.constant 0 : index
  %b = tensor.dim %k, %c0 : tensor<?x16x1x576xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 16, 1, 512] [1, 1, 1, 1] : tensor<?x16x1x576xbf16> to tensor<?x16x1x512xbf16>
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x1x16x576xbf16>, tensor<?x16x1x576xbf16>, tensor<?x16x1x512xbf16>)
    lengths(%n : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%o : tensor<?x1x16x512xbf16>)
  return %r : tensor<?x1x16x512xbf16>
}

// A page of a dynamic size has five boxes of 8 tokens.
// INPUTS: 1x1x16x576xbf16 5x40x1x576xbf16 1x5xi32=iota i64[199] 1x1x16x512xbf16=0
func.func @pages_dynamic(%q: tensor<?x1x16x576xbf16>, %k: tensor<?x?x1x576xbf16>, %t: tensor<?x?xi32>, %n: tensor<?xi64>, %o: tensor<?x1x16x512xbf16>) -> tensor<?x1x16x512xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c = tensor.dim %k, %c1 : tensor<?x?x1x576xbf16>
  %b = tensor.dim %k, %c0 : tensor<?x?x1x576xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, %c, 1, 512] [1, 1, 1, 1] : tensor<?x?x1x576xbf16> to tensor<?x?x1x512xbf16>
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x1x16x576xbf16>, tensor<?x?x1x576xbf16>, tensor<?x?x1x512xbf16>)
    lengths(%n : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%o : tensor<?x1x16x512xbf16>)
  return %r : tensor<?x1x16x512xbf16>
}

// Near misses, whose values are copied: the last channels, a mask operand, and f32.
// INPUTS: 1x1x16x576xbf16 1x1x100x576xbf16 i64[90] 1x1x16x512xbf16=0
func.func @last_channels(%q: tensor<?x1x16x576xbf16>, %k: tensor<?x1x?x576xbf16>, %n: tensor<?xi64>, %o: tensor<?x1x16x512xbf16>) -> tensor<?x1x16x512xbf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x1x?x576xbf16>
  %c = tensor.dim %k, %c2 : tensor<?x1x?x576xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 64] [%b, 1, %c, 512] [1, 1, 1, 1] : tensor<?x1x?x576xbf16> to tensor<?x1x?x512xbf16>
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x16x576xbf16>, tensor<?x1x?x576xbf16>, tensor<?x1x?x512xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%o : tensor<?x1x16x512xbf16>)
  return %r : tensor<?x1x16x512xbf16>
}

// INPUTS: 1x1x16x576xbf16 1x1x100x576xbf16 i64[90] 1x1x16x512xbf16=0 1x1x1x100xf32
func.func @masked(%q: tensor<?x1x16x576xbf16>, %k: tensor<?x1x?x576xbf16>, %n: tensor<?xi64>, %o: tensor<?x1x16x512xbf16>, %m: tensor<?x1x1x?xf32>) -> tensor<?x1x16x512xbf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x1x?x576xbf16>
  %c = tensor.dim %k, %c2 : tensor<?x1x?x576xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %c, 512] [1, 1, 1, 1] : tensor<?x1x?x576xbf16> to tensor<?x1x?x512xbf16>
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x16x576xbf16>, tensor<?x1x?x576xbf16>, tensor<?x1x?x512xbf16>)
    lengths(%n : tensor<?xi64>)
    mask(%m : tensor<?x1x1x?xf32>)
    outs(%o : tensor<?x1x16x512xbf16>)
  return %r : tensor<?x1x16x512xbf16>
}

// INPUTS: 1x1x16x576xf32 1x1x100x576xf32 i64[90] 1x1x16x512xf32=0
func.func @words(%q: tensor<?x1x16x576xf32>, %k: tensor<?x1x?x576xf32>, %n: tensor<?xi64>, %o: tensor<?x1x16x512xf32>) -> tensor<?x1x16x512xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x1x?x576xf32>
  %c = tensor.dim %k, %c2 : tensor<?x1x?x576xf32>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %c, 512] [1, 1, 1, 1] : tensor<?x1x?x576xf32> to tensor<?x1x?x512xf32>
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x16x576xf32>, tensor<?x1x?x576xf32>, tensor<?x1x?x512xf32>)
    lengths(%n : tensor<?xi64>)
    outs(%o : tensor<?x1x16x512xf32>)
  return %r : tensor<?x1x16x512xf32>
}
