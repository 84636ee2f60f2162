//===- attention-invalid.mlir - violated constraints of attention ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// Two queries in the generic form.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected one operand each for query, key and value, got 2}}
  %r = "posenc.attention"(%q, %q, %k, %k, %q) <{operandSegmentSizes = array<i32: 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}> ({}, {})
    : (tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>, tensor<2x5x4x8xf32>) -> tensor<2x5x4x8xf32>
  return
}

// -----

// No destination.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected one or two destinations, got 0 (attn_c1)}}
  "posenc.attention"(%q, %k, %k) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}> ({}, {})
    : (tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) -> ()
  return
}

// -----

// A yield without a value.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>) {
  %r = "posenc.attention"(%q, %k, %k, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}> ({
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error @+1 {{'posenc.yield' op requires a single operand}}
    "posenc.yield"() : () -> ()
  }, {}) : (tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>, tensor<2x5x4x8xf32>) -> tensor<2x5x4x8xf32>
  return
}

// -----

// A load without a memref.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>) {
  %r = "posenc.attention"(%q, %k, %k, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}> ({
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error @+1 {{'memref.load' op expected 1 or more operands, but found 0}}
    %x = "memref.load"() : () -> f32
    posenc.yield %x : f32
  }, {}) : (tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>, tensor<2x5x4x8xf32>) -> tensor<2x5x4x8xf32>
  return
}

// -----

// Three destinations.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>, %o1: tensor<2x5x4xf32>, %o2: tensor<2x5x4xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected one or two destinations, got 3 (attn_c1)}}
  %r:3 = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0, %o1, %o2 : tensor<2x5x4x8xf32>, tensor<2x5x4xf32>, tensor<2x5x4xf32>)
  return
}

// -----

// Keys of another type than the values.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf16>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected keys and values of one element type, got 'tensor<2x7x2x8xf16>' and 'tensor<2x7x2x8xf32>' (attn_c19)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf16>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// An output of another type.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf64>) {
  // expected-error @+1 {{'posenc.attention' op expected element type 'f32', got 'tensor<2x5x4x8xf64>' (attn_c2)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf64>)
  return
}

// -----

// A norm of another type.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %w: tensor<8xf16>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected element type 'f32', got 'tensor<8xf16>' (attn_c2)}}
  %r = posenc.attention norm_eps = 1.0e-06
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) query_norm(%w : tensor<8xf16>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Log-sum-exp in the type of the output.
func.func @f(%q: tensor<2x5x4x8xbf16>, %k: tensor<2x7x2x8xbf16>, %v: tensor<2x7x2x8xbf16>, %o0: tensor<2x5x4x8xbf16>, %o1: tensor<2x5x4xbf16>) {
  // expected-error @+1 {{'posenc.attention' op expected element type 'f32', got 'tensor<2x5x4xbf16>' (attn_c2)}}
  %r:2 = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xbf16>, tensor<2x7x2x8xbf16>, tensor<2x7x2x8xbf16>)
    outs(%o0, %o1 : tensor<2x5x4x8xbf16>, tensor<2x5x4xbf16>)
  return
}

// -----

// Sinks in f64.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %s: tensor<4xf64>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected element type 'f32', got 'tensor<4xf64>' (attn_c2)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) sinks(%s : tensor<4xf64>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Sinks in f32 for f64.
func.func @f(%q: tensor<2x5x4x8xf64>, %k: tensor<2x7x2x8xf64>, %v: tensor<2x7x2x8xf64>, %s: tensor<4xf32>, %o0: tensor<2x5x4x8xf64>) {
  // expected-error @+1 {{'posenc.attention' op expected element type 'f64', got 'tensor<4xf32>' (attn_c2)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf64>, tensor<2x7x2x8xf64>, tensor<2x7x2x8xf64>) sinks(%s : tensor<4xf32>)
    outs(%o0 : tensor<2x5x4x8xf64>)
  return
}

// -----

// Queries of rank 3.
func.func @f(%q: tensor<5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected query of rank 4, got 'tensor<5x4x8xf32>' (attn_c3)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Values of rank 3.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected value of rank 4, got 'tensor<7x2x8xf32>' (attn_c3)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// An output of rank 5.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<1x2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected output of rank 4, got 'tensor<1x2x5x4x8xf32>' (attn_c3)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<1x2x5x4x8xf32>)
  return
}

// -----

// A dynamic last dimension.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x?xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected key with a static last dimension between 1 and 65536, got 'tensor<2x7x2x?xf32>' (attn_c3)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x?xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// No lanes.
func.func @f(%q: tensor<2x5x4x0xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected query with a static last dimension between 1 and 65536, got 'tensor<2x5x4x0xf32>' (attn_c3)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x0xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// A wide head.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x65537xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected value with a static last dimension between 1 and 65536, got 'tensor<2x7x2x65537xf32>' (attn_c3)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x65537xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Log-sum-exp of the rank of the output.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>, %o1: tensor<2x5x4x1xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected second destination of rank 3, got 'tensor<2x5x4x1xf32>' (attn_c3)}}
  %r:2 = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0, %o1 : tensor<2x5x4x8xf32>, tensor<2x5x4x1xf32>)
  return
}

// -----

// Queries with a batch, though packed.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %c: tensor<3xi32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected query of rank 3, got 'tensor<2x5x4x8xf32>' (attn_c3)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) cu_seqlens(%c, %c : tensor<3xi32>, tensor<3xi32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Keys with a batch, though packed.
func.func @f(%q: tensor<10x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %c: tensor<3xi32>, %o0: tensor<10x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected key of rank 3, got 'tensor<2x7x2x8xf32>' (attn_c3)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<10x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) cu_seqlens(%c, %c : tensor<3xi32>, tensor<3xi32>)
    outs(%o0 : tensor<10x4x8xf32>)
  return
}

// -----

// Keys without a batch, though caches.
func.func @f(%q: tensor<10x4x8xf32>, %k: tensor<14x2x8xf32>, %v: tensor<14x2x8xf32>, %c: tensor<3xi32>, %n: tensor<2xi64>, %o0: tensor<10x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected key of rank 4, got 'tensor<14x2x8xf32>' (attn_c3)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<10x4x8xf32>, tensor<14x2x8xf32>, tensor<14x2x8xf32>) lengths(%n : tensor<2xi64>) cu_seqlens(%c : tensor<3xi32>)
    outs(%o0 : tensor<10x4x8xf32>)
  return
}

// -----

// Batches that differ.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<3x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #1 has size 3 in dimension 0 where another operand has 2 (attn_c4)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<3x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Keys that differ in number from the values.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x6x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #2 has size 6 in dimension 1 where another operand has 7 (attn_c4)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x6x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Heads of keys and values that differ.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x4x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #2 has size 4 in dimension 2 where another operand has 2 (attn_c4)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x4x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Keys of another width.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x16xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #1 has size 16 in dimension 3 where another operand has 8 (attn_c4)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x16xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// An output of the width of the keys.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x16xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #3 has size 8 in dimension 3 where another operand has 16 (attn_c4)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x16xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// An output in the layout of the keys.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x4x5x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #3 has size 4 in dimension 1 where another operand has 5 (attn_c4)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x4x5x8xf32>)
  return
}

// -----

// Head-major keys that are not.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x2x7x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #2 has size 7 in dimension 1 where another operand has 2 (attn_c4)}}
  %r = posenc.attention key_layout = head_major
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x2x7x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Logarithms in another layout.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x4x8xf32>, %o1: tensor<2x4x5xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #4 has size 4 in dimension 1 where another operand has 5 (attn_c4)}}
  %r:2 = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0, %o1 : tensor<2x5x4x8xf32>, tensor<2x4x5xf32>)
  return
}

// -----

// A norm of another width.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %w: tensor<4xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #3 has size 4 in dimension 0 where another operand has 8 (attn_c4)}}
  %r = posenc.attention norm_eps = 1.0e-06
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) key_norm(%w : tensor<4xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Positions of the keys for queries.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %p: tensor<2x7xi64>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #3 has size 7 in dimension 1 where another operand has 5 (attn_c4)}}
  %r = posenc.attention query_rotation = <pairing = half, frequencies = <dim = 8>>
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) query_positions(%p : tensor<2x7xi64>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Lengths of another batch.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %n: tensor<3xi64>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #3 has size 3 in dimension 0 where another operand has 2 (attn_c4)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) lengths(%n : tensor<3xi64>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// A mask of too few keys.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %m: tensor<1x1x5x5xi1>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #3 has size 5 in dimension 3 where another operand has 7 (attn_c4)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) mask(%m : tensor<1x1x5x5xi1>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// A mask for the heads of the keys.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %m: tensor<2x2x5x7xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #3 has size 2 in dimension 1 where another operand has 4 (attn_c4)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) mask(%m : tensor<2x2x5x7xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Sinks for the heads of the keys.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %s: tensor<2xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #3 has size 2 in dimension 0 where another operand has 4 (attn_c4)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) sinks(%s : tensor<2xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// A table of another batch.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %n: tensor<2xi64>, %t: tensor<3x9xi32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #4 has size 3 in dimension 0 where another operand has 2 (attn_c4)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) lengths(%n : tensor<2xi64>) block_table(%t : tensor<3x9xi32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Lists of different batches.
func.func @f(%q: tensor<10x4x8xf32>, %k: tensor<14x2x8xf32>, %v: tensor<14x2x8xf32>, %c: tensor<3xi32>, %d: tensor<4xi32>, %o0: tensor<10x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #4 has size 4 in dimension 0 where another operand has 3 (attn_c4)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<10x4x8xf32>, tensor<14x2x8xf32>, tensor<14x2x8xf32>) cu_seqlens(%c, %d : tensor<3xi32>, tensor<4xi32>)
    outs(%o0 : tensor<10x4x8xf32>)
  return
}

// -----

// Four heads of queries, three of keys.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x3x8xf32>, %v: tensor<2x7x3x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected the query heads to be a positive multiple of the key heads, got 'tensor<2x5x4x8xf32>' and 'tensor<2x7x3x8xf32>' (attn_c5)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x3x8xf32>, tensor<2x7x3x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// More heads of keys than of queries.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x8x8xf32>, %v: tensor<2x7x8x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected the query heads to be a positive multiple of the key heads, got 'tensor<2x5x4x8xf32>' and 'tensor<2x7x8x8xf32>' (attn_c5)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x8x8xf32>, tensor<2x7x8x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// No heads of keys.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x0x8xf32>, %v: tensor<2x7x0x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected the query heads to be a positive multiple of the key heads, got 'tensor<2x5x4x8xf32>' and 'tensor<2x7x0x8xf32>' (attn_c5)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x4x8xf32>, tensor<2x7x0x8xf32>, tensor<2x7x0x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// No heads at all.
func.func @f(%q: tensor<2x5x0x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x8xf32>, %o0: tensor<2x5x0x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected the query heads to be a positive multiple of the key heads, got 'tensor<2x5x0x8xf32>' and 'tensor<2x7x2x8xf32>' (attn_c5)}}
  %r = posenc.attention
    ins(%q, %k, %v : tensor<2x5x0x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>)
    outs(%o0 : tensor<2x5x0x8xf32>)
  return
}

// -----

// Keys wider than the sums.
func.func @f(%q: tensor<2x5x4x8xbf16>, %k: tensor<2x7x2x8xf64>, %o0: tensor<2x5x4x8xbf16>) {
  // expected-error @+1 {{'posenc.attention' op expected keys and values that are not wider than the sums' 'f32', got 'tensor<2x7x2x8xf64>' (attn_c19)}}
  %r = posenc.attention
    ins(%q, %k, %k : tensor<2x5x4x8xbf16>, tensor<2x7x2x8xf64>, tensor<2x7x2x8xf64>)
    outs(%o0 : tensor<2x5x4x8xbf16>)
  return
}

// -----

// A norm of the keys' type.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf16>, %w: tensor<8xf16>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected element type 'f32', got 'tensor<8xf16>' (attn_c2)}}
  %r = posenc.attention norm_eps = 0
    ins(%q, %k, %k : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf16>, tensor<2x7x2x8xf16>) key_norm(%w : tensor<8xf16>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Keys of an unsupported integer type.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xi16>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #1 must be}}
  %r = posenc.attention
    ins(%q, %k, %k : tensor<2x5x4x8xf32>, tensor<2x7x2x8xi16>, tensor<2x7x2x8xi16>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Quantized keys without scales.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xi8>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op keys of 'i8' need key_scales (attn_c20)}}
  %r = posenc.attention
    ins(%q, %k, %k : tensor<2x5x4x8xf32>, tensor<2x7x2x8xi8>, tensor<2x7x2x8xi8>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Quantized values without scales.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf8E4M3FN>, %s: tensor<2x2x7xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op keys of 'f8E4M3FN' need value_scales (attn_c20)}}
  %r = posenc.attention
    ins(%q, %k, %k : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf8E4M3FN>, tensor<2x7x2x8xf8E4M3FN>) key_scales(%s : tensor<2x2x7xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Scales of floats.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xf16>, %s: tensor<2x2x7xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op keys of 'f16' have no key_scales (attn_c20)}}
  %r = posenc.attention
    ins(%q, %k, %k : tensor<2x5x4x8xf32>, tensor<2x7x2x8xf16>, tensor<2x7x2x8xf16>) key_scales(%s : tensor<2x2x7xf32>) value_scales(%s : tensor<2x2x7xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Scales of every channel.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xi8>, %s: tensor<2x2x7x8xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected key_scales of rank 3, got 'tensor<2x2x7x8xf32>' (attn_c20)}}
  %r = posenc.attention
    ins(%q, %k, %k : tensor<2x5x4x8xf32>, tensor<2x7x2x8xi8>, tensor<2x7x2x8xi8>) key_scales(%s : tensor<2x2x7x8xf32>) value_scales(%s : tensor<2x2x7x8xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Scales in the order of the layout.
func.func @f(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x2x8xi8>, %s: tensor<2x7x2xf32>, %o0: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op operand #3 has size 7 in dimension 1 where another operand has 2 (attn_c4)}}
  %r = posenc.attention
    ins(%q, %k, %k : tensor<2x5x4x8xf32>, tensor<2x7x2x8xi8>, tensor<2x7x2x8xi8>) key_scales(%s : tensor<2x7x2xf32>) value_scales(%s : tensor<2x7x2xf32>)
    outs(%o0 : tensor<2x5x4x8xf32>)
  return
}

// -----

// Packed keys have no batch, and neither have their scales.
func.func @f(%q: tensor<5x4x8xf32>, %k: tensor<7x2x8xi8>, %s: tensor<1x2x7xf32>, %n: tensor<3xi64>, %o0: tensor<5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected key_scales of rank 2, got 'tensor<1x2x7xf32>' (attn_c20)}}
  %r = posenc.attention
    ins(%q, %k, %k : tensor<5x4x8xf32>, tensor<7x2x8xi8>, tensor<7x2x8xi8>) cu_seqlens(%n, %n : tensor<3xi64>, tensor<3xi64>)
    key_scales(%s : tensor<1x2x7xf32>) value_scales(%s : tensor<1x2x7xf32>)
    outs(%o0 : tensor<5x4x8xf32>)
  return
}

// -----

// Queries that follow ragged ones.
func.func @f(%q: tensor<5x4x8xf32>, %k: tensor<7x2x8xf32>, %c: tensor<3xi64>, %n: index, %o0: tensor<5x4x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected no trailing_queries for packed queries (attn_c21)}}
  %r = posenc.attention
    ins(%q, %k, %k : tensor<5x4x8xf32>, tensor<7x2x8xf32>, tensor<7x2x8xf32>) cu_seqlens(%c, %c : tensor<3xi64>, tensor<3xi64>) trailing_queries(%n)
    outs(%o0 : tensor<5x4x8xf32>)
  return
}
