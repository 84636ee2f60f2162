//===- wide-attention.mlir - attention of wide heads ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Heads wider than 256 channels, in the form of attention-forms.mlir. Calls have more
// than 16 queries, so that the kernel for few queries does not run.
//
//===----------------------------------------------------------------------===//

// Absorbed latent attention (DeepSeek) of a prompt; its heads share keys. More keys
// than queries, and fewer.
// INPUTS: 1x40x2x576xbf16 1x70x1x576xbf16 1x70x1x512xbf16 1x40x2x512xbf16=0
func.func @latent_causal(%q: tensor<?x?x2x576xbf16>, %k: tensor<?x?x1x576xbf16>, %v: tensor<?x?x1x512xbf16>, %o: tensor<?x?x2x512xbf16>) -> tensor<?x?x2x512xbf16> {
  %r = posenc.attention causal scale = 0.07216878
    ins(%q, %k, %v : tensor<?x?x2x576xbf16>, tensor<?x?x1x576xbf16>, tensor<?x?x1x512xbf16>)
    outs(%o : tensor<?x?x2x512xbf16>)
  return %r : tensor<?x?x2x512xbf16>
}

// Five heads in a tile, rows without a query; the first queries see no key.
// INPUTS: 1x18x5x576xbf16 1x9x1x576xbf16 1x9x1x512xbf16 1x18x5x512xbf16=0
func.func @latent_group(%q: tensor<?x?x5x576xbf16>, %k: tensor<?x?x1x576xbf16>, %v: tensor<?x?x1x512xbf16>, %o: tensor<?x?x5x512xbf16>) -> tensor<?x?x5x512xbf16> {
  %r = posenc.attention causal scale = 0.07216878
    ins(%q, %k, %v : tensor<?x?x5x576xbf16>, tensor<?x?x1x576xbf16>, tensor<?x?x1x512xbf16>)
    outs(%o : tensor<?x?x5x512xbf16>)
  return %r : tensor<?x?x5x512xbf16>
}

// Caches, and queries whose last channels are rotated.
// INPUTS: 3x20x2x576xbf16 3x1x75x576xbf16 3x1x75x512xbf16 i64[75,20,0] 3x20x2x512xbf16=0
func.func @latent_lengths(%q: tensor<?x?x2x576xbf16>, %k: tensor<?x1x?x576xbf16>, %v: tensor<?x1x?x512xbf16>, %n: tensor<?xi64>, %o: tensor<?x?x2x512xbf16>) -> tensor<?x?x2x512xbf16> {
  %r = posenc.attention causal key_layout = head_major query_rotation = <pairing = interleaved, frequencies = <dim = 64>, offset = 512>
    ins(%q, %k, %v : tensor<?x?x2x576xbf16>, tensor<?x1x?x576xbf16>, tensor<?x1x?x512xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%o : tensor<?x?x2x512xbf16>)
  return %r : tensor<?x?x2x512xbf16>
}

// Not a multiple of a tile's rows or keys; also without keys.
// INPUTS: 1x70x1x512xf16 1x101x1x512xf16 1x101x1x512xf16
// INPUTS: 1x20x1x512xf16 1x0x1x512xf16 1x0x1x512xf16
func.func @full_512(%q: tensor<?x?x1x512xf16>, %k: tensor<?x?x1x512xf16>, %v: tensor<?x?x1x512xf16>) -> tensor<?x?x1x512xf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x1x512xf16>, tensor<?x?x1x512xf16>, tensor<?x?x1x512xf16>)
    outs(%q : tensor<?x?x1x512xf16>)
  return %r : tensor<?x?x1x512xf16>
}

// The last column of the second part has no channels.
// INPUTS: 1x80x2x320xbf16 1x150x1x320xbf16 1x150x1x320xbf16
func.func @window_320(%q: tensor<?x?x2x320xbf16>, %k: tensor<?x?x1x320xbf16>, %v: tensor<?x?x1x320xbf16>) -> tensor<?x?x2x320xbf16> {
  %r = posenc.attention causal window_left = 40
    ins(%q, %k, %v : tensor<?x?x2x320xbf16>, tensor<?x?x1x320xbf16>, tensor<?x?x1x320xbf16>)
    outs(%q : tensor<?x?x2x320xbf16>)
  return %r : tensor<?x?x2x320xbf16>
}

// INPUTS: 2x2x33x384xf16 2x1x65x384xf16 2x1x65x384xf16 2x2x33xf32=0
func.func @log_sum_384(%q: tensor<?x2x?x384xf16>, %k: tensor<?x1x?x384xf16>, %v: tensor<?x1x?x384xf16>, %l: tensor<?x2x?xf32>) -> (tensor<?x2x?x384xf16>, tensor<?x2x?xf32>) {
  %r:2 = posenc.attention causal query_layout = head_major key_layout = head_major
    ins(%q, %k, %v : tensor<?x2x?x384xf16>, tensor<?x1x?x384xf16>, tensor<?x1x?x384xf16>)
    outs(%q, %l : tensor<?x2x?x384xf16>, tensor<?x2x?xf32>)
  return %r#0, %r#1 : tensor<?x2x?x384xf16>, tensor<?x2x?xf32>
}

// INPUTS: 1x40x2x448xbf16 1x70x2x448xbf16 1x70x2x448xbf16
func.func @alibi_448(%q: tensor<?x?x2x448xbf16>, %k: tensor<?x?x2x448xbf16>, %v: tensor<?x?x2x448xbf16>) -> tensor<?x?x2x448xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x2x448xbf16>, tensor<?x?x2x448xbf16>, tensor<?x?x2x448xbf16>)
    outs(%q : tensor<?x?x2x448xbf16>)
    score(%s, %b, %h, %i, %j) {
      %a = posenc.alibi(%h, %i, %j) heads = 2 : f32
      %y = arith.addf %s, %a : f32
      posenc.yield %y : f32
    }
  return %r : tensor<?x?x2x448xbf16>
}

// Three warpgroups share the rows.
// INPUTS: 1x50x2x576xbf16 1x70x1x576xbf16 1x70x1x576xbf16 2xf32 1x50x2xf32=0
func.func @sinks_576(%q: tensor<?x?x2x576xbf16>, %k: tensor<?x?x1x576xbf16>, %v: tensor<?x?x1x576xbf16>, %s: tensor<2xf32>, %l: tensor<?x?x2xf32>) -> (tensor<?x?x2x576xbf16>, tensor<?x?x2xf32>) {
  %r:2 = posenc.attention causal window_left = 33
    ins(%q, %k, %v : tensor<?x?x2x576xbf16>, tensor<?x?x1x576xbf16>, tensor<?x?x1x576xbf16>)
    sinks(%s : tensor<2xf32>)
    outs(%q, %l : tensor<?x?x2x576xbf16>, tensor<?x?x2xf32>)
  return %r#0, %r#1 : tensor<?x?x2x576xbf16>, tensor<?x?x2xf32>
}

// No multiples of 16 channels.
// INPUTS: 2x20x2x328xf16 2x75x1x328xf16 2x75x1x264xf16 1x2x20x75xf32 2x20x2x264xf16=0
func.func @mask_264(%q: tensor<?x?x2x328xf16>, %k: tensor<?x?x1x328xf16>, %v: tensor<?x?x1x264xf16>, %m: tensor<1x2x?x?xf32>, %o: tensor<?x?x2x264xf16>) -> tensor<?x?x2x264xf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x2x328xf16>, tensor<?x?x1x328xf16>, tensor<?x?x1x264xf16>)
    mask(%m : tensor<1x2x?x?xf32>)
    outs(%o : tensor<?x?x2x264xf16>)
  return %r : tensor<?x?x2x264xf16>
}

// The results do not fit in the memory of the queries.
// INPUTS: 1x40x2x128xbf16 1x70x2x128xbf16 1x70x2x512xbf16 1x40x2x512xbf16=0
func.func @values_wider(%q: tensor<?x?x2x128xbf16>, %k: tensor<?x?x2x128xbf16>, %v: tensor<?x?x2x512xbf16>, %o: tensor<?x?x2x512xbf16>) -> tensor<?x?x2x512xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>, tensor<?x?x2x512xbf16>)
    outs(%o : tensor<?x?x2x512xbf16>)
  return %r : tensor<?x?x2x512xbf16>
}

// The second part has no channels.
// INPUTS: 1x70x1x576xf16 1x70x1x576xf16 1x70x1x64xf16 1x70x1x64xf16=0
func.func @values_narrower(%q: tensor<?x?x1x576xf16>, %k: tensor<?x?x1x576xf16>, %v: tensor<?x?x1x64xf16>, %o: tensor<?x?x1x64xf16>) -> tensor<?x?x1x64xf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x1x576xf16>, tensor<?x?x1x576xf16>, tensor<?x?x1x64xf16>)
    outs(%o : tensor<?x?x1x64xf16>)
  return %r : tensor<?x?x1x64xf16>
}

// Tiles without visible pairs, tiles without masked pairs, and others.
// INPUTS: 1x20x1x512xbf16 1x300x1x512xbf16 1x300x1x512xbf16
func.func @holes_512(%q: tensor<?x?x1x512xbf16>, %k: tensor<?x?x1x512xbf16>, %v: tensor<?x?x1x512xbf16>) -> tensor<?x?x1x512xbf16> {
  %r = posenc.attention scale = 0.1
    ins(%q, %k, %v : tensor<?x?x1x512xbf16>, tensor<?x?x1x512xbf16>, tensor<?x?x1x512xbf16>)
    outs(%q : tensor<?x?x1x512xbf16>)
    where(%b, %h, %i, %j) {
      %c40 = arith.constant 40 : index
      %c150 = arith.constant 150 : index
      %c250 = arith.constant 250 : index
      %from = arith.cmpi sge, %j, %c40 : index
      %to = arith.cmpi slt, %j, %c150 : index
      %first = arith.andi %from, %to : i1
      %second = arith.cmpi sge, %j, %c250 : index
      %y = arith.ori %first, %second : i1
      posenc.yield %y : i1
    }
  return %r : tensor<?x?x1x512xbf16>
}

// Keys and values that a query does not see have no effect, even if they are infinite
// or NaN; here those of token 50, in the channels of both parts and of one.
// INPUTS: 1x80x1x512xbf16 1x80x1x512xbf16 1x80x1x512xbf16
func.func @hidden_nan_512(%q: tensor<1x?x1x512xbf16>, %x: tensor<1x?x1x512xbf16>, %y: tensor<1x?x1x512xbf16>) -> tensor<1x?x1x512xbf16> {
  %nan = arith.constant dense<0x7FC0> : tensor<1x1x1x512xbf16>
  %infinity = arith.constant dense<0x7F80> : tensor<1x1x1x512xbf16>
  %part = arith.constant dense<0xFF80> : tensor<1x1x1x128xbf16>
  %k = tensor.insert_slice %infinity into %x[0, 50, 0, 0] [1, 1, 1, 512] [1, 1, 1, 1] : tensor<1x1x1x512xbf16> into tensor<1x?x1x512xbf16>
  %z = tensor.insert_slice %nan into %y[0, 50, 0, 0] [1, 1, 1, 512] [1, 1, 1, 1] : tensor<1x1x1x512xbf16> into tensor<1x?x1x512xbf16>
  %v = tensor.insert_slice %part into %z[0, 77, 0, 320] [1, 1, 1, 128] [1, 1, 1, 1] : tensor<1x1x1x128xbf16> into tensor<1x?x1x512xbf16>
  %r = posenc.attention causal window_left = 20
    ins(%q, %k, %v : tensor<1x?x1x512xbf16>, tensor<1x?x1x512xbf16>, tensor<1x?x1x512xbf16>)
    outs(%q : tensor<1x?x1x512xbf16>)
  return %r : tensor<1x?x1x512xbf16>
}

// Tokens after the last sequence.
// INPUTS: 100x2x512xbf16 100x1x512xbf16 100x1x512xbf16 i64[0,20,20,90]
func.func @ragged_512(%q: tensor<?x2x512xbf16>, %k: tensor<?x1x512xbf16>, %v: tensor<?x1x512xbf16>, %c: tensor<?xi64>) -> tensor<?x2x512xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x2x512xbf16>, tensor<?x1x512xbf16>, tensor<?x1x512xbf16>)
    cu_seqlens(%c, %c : tensor<?xi64>, tensor<?xi64>)
    outs(%q : tensor<?x2x512xbf16>)
  return %r : tensor<?x2x512xbf16>
}
