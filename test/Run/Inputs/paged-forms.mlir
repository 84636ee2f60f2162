//===- paged-forms.mlir - attention of ragged queries to pages ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For pages.py; INPUTS are for test/hardware. PAGES are tokens of a page, 0 for a
// contiguous cache; functions of a group have the same data, and results with the same
// bits. SEQUENCES are queries and
// keys of each sequence: few queries have the kernel of decode, and others that of
// warpgroups, with tiles of 128 keys for heads of 64 channels, and 80 for heads of 128.
//
//===----------------------------------------------------------------------===//

// A tile has 16 boxes, 8, 2 or 1, or is a part of a page.
// INPUTS: 73x4x64xbf16 238x2x16x64xbf16 238x2x16x64xbf16 7x34xi32=iota i64[0,37,57,58,58,61,70,71] i64[37,333,70,5,140,530,512] 73x4xf32=0
// INPUTS: 73x4x64xbf16 63x2x64x64xbf16 63x2x64x64xbf16 7x9xi32=iota i64[0,37,57,58,58,61,70,71] i64[37,333,70,5,140,530,512] 73x4xf32=0
// GROUP: server_64 PAGES: 8 16 64 128 512
func.func @server_64(%q: tensor<?x4x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>, %t: tensor<?x?xi32>, %c: tensor<?xi64>, %n: tensor<?xi64>, %l: tensor<?x4xf32>) -> (tensor<?x4x64xbf16>, tensor<?x4xf32>) {
  %r:2 = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x4x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q, %l : tensor<?x4x64xbf16>, tensor<?x4xf32>)
  return %r#0, %r#1 : tensor<?x4x64xbf16>, tensor<?x4xf32>
}

// INPUTS: 73x4x64xbf16 7x2x570x64xbf16 7x2x570x64xbf16 i64[0,37,57,58,58,61,70,71] i64[37,333,70,5,140,530,512] 73x4xf32=0
// GROUP: server_64 PAGES: 0
func.func @cache_64(%q: tensor<?x4x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>, %c: tensor<?xi64>, %n: tensor<?xi64>, %l: tensor<?x4xf32>) -> (tensor<?x4x64xbf16>, tensor<?x4xf32>) {
  %r:2 = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x4x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    outs(%q, %l : tensor<?x4x64xbf16>, tensor<?x4xf32>)
  return %r#0, %r#1 : tensor<?x4x64xbf16>, tensor<?x4xf32>
}

// The sizes of pages are known. Three of these are one box, two of which a page has.
// INPUTS: 73x4x64xbf16 238x2x16x64xbf16 238x2x16x64xbf16 7x34xi32=iota i64[0,37,57,58,58,61,70,71] i64[37,333,70,5,140,530,512] 73x4xf32=0
// GROUP: server_64 PAGES: 16
func.func @pages_16(%q: tensor<?x4x64xbf16>, %k: tensor<?x2x16x64xbf16>, %v: tensor<?x2x16x64xbf16>, %t: tensor<?x?xi32>, %c: tensor<?xi64>, %n: tensor<?xi64>, %l: tensor<?x4xf32>) -> (tensor<?x4x64xbf16>, tensor<?x4xf32>) {
  %r:2 = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x4x64xbf16>, tensor<?x2x16x64xbf16>, tensor<?x2x16x64xbf16>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q, %l : tensor<?x4x64xbf16>, tensor<?x4xf32>)
  return %r#0, %r#1 : tensor<?x4x64xbf16>, tensor<?x4xf32>
}

// INPUTS: 73x4x64xbf16 21x256x2x64xbf16 21x256x2x64xbf16 7x3xi64=iota i64[0,37,57,58,58,61,70,71] i32[37,333,70,5,140,530,512] 73x4xf32=0
// GROUP: server_64 PAGES: 256
func.func @pages_256(%q: tensor<?x4x64xbf16>, %k: tensor<?x256x2x64xbf16>, %v: tensor<?x256x2x64xbf16>, %t: tensor<?x?xi64>, %c: tensor<?xi64>, %n: tensor<?xi32>, %l: tensor<?x4xf32>) -> (tensor<?x4x64xbf16>, tensor<?x4xf32>) {
  %r:2 = posenc.attention causal
    ins(%q, %k, %v : tensor<?x4x64xbf16>, tensor<?x256x2x64xbf16>, tensor<?x256x2x64xbf16>)
    lengths(%n : tensor<?xi32>)
    cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi64>)
    outs(%q, %l : tensor<?x4x64xbf16>, tensor<?x4xf32>)
  return %r#0, %r#1 : tensor<?x4x64xbf16>, tensor<?x4xf32>
}

// Tiles of 80 keys have boxes of 8, 16, 40 or 80 rows.
// INPUTS: 73x2x128xf16 238x16x1x128xf16 238x16x1x128xf16 7x34xi32=iota i32[0,37,57,58,58,61,70,71] i32[37,333,70,5,140,530,512] 73xi64
// INPUTS: 73x2x128xf16 63x64x1x128xf16 63x64x1x128xf16 7x9xi32=iota i32[0,37,57,58,58,61,70,71] i32[37,333,70,5,140,530,512] 73xi64
// GROUP: server_128 PAGES: 8 16 40 64 128 512
func.func @server_128(%q: tensor<?x2x128xf16>, %k: tensor<?x?x1x128xf16>, %v: tensor<?x?x1x128xf16>, %t: tensor<?x?xi32>, %c: tensor<?xi32>, %n: tensor<?xi32>, %p: tensor<?xi64>) -> tensor<?x2x128xf16> {
  %r = posenc.attention causal window_left = 130 query_rotation = <pairing = half, frequencies = <dim = 128>>
    ins(%q, %k, %v : tensor<?x2x128xf16>, tensor<?x?x1x128xf16>, tensor<?x?x1x128xf16>)
    query_positions(%p : tensor<?xi64>)
    lengths(%n : tensor<?xi32>)
    cu_seqlens(%c : tensor<?xi32>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x2x128xf16>)
  return %r : tensor<?x2x128xf16>
}

// A tile of 64 keys is a page.
// INPUTS: 25x4x256xbf16 6x2x64x256xbf16 6x2x64x256xbf16 2x3xi32=iota i64[0,20,23] i64[130,65] 4xf32
// GROUP: sinks_256 PAGES: 64
// SEQUENCES: 20/130 3/65
func.func @sinks_256(%q: tensor<?x4x256xbf16>, %k: tensor<?x2x64x256xbf16>, %v: tensor<?x2x64x256xbf16>, %t: tensor<?x?xi32>, %c: tensor<?xi64>, %n: tensor<?xi64>, %s: tensor<4xf32>) -> tensor<?x4x256xbf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x4x256xbf16>, tensor<?x2x64x256xbf16>, tensor<?x2x64x256xbf16>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    sinks(%s : tensor<4xf32>)
    outs(%q : tensor<?x4x256xbf16>)
  return %r : tensor<?x4x256xbf16>
}

// INPUTS: 25x4x256xbf16 34x8x2x256xbf16 34x8x2x256xbf16 2x17xi32=iota i64[0,20,23] i64[130,65]
// INPUTS: 25x4x256xbf16 2x512x2x256xbf16 2x512x2x256xbf16 2x1xi32=iota i64[0,20,23] i64[130,65]
// GROUP: cap_256 PAGES: 8 512
// SEQUENCES: 20/130 3/65
func.func @cap_256(%q: tensor<?x4x256xbf16>, %k: tensor<?x?x2x256xbf16>, %v: tensor<?x?x2x256xbf16>, %t: tensor<?x?xi32>, %c: tensor<?xi64>, %n: tensor<?xi64>) -> tensor<?x4x256xbf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x4x256xbf16>, tensor<?x?x2x256xbf16>, tensor<?x?x2x256xbf16>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x4x256xbf16>)
    score(%s, %b, %h, %i, %j) {
      %cap = arith.constant 5.0 : f32
      %x = arith.divf %s, %cap : f32
      %y = math.tanh %x : f32
      %z = arith.mulf %y, %cap : f32
      posenc.yield %z : f32
    }
  return %r : tensor<?x4x256xbf16>
}

// Keys of MLA with one key head. The decode kernel of sm_90a has no heads as wide.
// INPUTS: 62x2x576xbf16 15x1x16x576xbf16 15x1x16x512xbf16 3x5xi32=iota i64[0,40,40,60] i64[40,9,75] 62x2x512xbf16=0
// INPUTS: 62x2x576xbf16 6x1x64x576xbf16 6x1x64x512xbf16 3x2xi32=iota i64[0,40,40,60] i64[40,9,75] 62x2x512xbf16=0
// GROUP: latent PAGES: 8 16 64
// SEQUENCES: 40/40 0/9 20/75
func.func @latent(%q: tensor<?x2x576xbf16>, %k: tensor<?x1x?x576xbf16>, %v: tensor<?x1x?x512xbf16>, %t: tensor<?x?xi32>, %c: tensor<?xi64>, %n: tensor<?xi64>, %o: tensor<?x2x512xbf16>) -> tensor<?x2x512xbf16> {
  %r = posenc.attention causal scale = 0.07216878 key_layout = head_major
    ins(%q, %k, %v : tensor<?x2x576xbf16>, tensor<?x1x?x576xbf16>, tensor<?x1x?x512xbf16>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%o : tensor<?x2x512xbf16>)
  return %r : tensor<?x2x512xbf16>
}

// Heads whose rows three warpgroups share.
// INPUTS: 19x1x576xf16 2x1x32x576xf16 2x1x32x576xf16 1x2xi32=iota i64[0,17] i64[40]
// GROUP: wide PAGES: 32
// SEQUENCES: 17/40
func.func @wide(%q: tensor<?x1x576xf16>, %k: tensor<?x1x32x576xf16>, %v: tensor<?x1x32x576xf16>, %t: tensor<?x?xi32>, %c: tensor<?xi64>, %n: tensor<?xi64>) -> tensor<?x1x576xf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x576xf16>, tensor<?x1x32x576xf16>, tensor<?x1x32x576xf16>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x1x576xf16>)
  return %r : tensor<?x1x576xf16>
}

// Tiles have headers: the producer skips those that the region hides.
// INPUTS: 73x4x64xbf16 238x2x16x64xbf16 238x2x16x64xbf16 7x34xi32=iota i64[0,37,57,58,58,61,70,71] i64[37,333,70,5,140,530,512]
// INPUTS: 73x4x64xbf16 35x2x128x64xbf16 35x2x128x64xbf16 7x5xi32=iota i64[0,37,57,58,58,61,70,71] i64[37,333,70,5,140,530,512]
// GROUP: region PAGES: 16 128
func.func @region(%q: tensor<?x4x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>, %t: tensor<?x?xi32>, %c: tensor<?xi64>, %n: tensor<?xi64>) -> tensor<?x4x64xbf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x4x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x4x64xbf16>)
    where(%b, %h, %i, %j) {
      %first = arith.constant 20 : index
      %last = arith.constant 300 : index
      %sink = arith.cmpi ult, %j, %first : index
      %late = arith.cmpi uge, %j, %last : index
      %y = arith.ori %sink, %late : i1
      posenc.yield %y : i1
    }
  return %r : tensor<?x4x64xbf16>
}

// INPUTS: 73x4x64xbf16 161x24x2x64xbf16 161x24x2x64xbf16 7x23xi32=iota i64[0,37,57,58,58,61,70,71] i64[37,333,70,5,140,530,512]
// GROUP: alibi PAGES: 24
func.func @alibi(%q: tensor<?x4x64xbf16>, %k: tensor<?x24x2x64xbf16>, %v: tensor<?x24x2x64xbf16>, %t: tensor<?x?xi32>, %c: tensor<?xi64>, %n: tensor<?xi64>) -> tensor<?x4x64xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x4x64xbf16>, tensor<?x24x2x64xbf16>, tensor<?x24x2x64xbf16>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x4x64xbf16>)
    score(%s, %b, %h, %i, %j) {
      %a = posenc.alibi(%h, %i, %j) heads = 4 : f32
      %y = arith.addf %s, %a : f32
      posenc.yield %y : f32
    }
  return %r : tensor<?x4x64xbf16>
}

// From here on, forms with the kernels of sm_80: pages without boxes, of a size that is
// known or not, keys that are rotated on load, and another type of the cache.
// INPUTS: 73x4x64xbf16 315x2x12x64xbf16 315x2x12x64xbf16 7x45xi32=iota i64[0,37,57,58,58,61,70,71] i64[37,333,70,5,140,530,512]
// GROUP: pages_12 PAGES: 12
func.func @pages_12(%q: tensor<?x4x64xbf16>, %k: tensor<?x2x12x64xbf16>, %v: tensor<?x2x12x64xbf16>, %t: tensor<?x?xi32>, %c: tensor<?xi64>, %n: tensor<?xi64>) -> tensor<?x4x64xbf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x4x64xbf16>, tensor<?x2x12x64xbf16>, tensor<?x2x12x64xbf16>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x4x64xbf16>)
  return %r : tensor<?x4x64xbf16>
}

// INPUTS: 73x4x64xbf16 3710x2x1x64xbf16 3710x2x1x64xbf16 7x530xi32=iota i64[0,37,57,58,58,61,70,71] i64[37,333,70,5,140,530,512]
// INPUTS: 73x4x64xbf16 931x2x4x64xbf16 931x2x4x64xbf16 7x133xi32=iota i64[0,37,57,58,58,61,70,71] i64[37,333,70,5,140,530,512]
// GROUP: small PAGES: 1 4
func.func @small(%q: tensor<?x4x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>, %t: tensor<?x?xi32>, %c: tensor<?xi64>, %n: tensor<?xi64>) -> tensor<?x4x64xbf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x4x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x4x64xbf16>)
  return %r : tensor<?x4x64xbf16>
}

// INPUTS: 25x4x64xbf16 6x2x16x64xbf16 6x2x16x64xbf16 2x3xi32=iota i64[0,20,23] i64[40,20] 25xi64
// GROUP: raw PAGES: 16
// SEQUENCES: 20/40 3/20
func.func @raw(%q: tensor<?x4x64xbf16>, %k: tensor<?x2x16x64xbf16>, %v: tensor<?x2x16x64xbf16>, %t: tensor<?x?xi32>, %c: tensor<?xi64>, %n: tensor<?xi64>, %p: tensor<?xi64>) -> tensor<?x4x64xbf16> {
  %r = posenc.attention causal key_layout = head_major query_rotation = <pairing = half, frequencies = <dim = 64>> key_rotation = <pairing = half, frequencies = <dim = 64>>
    ins(%q, %k, %v : tensor<?x4x64xbf16>, tensor<?x2x16x64xbf16>, tensor<?x2x16x64xbf16>)
    query_positions(%p : tensor<?xi64>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x4x64xbf16>)
  return %r : tensor<?x4x64xbf16>
}

// INPUTS: 25x4x64xf32 6x2x16x64xf16 6x2x16x64xf16 2x3xi32=iota i64[0,20,23] i64[40,20]
// GROUP: mixed PAGES: 16
// SEQUENCES: 20/40 3/20
func.func @mixed(%q: tensor<?x4x64xf32>, %k: tensor<?x2x16x64xf16>, %v: tensor<?x2x16x64xf16>, %t: tensor<?x?xi32>, %c: tensor<?xi64>, %n: tensor<?xi64>) -> tensor<?x4x64xf32> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x4x64xf32>, tensor<?x2x16x64xf16>, tensor<?x2x16x64xf16>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x4x64xf32>)
  return %r : tensor<?x4x64xf32>
}
