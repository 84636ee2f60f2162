//===- decode-forms.mlir - attention of few queries -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As attention-forms.mlir, with at most 16 queries of a sequence, which are known
// when the function is compiled. A piece of the keys has 2,048.
//
//===----------------------------------------------------------------------===//

// One piece, and three, of which sequences use three, two, one and none.
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

// The first piece has the sink; a window begins in the second piece.
// INPUTS: 2x3x2x80xf16 2x2x4200x80xf16 2x2x4200x80xf16 2xf32 i64[4200,7] 2x3x2xf32=0
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

// A window reaches into both pieces. Products with the scales are exact.
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
