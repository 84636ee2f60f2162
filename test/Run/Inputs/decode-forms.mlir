//===- decode-forms.mlir - attention of few queries -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As attention-forms.mlir, with at most 16 queries of a sequence, which are known
// when the function is compiled, or with ragged queries, of which some sequences have
// as few as fill 16 rows. A KV split has 256 keys, in `latent` 2,048.
//
//===----------------------------------------------------------------------===//

// One split, and 17, of which sequences use 17, 9, 8 and none.
// INPUTS: 2x1x8x64xbf16 2x2x150x64xbf16 2x2x150x64xbf16 i64[150,1]
// INPUTS: 4x1x8x64xbf16 4x2x4200x64xbf16 4x2x4200x64xbf16 i64[4200,2049,2048,0]
// INPUTS: 0x1x8x64xbf16 0x2x9x64xbf16 0x2x9x64xbf16 0xi64=0
func.func @one(%q: tensor<?x1x8x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>, %n: tensor<?xi64>) -> tensor<?x1x8x64xbf16> {
  %r = posenc.attention causal key_layout = head_major query_rotation = <pairing = half, frequencies = <dim = 64>>
    ins(%q, %k, %v : tensor<?x1x8x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x1x8x64xbf16>)
  return %r : tensor<?x1x8x64xbf16>
}

// Two tiles of rows, of 30 rows and of 15; keys are rotated on load.
// INPUTS: 1x5x9x128xbf16 1x1x2100x128xbf16 1x1x2100x128xbf16 i64[2061]
func.func @five_raw(%q: tensor<?x5x9x128xbf16>, %k: tensor<?x1x?x128xbf16>, %v: tensor<?x1x?x128xbf16>, %n: tensor<?xi64>) -> tensor<?x5x9x128xbf16> {
  %r = posenc.attention causal key_layout = head_major query_rotation = <pairing = half, frequencies = <dim = 128>> key_rotation = <pairing = half, frequencies = <dim = 128>>
    ins(%q, %k, %v : tensor<?x5x9x128xbf16>, tensor<?x1x?x128xbf16>, tensor<?x1x?x128xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x5x9x128xbf16>)
  return %r : tensor<?x5x9x128xbf16>
}

// The first split has the sink. The windows begin in the twelfth split and in the second.
// INPUTS: 2x3x2x80xf16 2x2x4200x80xf16 2x2x4200x80xf16 2xf32 i64[4200,7] 2x3x2xf32=0
// INPUTS: 1x3x2x80xf16 1x2x1500x80xf16 1x2x1500x80xf16 2xf32 i64[1500] 1x3x2xf32=0
func.func @sinks(%q: tensor<?x3x2x80xf16>, %k: tensor<?x2x?x80xf16>, %v: tensor<?x2x?x80xf16>, %s: tensor<2xf32>, %n: tensor<?xi64>, %l: tensor<?x3x2xf32>) -> (tensor<?x3x2x80xf16>, tensor<?x3x2xf32>) {
  %r:2 = posenc.attention causal window_left = 1200 key_layout = head_major
    ins(%q, %k, %v : tensor<?x3x2x80xf16>, tensor<?x2x?x80xf16>, tensor<?x2x?x80xf16>)
    lengths(%n : tensor<?xi64>)
    sinks(%s : tensor<2xf32>)
    outs(%q, %l : tensor<?x3x2x80xf16>, tensor<?x3x2xf32>)
  return %r#0, %r#1 : tensor<?x3x2x80xf16>, tensor<?x3x2xf32>
}

// INPUTS: 2x1x4x64xf16 140x2x32x64xf16 140x2x32x64xf16 2x70xi32=iota i64[2240,5]
func.func @paged(%q: tensor<?x1x4x64xf16>, %k: tensor<?x2x32x64xf16>, %v: tensor<?x2x32x64xf16>, %t: tensor<?x?xi32>, %n: tensor<?xi64>) -> tensor<?x1x4x64xf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x4x64xf16>, tensor<?x2x32x64xf16>, tensor<?x2x32x64xf16>)
    lengths(%n : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x1x4x64xf16>)
  return %r : tensor<?x1x4x64xf16>
}

// Sequences of 1, 4, 0 and 9 queries, and 3 tokens after the last one: the results of
// splits of the first two begin at rows 0 and 1. Then more tokens than rows of splits,
// of which those of the last sequence begin at row 8, the second tile of rows.
// INPUTS: 17x8x64xbf16 280x2x32x64xbf16 280x2x32x64xbf16 4x70xi32=iota i64[0,1,5,5,14] i64[2100,2049,9,2200] 17x8xf32=0
// INPUTS: 36x8x64xbf16 210x2x32x64xbf16 210x2x32x64xbf16 3x70xi32=iota i64[0,30,32,36] i64[40,2240,2] 36x8xf32=0
// INPUTS: 3x8x64xbf16 140x2x32x64xbf16 140x2x32x64xbf16 2x1xi32=iota i64[0,1,3] i64[32,31] 3x8xf32=0
// INPUTS: 0x8x64xbf16 140x2x32x64xbf16 140x2x32x64xbf16 1x70xi32=iota i64[0,0] i64[7] 0x8xf32=0
func.func @server(%q: tensor<?x8x64xbf16>, %k: tensor<?x2x32x64xbf16>, %v: tensor<?x2x32x64xbf16>, %t: tensor<?x?xi32>, %c: tensor<?xi64>, %n: tensor<?xi64>, %l: tensor<?x8xf32>) -> (tensor<?x8x64xbf16>, tensor<?x8xf32>) {
  %r:2 = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x8x64xbf16>, tensor<?x2x32x64xbf16>, tensor<?x2x32x64xbf16>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q, %l : tensor<?x8x64xbf16>, tensor<?x8xf32>)
  return %r#0, %r#1 : tensor<?x8x64xbf16>, tensor<?x8xf32>
}

// Six heads share keys: two queries of a sequence have 12 rows of one tile.
// INPUTS: 7x6x128xf16 2200x1x128xf16 2200x1x128xf16 i32[0,2,3,6] i32[0,2100,2101,2200] 6xf32
func.func @ragged_keys(%q: tensor<?x6x128xf16>, %k: tensor<?x1x128xf16>, %v: tensor<?x1x128xf16>, %c: tensor<?xi32>, %d: tensor<?xi32>, %s: tensor<6xf32>) -> tensor<?x6x128xf16> {
  %r = posenc.attention causal window_left = 2070
    ins(%q, %k, %v : tensor<?x6x128xf16>, tensor<?x1x128xf16>, tensor<?x1x128xf16>)
    cu_seqlens(%c, %d : tensor<?xi32>, tensor<?xi32>)
    sinks(%s : tensor<6xf32>)
    outs(%q : tensor<?x6x128xf16>)
  return %r : tensor<?x6x128xf16>
}

// Keys of MLA, with the tiles of many queries: 16 heads have one key, and the first
// sequence uses two splits.
// INPUTS: 2x1x16x576xbf16 2x1x2080x576xbf16 2x1x2080x512xbf16 i64[2080,67] 2x1x16x512xbf16=0
func.func @latent(%q: tensor<?x1x16x576xbf16>, %k: tensor<?x1x?x576xbf16>, %v: tensor<?x1x?x512xbf16>, %n: tensor<?xi64>, %o: tensor<?x1x16x512xbf16>) -> tensor<?x1x16x512xbf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x16x576xbf16>, tensor<?x1x?x576xbf16>, tensor<?x1x?x512xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%o : tensor<?x1x16x512xbf16>)
  return %r : tensor<?x1x16x512xbf16>
}

// A window reaches into two splits. Products with the scales are exact.
// INPUTS: 1x2x4x64xbf16 1x2x2100x64xi8 1x2x2100x64xi8 1x2x2100xf32=0.03125 1x2x2100xf32=0.015625 i64[2100]
func.func @cache_i8(%q: tensor<?x2x4x64xbf16>, %k: tensor<?x2x?x64xi8>, %v: tensor<?x2x?x64xi8>, %s: tensor<?x2x?xf32>, %t: tensor<?x2x?xf32>, %n: tensor<?xi64>) -> tensor<?x2x4x64xbf16> {
  %r = posenc.attention causal window_left = 100 key_layout = head_major
    ins(%q, %k, %v : tensor<?x2x4x64xbf16>, tensor<?x2x?x64xi8>, tensor<?x2x?x64xi8>)
    lengths(%n : tensor<?xi64>)
    key_scales(%s : tensor<?x2x?xf32>)
    value_scales(%t : tensor<?x2x?xf32>)
    outs(%q : tensor<?x2x4x64xbf16>)
  return %r : tensor<?x2x4x64xbf16>
}

// Sixteen queries and a static number of keys; a region, and no lengths.
// INPUTS: 1x16x4x64xf32 1x2500x2x64xf32 1x2500x2x64xf32
func.func @region(%q: tensor<1x16x4x64xf32>, %k: tensor<1x2500x2x64xf32>, %v: tensor<1x2500x2x64xf32>) -> tensor<1x16x4x64xf32> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<1x16x4x64xf32>, tensor<1x2500x2x64xf32>, tensor<1x2500x2x64xf32>)
    outs(%q : tensor<1x16x4x64xf32>)
    where(%b, %h, %i, %j) {
      %far = arith.constant 2100 : index
      %seen = arith.cmpi uge, %j, %far : index
      posenc.yield %seen : i1
    }
  return %r : tensor<1x16x4x64xf32>
}

// INPUTS: 1x1x2x64xf64 1x1x2100x64xf64 1x1x2100x64xf64
func.func @one_f64(%q: tensor<1x1x2x64xf64>, %k: tensor<1x1x?x64xf64>, %v: tensor<1x1x?x64xf64>) -> tensor<1x1x2x64xf64> {
  %r = posenc.attention key_layout = head_major
    ins(%q, %k, %v : tensor<1x1x2x64xf64>, tensor<1x1x?x64xf64>, tensor<1x1x?x64xf64>)
    outs(%q : tensor<1x1x2x64xf64>)
  return %r : tensor<1x1x2x64xf64>
}

// decode-rows.py calls it with infinite values and NaN after the last key.
// INPUTS: 1x2x4x64xf16 1x2x9x64xf16 1x2x9x64xf16 i64[9]
func.func @hidden(%q: tensor<?x2x4x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>, %n: tensor<?xi64>) -> tensor<?x2x4x64xf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x2x4x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>)
    lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x2x4x64xf16>)
  return %r : tensor<?x2x4x64xf16>
}

// From here on, forms of which most have tiles of bulk copies on sm_90a. Heads that
// share no keys.
// INPUTS: 2x1x2x128xbf16 2x1100x2x128xbf16 2x1100x2x128xbf16 i64[1081,3]
func.func @group_1(%q: tensor<?x1x2x128xbf16>, %k: tensor<?x?x2x128xbf16>, %v: tensor<?x?x2x128xbf16>, %n: tensor<?xi64>) -> tensor<?x1x2x128xbf16> {
  %r = posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 128>>
    ins(%q, %k, %v : tensor<?x1x2x128xbf16>, tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x1x2x128xbf16>)
  return %r : tensor<?x1x2x128xbf16>
}

// Groups of 8 with two queries: 16 rows. The last tile has one key.
// INPUTS: 1x2x16x128xbf16 1x2x2200x128xbf16 1x2x2200x128xbf16 i64[2177] 1x2x16xf32=0
func.func @group_8(%q: tensor<?x2x16x128xbf16>, %k: tensor<?x2x?x128xbf16>, %v: tensor<?x2x?x128xbf16>, %n: tensor<?xi64>, %l: tensor<?x2x16xf32>) -> (tensor<?x2x16x128xbf16>, tensor<?x2x16xf32>) {
  %r:2 = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x2x16x128xbf16>, tensor<?x2x?x128xbf16>, tensor<?x2x?x128xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%q, %l : tensor<?x2x16x128xbf16>, tensor<?x2x16xf32>)
  return %r#0, %r#1 : tensor<?x2x16x128xbf16>, tensor<?x2x16xf32>
}

// A group of 16 with scores of a region.
// INPUTS: 2x1x16x64xf16 2x1x300x64xf16 2x1x300x64xf16 i64[300,129]
func.func @group_16(%q: tensor<?x1x16x64xf16>, %k: tensor<?x1x?x64xf16>, %v: tensor<?x1x?x64xf16>, %n: tensor<?xi64>) -> tensor<?x1x16x64xf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x16x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16>)
    lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x1x16x64xf16>)
    score(%s, %b, %h, %i, %j) {
      %a = posenc.alibi(%h, %i, %j) heads = 16 : f32
      %y = arith.addf %s, %a : f32
      posenc.yield %y : f32
    }
  return %r : tensor<?x1x16x64xf16>
}

// Sixteen queries in groups of 4: two tiles of 32 rows, with windows.
// INPUTS: 1x16x4x128xf16 1x1x700x128xf16 1x1x700x128xf16 i64[693]
func.func @sixteen(%q: tensor<?x16x4x128xf16>, %k: tensor<?x1x?x128xf16>, %v: tensor<?x1x?x128xf16>, %n: tensor<?xi64>) -> tensor<?x16x4x128xf16> {
  %r = posenc.attention causal window_left = 411 key_layout = head_major
    ins(%q, %k, %v : tensor<?x16x4x128xf16>, tensor<?x1x?x128xf16>, tensor<?x1x?x128xf16>)
    lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x16x4x128xf16>)
  return %r : tensor<?x16x4x128xf16>
}

// Tiles that a region masks are not copied.
// INPUTS: 1x2x4x64xbf16 1x2x1500x64xbf16 1x2x1500x64xbf16 1x1x2x1500xf32
func.func @skipped(%q: tensor<?x2x4x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>, %m: tensor<?x1x2x?xf32>) -> tensor<?x2x4x64xbf16> {
  %r = posenc.attention key_layout = head_major
    ins(%q, %k, %v : tensor<?x2x4x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>)
    mask(%m : tensor<?x1x2x?xf32>)
    outs(%q : tensor<?x2x4x64xbf16>)
    where(%b, %h, %i, %j) {
      %first = arith.constant 100 : index
      %last = arith.constant 1300 : index
      %sink = arith.cmpi ult, %j, %first : index
      %near = arith.cmpi uge, %j, %last : index
      %seen = arith.ori %sink, %near : i1
      posenc.yield %seen : i1
    }
  return %r : tensor<?x2x4x64xbf16>
}

// INPUTS: 1x1x4x256xbf16 1x1x2100x256xbf16 1x1x2100x256xbf16 i64[2070]
func.func @wide(%q: tensor<?x1x4x256xbf16>, %k: tensor<?x1x?x256xbf16>, %v: tensor<?x1x?x256xbf16>, %n: tensor<?xi64>) -> tensor<?x1x4x256xbf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x4x256xbf16>, tensor<?x1x?x256xbf16>, tensor<?x1x?x256xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x1x4x256xbf16>)
  return %r : tensor<?x1x4x256xbf16>
}

// Values that are narrower than keys.
// INPUTS: 1x1x12x192xbf16 1x1x260x192xbf16 1x1x260x128xbf16 i64[250] 1x1x12x128xbf16=0
func.func @narrower(%q: tensor<?x1x12x192xbf16>, %k: tensor<?x1x?x192xbf16>, %v: tensor<?x1x?x128xbf16>, %n: tensor<?xi64>, %o: tensor<?x1x12x128xbf16>) -> tensor<?x1x12x128xbf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x12x192xbf16>, tensor<?x1x?x192xbf16>, tensor<?x1x?x128xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%o : tensor<?x1x12x128xbf16>)
  return %r : tensor<?x1x12x128xbf16>
}

// A tile of 32 keys has two pages, the last tile only one, for which the table ends.
// INPUTS: 1x2x8x128xbf16 134x16x2x128xbf16 134x16x2x128xbf16 1x133xi32=iota i64[2121]
func.func @pages_16(%q: tensor<?x2x8x128xbf16>, %k: tensor<?x16x2x128xbf16>, %v: tensor<?x16x2x128xbf16>, %t: tensor<?x?xi32>, %n: tensor<?xi64>) -> tensor<?x2x8x128xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x2x8x128xbf16>, tensor<?x16x2x128xbf16>, tensor<?x16x2x128xbf16>)
    lengths(%n : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x2x8x128xbf16>)
  return %r : tensor<?x2x8x128xbf16>
}

// A page has two tiles.
// INPUTS: 2x1x4x96xf16 12x2x64x96xf16 12x2x64x96xf16 2x6xi32=iota i64[321,64]
func.func @pages_64(%q: tensor<?x1x4x96xf16>, %k: tensor<?x2x64x96xf16>, %v: tensor<?x2x64x96xf16>, %t: tensor<?x?xi32>, %n: tensor<?xi64>) -> tensor<?x1x4x96xf16> {
  %r = posenc.attention causal window_left = 200 key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x4x96xf16>, tensor<?x2x64x96xf16>, tensor<?x2x64x96xf16>)
    lengths(%n : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x1x4x96xf16>)
  return %r : tensor<?x1x4x96xf16>
}

// A page has three boxes, and a tile four.
// INPUTS: 1x1x4x64xf16 8x2x24x64xf16 8x2x24x64xf16 1x8xi32=iota i64[180]
func.func @pages_24(%q: tensor<?x1x4x64xf16>, %k: tensor<?x2x24x64xf16>, %v: tensor<?x2x24x64xf16>, %t: tensor<?x?xi32>, %n: tensor<?xi64>) -> tensor<?x1x4x64xf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x4x64xf16>, tensor<?x2x24x64xf16>, tensor<?x2x24x64xf16>)
    lengths(%n : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x1x4x64xf16>)
  return %r : tensor<?x1x4x64xf16>
}

// Boxes of 4 tokens would be smaller than the unit of the swizzle.
// INPUTS: 1x1x4x64xf16 16x2x12x64xf16 16x2x12x64xf16 1x16xi32=iota i64[180]
func.func @pages_12(%q: tensor<?x1x4x64xf16>, %k: tensor<?x2x12x64xf16>, %v: tensor<?x2x12x64xf16>, %t: tensor<?x?xi32>, %n: tensor<?xi64>) -> tensor<?x1x4x64xf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x4x64xf16>, tensor<?x2x12x64xf16>, tensor<?x2x12x64xf16>)
    lengths(%n : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x1x4x64xf16>)
  return %r : tensor<?x1x4x64xf16>
}

// Rows that are not aligned to 16 bytes.
// INPUTS: 1x1x4x64xf16 1x1x150x66xf16 1x1x150x64xf16
func.func @unaligned(%q: tensor<?x1x4x64xf16>, %all: tensor<?x1x150x66xf16>, %v: tensor<?x1x150x64xf16>) -> tensor<?x1x4x64xf16> {
  %c0 = arith.constant 0 : index
  %b = tensor.dim %q, %c0 : tensor<?x1x4x64xf16>
  %k = tensor.extract_slice %all[0, 0, 0, 1] [%b, 1, 150, 64] [1, 1, 1, 1] : tensor<?x1x150x66xf16> to tensor<?x1x150x64xf16>
  %r = posenc.attention key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x4x64xf16>, tensor<?x1x150x64xf16>, tensor<?x1x150x64xf16>)
    outs(%q : tensor<?x1x4x64xf16>)
  return %r : tensor<?x1x4x64xf16>
}
