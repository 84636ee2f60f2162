//===- kv-append-invalid.mlir - violated constraints of kv_append ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// No values in the generic form.
func.func @f(%k: tensor<2x3x4x8xf32>, %n: tensor<2xi64>) {
  // expected-error @+1 {{'posenc.kv_append' op expected one operand each for key and value, got 0}}
  %r:2 = "posenc.kv_append"(%k, %n, %k, %k) <{operandSegmentSizes = array<i32: 1, 0, 0, 0, 1, 0, 0, 0, 0, 2>}>
    : (tensor<2x3x4x8xf32>, tensor<2xi64>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>)
  return
}

// -----

// One cache.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected two destinations, got 1 (kv_append_c1)}}
  %r = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0 : tensor<2x9x4x8xf32>)
  return
}

// -----

// Three caches.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>, %o2: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected two destinations, got 3 (kv_append_c1)}}
  %r:3 = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1, %o2 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// A cache of another type than the other.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf16>) {
  // expected-error @+1 {{'posenc.kv_append' op expected keys and values of one element type, got 'tensor<2x9x4x8xf32>' and 'tensor<2x9x4x8xf16>' (kv_append_c2)}}
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf16>)
  return
}

// -----

// A norm of another type.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %w: tensor<8xbf16>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected element type 'f32', got 'tensor<8xbf16>' (kv_append_c2)}}
  %r:2 = posenc.kv_append norm_eps = 1
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) norm(%w : tensor<8xbf16>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// Rows without a batch, with lengths.
func.func @f(%k: tensor<3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected key of rank 4, got 'tensor<3x4x8xf32>' (kv_append_c3)}}
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// A cache without entries.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected value cache of rank 4, got 'tensor<9x4x8xf32>' (kv_append_c3)}}
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<9x4x8xf32>)
  return
}

// -----

// A dynamic last dimension.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x?xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected key cache with a static last dimension between 1 and 65536, got 'tensor<2x9x4x?xf32>' (kv_append_c3)}}
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x?xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// Values with other tokens.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x5x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op operand #1 has size 5 in dimension 1 where another operand has 3 (kv_append_c4)}}
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x5x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// A cache of another batch.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<3x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op operand #3 has size 3 in dimension 0 where another operand has 2 (kv_append_c4)}}
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<3x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// A cache in another layout.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op operand #3 has size 9 in dimension 1 where another operand has 4 (kv_append_c4)}}
  %r:2 = posenc.kv_append cache_layout = head_major
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// Caches of different sizes.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x8x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op operand #4 has size 8 in dimension 1 where another operand has 9 (kv_append_c4)}}
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x8x4x8xf32>)
  return
}

// -----

// A value cache of another width.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x16xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op operand #4 has size 8 in dimension 3 where another operand has 16 (kv_append_c4)}}
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x16xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// Slots of other tokens.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %s: tensor<2x4xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op operand #2 has size 4 in dimension 1 where another operand has 3 (kv_append_c4)}}
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) slots(%s : tensor<2x4xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// No slots.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected either lengths or slots (kv_append_c5)}}
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// Slots and lengths.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %s: tensor<2x3xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected either lengths or slots (kv_append_c5)}}
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>) slots(%s : tensor<2x3xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// Lengths of each token.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %n: tensor<2x3xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected lengths of rank 1, got 'tensor<2x3xi64>' (kv_append_c5)}}
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2x3xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// Slots without a batch.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %s: tensor<6xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected slots of rank 2, got 'tensor<6xi64>' (kv_append_c5)}}
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) slots(%s : tensor<6xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// Slots with a batch that the rows do not have.
func.func @f(%k: tensor<6x4x8xf32>, %v: tensor<6x4x8xf32>, %s: tensor<2x3xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected slots of rank 1, got 'tensor<2x3xi64>' (kv_append_c5)}}
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<6x4x8xf32>, tensor<6x4x8xf32>) slots(%s : tensor<2x3xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// A window wider than the keys.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op rotary window of 16 lanes at offset 0 is not within the last dimension of 8 of the keys (kv_append_c6)}}
  %r:2 = posenc.kv_append rotation = <pairing = half, frequencies = <dim = 16>>
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// Positions without a rotation.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %p: tensor<2x3xi64>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op positions of the keys without a rotation (kv_append_c7)}}
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) positions(%p : tensor<2x3xi64>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// Positions without a batch.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %p: tensor<3xi64>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected positions of the keys of rank 2, got 'tensor<3xi64>' (kv_append_c7)}}
  %r:2 = posenc.kv_append rotation = <pairing = half, frequencies = <dim = 8>>
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) positions(%p : tensor<3xi64>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// Axes without positions.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op rotation of the keys has axes, but there are no positions (kv_append_c7)}}
  %r:2 = posenc.kv_append rotation = <pairing = half, frequencies = <dim = 8>, axes = <axial, [2, 2]>>
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// Slots without positions.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %s: tensor<2x3xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected positions of the keys in slots (kv_append_c7)}}
  %r:2 = posenc.kv_append rotation = <pairing = half, frequencies = <dim = 8>>
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) slots(%s : tensor<2x3xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// A norm of rank 2.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %w: tensor<4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected norm of rank 1, got 'tensor<4x8xf32>' (kv_append_c8)}}
  %r:2 = posenc.kv_append norm_eps = 1
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) norm(%w : tensor<4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// An epsilon without a norm.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op norm_eps without a norm (kv_append_c8)}}
  %r:2 = posenc.kv_append norm_eps = 1
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// A negative epsilon.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %w: tensor<8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected norm_eps to be finite and not negative, got -1.000000e+00 : f64 (kv_append_c8)}}
  %r:2 = posenc.kv_append norm_eps = -1
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) norm(%w : tensor<8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// An offset of the weights without weights.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op norm_offset without a norm (kv_append_c8)}}
  %r:2 = posenc.kv_append norm_offset = 1
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// An offset that is not a number.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %w: tensor<8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected norm_offset to be finite, got 0x7FF8000000000000 : f64 (kv_append_c8)}}
  %r:2 = posenc.kv_append norm_eps = 0.1 norm_offset = 0x7FF8000000000000
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) norm(%w : tensor<8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// A cache in memory.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>, %o1: memref<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op mixes tensors and memrefs (kv_append_c9)}}
  %r = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o1 : tensor<2x9x4x8xf32>, memref<2x9x4x8xf32>)
  return
}

// -----

// No result.
func.func @f(%k: tensor<2x3x4x8xf32>, %n: tensor<2xi64>) {
  // expected-error @+1 {{'posenc.kv_append' op expected one result for each tensor destination, of its type (kv_append_c9)}}
  "posenc.kv_append"(%k, %k, %n, %k, %k) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 1, 0, 0, 0, 0, 2>}>
    : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2xi64>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) -> ()
  return
}

// -----

// New values of another type.
func.func @f(%k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf16>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected element type 'f32', got 'tensor<2x3x4x8xf16>' (kv_append_c2)}}
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf16>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o0 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return
}

// -----

// Caches wider than the sums.
func.func @f(%k: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf64>) {
  // expected-error @+1 {{'posenc.kv_append' op expected keys and values that are not wider than the sums' 'f32', got 'tensor<2x9x4x8xf64>' (kv_append_c2)}}
  %r:2 = posenc.kv_append
    ins(%k, %k : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o0 : tensor<2x9x4x8xf64>, tensor<2x9x4x8xf64>)
  return
}

// -----

// Quantized caches without scales.
func.func @f(%k: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xi8>) {
  // expected-error @+1 {{'posenc.kv_append' op expected four destinations, got 2 (kv_append_c1)}}
  %r:2 = posenc.kv_append
    ins(%k, %k : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o0 : tensor<2x9x4x8xi8>, tensor<2x9x4x8xi8>)
  return
}

// -----

// Scales of caches that are not quantized.
func.func @f(%k: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf16>, %s: tensor<2x4x9xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected two destinations, got 4 (kv_append_c1)}}
  %r:4 = posenc.kv_append
    ins(%k, %k : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o0, %s, %s : tensor<2x9x4x8xf16>, tensor<2x9x4x8xf16>, tensor<2x4x9xf32>, tensor<2x4x9xf32>)
  return
}

// -----

// Scales of f16.
func.func @f(%k: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xf8E5M2>, %s: tensor<2x4x9xf16>) {
  // expected-error @+1 {{'posenc.kv_append' op expected scales of f32, got 'tensor<2x4x9xf16>' (kv_append_c10)}}
  %r:4 = posenc.kv_append
    ins(%k, %k : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o0, %s, %s : tensor<2x9x4x8xf8E5M2>, tensor<2x9x4x8xf8E5M2>, tensor<2x4x9xf16>, tensor<2x4x9xf16>)
  return
}

// -----

// Scales of every channel.
func.func @f(%k: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xi8>, %s: tensor<2x4x9x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected scales of rank 3, got 'tensor<2x4x9x8xf32>' (kv_append_c10)}}
  %r:4 = posenc.kv_append
    ins(%k, %k : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o0, %s, %s : tensor<2x9x4x8xi8>, tensor<2x9x4x8xi8>, tensor<2x4x9x8xf32>, tensor<2x4x9x8xf32>)
  return
}

// -----

// Scales with a broadcast dimension.
func.func @f(%k: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %o0: tensor<2x9x4x8xi8>, %s: tensor<2x4x1xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op operand #5 has size 1 in dimension 2 where another operand has 9 (kv_append_c4)}}
  %r:4 = posenc.kv_append
    ins(%k, %k : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%o0, %o0, %s, %s : tensor<2x9x4x8xi8>, tensor<2x9x4x8xi8>, tensor<2x4x1xf32>, tensor<2x4x1xf32>)
  return
}

// -----

// Scales of keys only.
func.func @f(%k: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %c: tensor<2x9x4x8xi8>, %s: tensor<1x1x1xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected both key_scales and value_scales or neither (kv_append_c12)}}
  %r:2 = posenc.kv_append
    ins(%k, %k : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>) key_scales(%s : tensor<1x1x1xf32>)
    outs(%c, %c : tensor<2x9x4x8xi8>, tensor<2x9x4x8xi8>)
  return
}

// -----

// Given scales of caches that have none.
func.func @f(%k: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %c: tensor<2x9x4x8xf16>, %s: tensor<1x1x1xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op caches of type 'tensor<2x9x4x8xf16>' have no key_scales (kv_append_c12)}}
  %r:2 = posenc.kv_append
    ins(%k, %k : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>) key_scales(%s : tensor<1x1x1xf32>) value_scales(%s : tensor<1x1x1xf32>)
    outs(%c, %c : tensor<2x9x4x8xf16>, tensor<2x9x4x8xf16>)
  return
}

// -----

// Given scales, and scales as destinations.
func.func @f(%k: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %c: tensor<2x9x4x8xi8>, %s: tensor<1x1x1xf32>, %t: tensor<2x4x9xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected two destinations, got 4 (kv_append_c1)}}
  %r:4 = posenc.kv_append
    ins(%k, %k : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>) key_scales(%s : tensor<1x1x1xf32>) value_scales(%s : tensor<1x1x1xf32>)
    outs(%c, %c, %t, %t : tensor<2x9x4x8xi8>, tensor<2x9x4x8xi8>, tensor<2x4x9xf32>, tensor<2x4x9xf32>)
  return
}

// -----

// A given scale of rank 1.
func.func @f(%k: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %c: tensor<2x9x4x8xi8>, %s: tensor<1x1x1xf32>, %t: tensor<1xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected value_scales of rank 3, got 'tensor<1xf32>' (kv_append_c12)}}
  %r:2 = posenc.kv_append
    ins(%k, %k : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>) key_scales(%s : tensor<1x1x1xf32>) value_scales(%t : tensor<1xf32>)
    outs(%c, %c : tensor<2x9x4x8xi8>, tensor<2x9x4x8xi8>)
  return
}

// -----

// Given scales of tokens.
func.func @f(%k: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %c: tensor<2x9x4x8xi8>, %s: tensor<1x1x1xf32>, %t: tensor<1x4x9xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected key_scales with a size of 1 in the first and last dimension, got 'tensor<1x4x9xf32>' (kv_append_c12)}}
  %r:2 = posenc.kv_append
    ins(%k, %k : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>) key_scales(%t : tensor<1x4x9xf32>) value_scales(%s : tensor<1x1x1xf32>)
    outs(%c, %c : tensor<2x9x4x8xi8>, tensor<2x9x4x8xi8>)
  return
}

// -----

// Given scales of other heads.
func.func @f(%k: tensor<2x3x4x8xf32>, %n: tensor<2xi64>, %c: tensor<2x9x4x8xi8>, %s: tensor<1x1x1xf32>, %t: tensor<1x2x1xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op operand #4 has size 2 in dimension 1 where another operand has 4 (kv_append_c4)}}
  %r:2 = posenc.kv_append
    ins(%k, %k : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) lengths(%n : tensor<2xi64>) key_scales(%s : tensor<1x1x1xf32>) value_scales(%t : tensor<1x2x1xf32>)
    outs(%c, %c : tensor<2x9x4x8xi8>, tensor<2x9x4x8xi8>)
  return
}
