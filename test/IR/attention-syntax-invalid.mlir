//===- attention-syntax-invalid.mlir - syntax errors of attention ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// An unknown property.
func.func @f(%x: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{custom op 'posenc.attention' expected 'ins'}}
  %r = posenc.attention casual ins(%x, %x, %x : tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>) outs(%x : tensor<2x5x4x8xf32>)
  return
}

// -----

// A property twice.
func.func @f(%x: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{`causal` clause can appear at most once}}
  %r = posenc.attention causal causal ins(%x, %x, %x : tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>) outs(%x : tensor<2x5x4x8xf32>)
  return
}

// -----

// An unknown layout.
func.func @f(%x: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{expected token_major or head_major, got 'batch_major'}}
  %r = posenc.attention query_layout = batch_major ins(%x, %x, %x : tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>) outs(%x : tensor<2x5x4x8xf32>)
  return
}

// -----

// A scale in words.
func.func @f(%x: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{expected floating point literal}}
  %r = posenc.attention scale = none ins(%x, %x, %x : tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>) outs(%x : tensor<2x5x4x8xf32>)
  return
}

// -----

// A window with a fraction.
func.func @f(%x: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{expected integer value}}
  %r = posenc.attention window_left = 1.5 ins(%x, %x, %x : tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>) outs(%x : tensor<2x5x4x8xf32>)
  return
}

// -----

// A window of more than 64 bits.
func.func @f(%x: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{integer value too large}}
  %r = posenc.attention window_left = 99999999999999999999 ins(%x, %x, %x : tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>) outs(%x : tensor<2x5x4x8xf32>)
  return
}

// -----

// A rotation of another kind.
func.func @f(%x: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{invalid kind of attribute specified}}
  %r = posenc.attention query_rotation = #posenc.frequencies<dim = 8> ins(%x, %x, %x : tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>) outs(%x : tensor<2x5x4x8xf32>)
  return
}

// -----

// No values.
func.func @f(%x: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{expected ','}}
  %r = posenc.attention ins(%x, %x : tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>) outs(%x : tensor<2x5x4x8xf32>)
  return
}

// -----

// An unknown operand group.
func.func @f(%x: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{expected 'outs'}}
  %r = posenc.attention ins(%x, %x, %x : tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>) bias(%x : tensor<2x5x4x8xf32>) outs(%x : tensor<2x5x4x8xf32>)
  return
}

// -----

// Lengths that are no integers.
func.func @f(%x: tensor<2x5x4x8xf32>, %n: tensor<2xf32>) {
  // expected-error @+1 {{operand #3 must be ranked tensor of 64-bit signless integer or 32-bit signless integer values}}
  %r = posenc.attention ins(%x, %x, %x : tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>) lengths(%n : tensor<2xf32>) outs(%x : tensor<2x5x4x8xf32>)
  return
}

// -----

// Queries that are no floats.
func.func @f(%x: tensor<2x5x4x8xi8>) {
  // expected-error @+1 {{operand #0 must be ranked tensor of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values}}
  %r = posenc.attention ins(%x, %x, %x : tensor<2x5x4x8xi8>, tensor<2x5x4x8xi8>, tensor<2x5x4x8xi8>) outs(%x : tensor<2x5x4x8xi8>)
  return
}

// -----

// A score region with too few arguments.
func.func @f(%x: tensor<2x5x4x8xf32>) {
  %r = posenc.attention ins(%x, %x, %x : tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>) outs(%x : tensor<2x5x4x8xf32>)
  // expected-error @+1 {{expected 5 arguments of 'score', got 4}}
    score(%b, %h, %i, %j) {
      posenc.yield %b : f32
    }
  return
}

// -----

// A region with two blocks.
func.func @f(%x: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{region #1 ('where') failed to verify constraint: region with at most 1 blocks}}
  %r = posenc.attention ins(%x, %x, %x : tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>) outs(%x : tensor<2x5x4x8xf32>)
    where(%b, %h, %i, %j) {
      cf.br ^end
    ^end:
      %t = arith.constant true
      posenc.yield %t : i1
    }
  return
}

// -----

// A region that does not yield.
func.func @f(%x: tensor<2x5x4x8xf32>) {
  %r = posenc.attention ins(%x, %x, %x : tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>) outs(%x : tensor<2x5x4x8xf32>)
    where(%b, %h, %i, %j) {
      // expected-error @+1 {{block with no terminator}}
      %t = arith.constant true
    }
  return
}

// -----

// The regions in the wrong order.
func.func @f(%x: tensor<2x5x4x8xf32>) {
  %r = posenc.attention ins(%x, %x, %x : tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>, tensor<2x5x4x8xf32>) outs(%x : tensor<2x5x4x8xf32>)
    where(%b, %h, %i, %j) {
      %t = arith.constant true
      posenc.yield %t : i1
    }
    // expected-error @+1 {{custom op 'score' is unknown}}
    score(%s, %b, %h, %i, %j) {
      posenc.yield %s : f32
    }
  return
}

// -----

// A yield elsewhere.
func.func @f(%x: i1) {
  // expected-error @+1 {{'posenc.yield' op expects parent op}}
  posenc.yield %x : i1
}
