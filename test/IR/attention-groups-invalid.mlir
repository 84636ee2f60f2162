//===- attention-groups-invalid.mlir - invalid optional operands ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// A window wider than the queries.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op rotary window of 16 lanes at offset 0 is not within the last dimension of 8 of the queries (attn_c6)}}
  %r = posenc.attention query_rotation = <pairing = half, frequencies = <dim = 16>>
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// A window beyond the keys.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op rotary window of 4 lanes at offset 5 is not within the last dimension of 8 of the keys (attn_c6)}}
  %r = posenc.attention key_rotation = <pairing = half, frequencies = <dim = 4>, offset = 5>
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// A window at the maximum offset.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op rotary window of 4 lanes at offset 9223372036854775807 is not within the last dimension of 8 of the keys (attn_c6)}}
  %r = posenc.attention key_rotation = <pairing = half, frequencies = <dim = 4>, offset = 9223372036854775807>
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Positions without a rotation.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %p: tensor<2x5xi64>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op positions of the queries without a rotation (attn_c7)}}
  %r = posenc.attention key_rotation = <pairing = half, frequencies = <dim = 8>>
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) query_positions(%p : tensor<2x5xi64>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Positions of the keys without a rotation.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %p: tensor<2x7xi64>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op positions of the keys without a rotation (attn_c7)}}
  %r = posenc.attention query_rotation = <pairing = half, frequencies = <dim = 8>>
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) key_positions(%p : tensor<2x7xi64>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Positions without a batch.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %p: tensor<7xi64>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected positions of the keys of rank 2, got 'tensor<7xi64>' (attn_c7)}}
  %r = posenc.attention key_rotation = <pairing = half, frequencies = <dim = 8>>
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) key_positions(%p : tensor<7xi64>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Positions without axes.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %p: tensor<2x7xi64>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected positions of the keys of rank 3 with a first dimension of 2 axes, got 'tensor<2x7xi64>' (attn_c7)}}
  %r = posenc.attention key_rotation = <pairing = half, frequencies = <dim = 8>, axes = <contiguous, [2, 2]>>
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) key_positions(%p : tensor<2x7xi64>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Positions of three axes for two.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %p: tensor<3x2x7xi64>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected positions of the keys of rank 3 with a first dimension of 2 axes, got 'tensor<3x2x7xi64>' (attn_c7)}}
  %r = posenc.attention key_rotation = <pairing = half, frequencies = <dim = 8>, axes = <contiguous, [2, 2]>>
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) key_positions(%p : tensor<3x2x7xi64>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Axes without positions.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op rotation of the queries has axes, but there are no positions (attn_c7)}}
  %r = posenc.attention query_rotation = <pairing = half, frequencies = <dim = 8>, axes = <contiguous, [2, 2]>>
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Positions with a batch for packed queries.
func.func @f(%q: tensor<10x4x8xf32>, %k: tensor<14x2x8xf32>, %v: tensor<14x2x8xf32>, %c: tensor<3xi32>, %p: tensor<2x5xi64>, %o0: tensor<10x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected positions of the queries of rank 1, got 'tensor<2x5xi64>' (attn_c7)}}
  %r = posenc.attention query_rotation = <pairing = half, frequencies = <dim = 8>>
    ins(%q, %k, %v : tensor<10x4x8xf32>, tensor<14x2x8xf32>, tensor<14x2x8xf32>) query_positions(%p : tensor<2x5xi64>) cu_seqlens(%c, %c : tensor<3xi32>, tensor<3xi32>)
    outs(%o0 : tensor<10x4x8xf32>)
  return
}

// -----

// Three lists.
func.func @f(%q: tensor<10x4x8xf32>, %k: tensor<14x2x8xf32>, %v: tensor<14x2x8xf32>, %c: tensor<3xi32>, %o0: tensor<10x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected at most two lists in cu_seqlens, got 3 (attn_c8)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<10x4x8xf32>, tensor<14x2x8xf32>, tensor<14x2x8xf32>) cu_seqlens(%c, %c, %c : tensor<3xi32>, tensor<3xi32>, tensor<3xi32>)
    outs(%o0 : tensor<10x4x8xf32>)
  return
}

// -----

// A list of rank 2.
func.func @f(%q: tensor<10x4x8xf32>, %k: tensor<14x2x8xf32>, %v: tensor<14x2x8xf32>, %c: tensor<1x3xi32>, %o0: tensor<10x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected cu_seqlens of rank 1, got 'tensor<1x3xi32>' (attn_c8)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<10x4x8xf32>, tensor<14x2x8xf32>, tensor<14x2x8xf32>) cu_seqlens(%c, %c : tensor<1x3xi32>, tensor<1x3xi32>)
    outs(%o0 : tensor<10x4x8xf32>)
  return
}

// -----

// A list without an end.
func.func @f(%q: tensor<10x4x8xf32>, %k: tensor<14x2x8xf32>, %v: tensor<14x2x8xf32>, %c: tensor<0xi32>, %o0: tensor<10x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected cu_seqlens with one element more than there are sequences, got 'tensor<0xi32>' (attn_c8)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<10x4x8xf32>, tensor<14x2x8xf32>, tensor<14x2x8xf32>) cu_seqlens(%c, %c : tensor<0xi32>, tensor<0xi32>)
    outs(%o0 : tensor<10x4x8xf32>)
  return
}

// -----

// A list as long as the lengths.
func.func @f(%q: tensor<10x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %c: tensor<2xi32>, %n: tensor<2xi64>, %o0: tensor<10x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected cu_seqlens with one element more than there are sequences, got 'tensor<2xi32>' (attn_c8)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<10x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) lengths(%n : tensor<2xi64>) cu_seqlens(%c : tensor<2xi32>)
    outs(%o0 : tensor<10x4x8xf32>)
  return
}

// -----

// Lengths of rank 2.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %n: tensor<2x1xi64>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected lengths of rank 1, got 'tensor<2x1xi64>' (attn_c9)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) lengths(%n : tensor<2x1xi64>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Pages without lengths.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %t: tensor<2x9xi32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected lengths of the keys (attn_c9)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) block_table(%t : tensor<2x9xi32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Packed queries, keys without lengths.
func.func @f(%q: tensor<10x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %c: tensor<3xi32>, %o0: tensor<10x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected lengths of the keys (attn_c9)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<10x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) cu_seqlens(%c : tensor<3xi32>)
    outs(%o0 : tensor<10x4x8xf32>)
  return
}

// -----

// Lengths of packed keys.
func.func @f(%q: tensor<10x4x8xf32>, %k: tensor<14x2x8xf32>, %v: tensor<14x2x8xf32>, %c: tensor<3xi32>, %n: tensor<2xi64>, %o0: tensor<10x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected no lengths for packed keys, which have them in cu_seqlens (attn_c9)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<10x4x8xf32>, tensor<14x2x8xf32>, tensor<14x2x8xf32>) lengths(%n : tensor<2xi64>) cu_seqlens(%c, %c : tensor<3xi32>, tensor<3xi32>)
    outs(%o0 : tensor<10x4x8xf32>)
  return
}

// -----

// A table of rank 1.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %n: tensor<2xi64>, %t: tensor<9xi32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected block_table of rank 2, got 'tensor<9xi32>' (attn_c10)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) lengths(%n : tensor<2xi64>) block_table(%t : tensor<9xi32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Pages of packed keys.
func.func @f(%q: tensor<10x4x8xf32>, %k: tensor<14x2x8xf32>, %c: tensor<3xi32>, %t: tensor<2x9xi32>) {
  // expected-error @+1 {{'posenc.attention' op expected keys that are not both packed and paged (attn_c10)}}
  %r = posenc.attention ins(%q, %k, %k : tensor<10x4x8xf32>, tensor<14x2x8xf32>, tensor<14x2x8xf32>)
    cu_seqlens(%c, %c : tensor<3xi32>, tensor<3xi32>) block_table(%t : tensor<2x9xi32>)
    outs(%q : tensor<10x4x8xf32>)
  return
}

// -----

// A mask of rank 2.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %m: tensor<5x7xi1>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected mask of rank 4, got 'tensor<5x7xi1>' (attn_c11)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) mask(%m : tensor<5x7xi1>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// A mask of packed queries.
func.func @f(%q: tensor<10x4x8xf32>, %k: tensor<14x2x8xf32>, %v: tensor<14x2x8xf32>, %c: tensor<3xi32>, %m: tensor<1x1x10x14xi1>, %o0: tensor<10x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected no mask for packed queries (attn_c11)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<10x4x8xf32>, tensor<14x2x8xf32>, tensor<14x2x8xf32>) cu_seqlens(%c, %c : tensor<3xi32>, tensor<3xi32>) mask(%m : tensor<1x1x10x14xi1>)
    outs(%o0 : tensor<10x4x8xf32>)
  return
}

// -----

// Sinks of rank 2.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %s: tensor<1x4xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected sinks of rank 1, got 'tensor<1x4xf32>' (attn_c12)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) sinks(%s : tensor<1x4xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// A norm of rank 2.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %w: tensor<4x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected query_norm of rank 1, got 'tensor<4x8xf32>' (attn_c13)}}
  %r = posenc.attention norm_eps = 1.0e-06
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) query_norm(%w : tensor<4x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// A norm without an epsilon.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %w: tensor<8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op norm without norm_eps (attn_c13)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) key_norm(%w : tensor<8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// An epsilon without a norm.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op norm_eps without a norm (attn_c13)}}
  %r = posenc.attention norm_eps = 1.0e-06
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// A negative epsilon.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %w: tensor<8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected norm_eps to be finite and not negative, got -1.000000e+00 : f64 (attn_c13)}}
  %r = posenc.attention norm_eps = -1
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) key_norm(%w : tensor<8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// An offset without a norm.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op norm_offset without a norm (attn_c13)}}
  %r = posenc.attention norm_offset = 1
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// An infinite offset.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %w: tensor<8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected norm_offset to be finite, got 0x7FF0000000000000 : f64 (attn_c13)}}
  %r = posenc.attention norm_eps = 1 norm_offset = 0x7FF0000000000000
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) key_norm(%w : tensor<8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Weights of all query heads for the keys, which have fewer heads.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %w: tensor<32xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #3 has size 32 in dimension 0 where another operand has 8 (attn_c4)}}
  %r = posenc.attention norm_eps = 1
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) key_norm(%w : tensor<32xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// An infinite epsilon.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %w: tensor<8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected norm_eps to be finite and not negative, got 0x7FF0000000000000 : f64 (attn_c13)}}
  %r = posenc.attention norm_eps = 0x7FF0000000000000
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) key_norm(%w : tensor<8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// A scale that is NaN.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected a finite scale, got 0x7FF8000000000000 : f64 (attn_c14)}}
  %r = posenc.attention scale = 0x7FF8000000000000
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// A negative window on the left.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected a window that is not negative, got -1 (attn_c14)}}
  %r = posenc.attention window_left = -1
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// A negative window on the right.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected a window that is not negative, got -9223372036854775808 (attn_c14)}}
  %r = posenc.attention window_right = -9223372036854775808
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// A score region without the score argument.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected region 'score' to have the arguments ('f32', 'index', 'index', 'index', 'index'), got ('index', 'index', 'index', 'index') (attn_c15)}}
  %r = "posenc.attention"(%q, %k, %k, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}> ({
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %s = arith.constant 1.0 : f32
    posenc.yield %s : f32
  }, {}) : (tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>, tensor<2x5x4x8xf32>) -> tensor<2x5x4x8xf32>
  return
}

// -----

// A score argument of the type of the tensors.
func.func @f(%q: tensor<2x5x4x8xbf16>, %k: tensor<2x7x2x8xbf16>, %v: tensor<2x7x2x8xbf16>, %o0: tensor<2x5x4x8xbf16>) {
  // expected-error @+1 {{'posenc.attention' op expected region 'score' to yield 'f32' (attn_c15)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xbf16>, tensor<2x7x2x8xbf16>, tensor<2x7x2x8xbf16>)
    outs(%o0 : tensor<2x5x4x8xbf16>)
    score(%s, %b, %h, %i, %j) {
      %t = arith.extf %s : f32 to f64
      posenc.yield %t : f64
    }
  return
}

// -----

// No operation in the region of the score.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>) {
  // expected-error @+1 {{empty block: expect at least a terminator}}
  %r = "posenc.attention"(%q, %k, %k, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}> ({
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
  }, {}) : (tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>, tensor<2x5x4x8xf32>) -> tensor<2x5x4x8xf32>
  return
}

// -----

// A where region with a score argument.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected region 'where' to have the arguments ('index', 'index', 'index', 'index'), got ('f32', 'index', 'index', 'index', 'index') (attn_c16)}}
  %r = "posenc.attention"(%q, %k, %k, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}> ({}, {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %t = arith.constant true
    posenc.yield %t : i1
  }) : (tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>, tensor<2x5x4x8xf32>) -> tensor<2x5x4x8xf32>
  return
}

// -----

// A float as a mask.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected region 'where' to yield 'i1' (attn_c16)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
    where(%b, %h, %i, %j) {
      %t = arith.constant 1.0 : f32
      posenc.yield %t : f32
    }
  return
}

// -----

// A write.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %m: memref<4xf32>, %o0: tensor<2x5x4x8xf32>) {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
    score(%s, %b, %h, %i, %j) {
      // expected-error @+1 {{'memref.store' in region 'score' has effects (attn_c17)}}
      memref.store %s, %m[%h] : memref<4xf32>
      posenc.yield %s : f32
    }
  return
}

// -----

// A call.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
    where(%b, %h, %i, %j) {
      // expected-error @+1 {{'func.call' in region 'where' has effects (attn_c17)}}
      %t = func.call @f() : () -> i1
      posenc.yield %t : i1
    }
  return
}

// -----

// A branch.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %c: i1, %o0: tensor<2x5x4x8xf32>) {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
    score(%s, %b, %h, %i, %j) {
      // expected-error @+1 {{'scf.if' in region 'score' has a region (attn_c17)}}
      %t = scf.if %c -> f32 {
        scf.yield %s : f32
      } else {
        scf.yield %s : f32
      }
      posenc.yield %t : f32
    }
  return
}

// -----

// A wide integer.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
    where(%b, %h, %i, %j) {
      // expected-error @+1 {{'arith.index_cast' in region 'where' has more than 128 bits (attn_c17)}}
      %x = arith.index_cast %j : index to i129
      %t = arith.trunci %x : i129 to i1
      posenc.yield %t : i1
    }
  return
}

// -----

// A tensor.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
    score(%s, %b, %h, %i, %j) {
      // expected-error @+1 {{'tensor.splat' in region 'score' does not work on scalars (attn_c17)}}
      %t = tensor.splat %s : tensor<4xf32>
      %u = tensor.extract %t[%h] : tensor<4xf32>
      posenc.yield %u : f32
    }
  return
}

// -----

// Tensors and a memref.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %n: memref<2xi64>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op mixes tensors and memrefs (attn_c18)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) lengths(%n : memref<2xi64>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// No result.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected one result for each tensor destination, of its type (attn_c18)}}
  "posenc.attention"(%q, %k, %k, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}> ({}, {})
    : (tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>, tensor<2x5x4x8xf32>) -> ()
  return
}
