//===- sinusoidal-op-invalid.mlir - errors of sinusoidal ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// No destination.
func.func @f(%a0: tensor<?xi64>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected one destination, got 0 (sinusoidal_c1)}}
  "posenc.sinusoidal"(%a0) <{frequencies = #posenc.frequencies<dim = 8>, order = #posenc<order sin_cos>}>
    : (tensor<?xi64>) -> ()
  return
}

// -----

// Two destinations.
func.func @f(%p: tensor<?xi64>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected one destination, got 2 (sinusoidal_c1)}}
  %r:2 = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>) outs(%t, %t : tensor<?x8xf32>, tensor<?x8xf32>)
  return
}

// -----

// A last dimension of half the dimension.
func.func @f(%p: tensor<?xi64>, %t: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected a destination with a last dimension of 8, got 'tensor<?x4xf32>' (sinusoidal_c1)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>) outs(%t : tensor<?x4xf32>)
  return
}

// -----

// A dynamic last dimension.
func.func @f(%p: tensor<?xi64>, %t: tensor<?x?xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected a destination with a last dimension of 8, got 'tensor<?x?xf32>' (sinusoidal_c1)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>) outs(%t : tensor<?x?xf32>)
  return
}

// -----

// No dimension.
func.func @f(%p: tensor<i64>, %t: tensor<f32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected a destination with a last dimension of 8, got 'tensor<f32>' (sinusoidal_c1)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> positions(%p : tensor<i64>) outs(%t : tensor<f32>)
  return
}

// -----

// A row for many positions.
func.func @f(%p: tensor<?xi64>, %t: tensor<8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected a destination of rank 2, got 'tensor<8xf32>' (sinusoidal_c2)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>) outs(%t : tensor<8xf32>)
  return
}

// -----

// Too many dimensions.
func.func @f(%p: tensor<?xi64>, %t: tensor<?x?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected a destination of rank 2, got 'tensor<?x?x8xf32>' (sinusoidal_c2)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>) outs(%t : tensor<?x?x8xf32>)
  return
}

// -----

// A row for a scalar position.
func.func @f(%p: i64, %t: tensor<8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected a destination of rank 2, got 'tensor<8xf32>' (sinusoidal_c2)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> positions(%p : i64) outs(%t : tensor<8xf32>)
  return
}

// -----

// Two dimensions for a scalar position.
func.func @f(%p: i32, %t: tensor<?x?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected a destination of rank 2, got 'tensor<?x?x8xf32>' (sinusoidal_c2)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> positions(%p : i32) outs(%t : tensor<?x?x8xf32>)
  return
}

// -----

// Sizes that disagree.
func.func @f(%p: tensor<5xi64>, %t: tensor<6x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op operand #1 has size 6 in dimension 0 where another operand has 5 (sinusoidal_c2)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> positions(%p : tensor<5xi64>) outs(%t : tensor<6x8xf32>)
  return
}

// -----

// The greatest size.
func.func @f(%p: tensor<?x9223372036854775807xi64>, %t: tensor<2x3x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op operand #1 has size 3 in dimension 1 where another operand has 9223372036854775807 (sinusoidal_c2)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> positions(%p : tensor<?x9223372036854775807xi64>) outs(%t : tensor<2x3x8xf32>)
  return
}

// -----

// Positions on a memref.
func.func @f(%p: memref<?xi64>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op mixes tensors and memrefs (sinusoidal_c3)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> positions(%p : memref<?xi64>) outs(%t : tensor<?x8xf32>)
  return
}

// -----

// A destination on a memref.
func.func @f(%p: tensor<?xi64>, %t: memref<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op mixes tensors and memrefs (sinusoidal_c3)}}
  posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>) outs(%t : memref<?x8xf32>)
  return
}

// -----

// No result.
func.func @f(%a0: tensor<?xi64>, %a1: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected one result for each tensor destination, of its type (sinusoidal_c3)}}
  "posenc.sinusoidal"(%a0, %a1) <{frequencies = #posenc.frequencies<dim = 8>, order = #posenc<order sin_cos>}>
    : (tensor<?xi64>, tensor<?x8xf32>) -> ()
  return
}

// -----

// Two results.
func.func @f(%a0: tensor<?xi64>, %a1: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected one result for each tensor destination, of its type (sinusoidal_c3)}}
  %r:2 = "posenc.sinusoidal"(%a0, %a1) <{frequencies = #posenc.frequencies<dim = 8>, order = #posenc<order sin_cos>}>
    : (tensor<?xi64>, tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>)
  return
}

// -----

// A result of another type.
func.func @f(%a0: tensor<?xi64>, %a1: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected one result for each tensor destination, of its type (sinusoidal_c3)}}
  %r = "posenc.sinusoidal"(%a0, %a1) <{frequencies = #posenc.frequencies<dim = 8>, order = #posenc<order sin_cos>}>
    : (tensor<?xi64>, tensor<?x8xf32>) -> tensor<5x8xf32>
  return
}

// -----

// A result for a memref.
func.func @f(%a0: i64, %a1: memref<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected one result for each tensor destination, of its type (sinusoidal_c3)}}
  %r = "posenc.sinusoidal"(%a0, %a1) <{frequencies = #posenc.frequencies<dim = 8>, order = #posenc<order sin_cos>}>
    : (i64, memref<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Real positions.
func.func @f(%p: tensor<?xf16>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op operand #0 must be ranked tensor of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or memref of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or 64-bit signless integer or 32-bit signless integer or index, but got 'tensor<?xf16>'}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> positions(%p : tensor<?xf16>) outs(%t : tensor<?x8xf32>)
  return
}

// -----

// A table of integers.
func.func @f(%p: tensor<?xi64>, %t: tensor<?x8xi64>) {
  // expected-error @+1 {{'posenc.sinusoidal' op operand #1 must be variadic of ranked tensor of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values or memref of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values, but got 'tensor<?x8xi64>'}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>) outs(%t : tensor<?x8xi64>)
  return
}

// -----

// An unranked table.
func.func @f(%p: tensor<?xi64>, %t: tensor<*xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op operand #1 must be variadic of ranked tensor of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values or memref of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values, but got 'tensor<*xf32>'}}
  posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>) outs(%t : tensor<*xf32>)
  return
}

// -----

// No order.
func.func @f(%a0: tensor<?xi64>, %a1: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op requires attribute 'order'}}
  %r = "posenc.sinusoidal"(%a0, %a1) <{frequencies = #posenc.frequencies<dim = 8>}>
    : (tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// A pairing for an order.
func.func @f(%a0: tensor<?xi64>, %a1: tensor<?x8xf32>) {
  // expected-error @+1 {{invalid properties {frequencies = #posenc.frequencies<dim = 8, base = 1.000000e+04>, order = #posenc<pairing interleaved>} for op posenc.sinusoidal: Invalid attribute `order` in property conversion: #posenc<pairing interleaved>}}
  %r = "posenc.sinusoidal"(%a0, %a1) <{frequencies = #posenc.frequencies<dim = 8>, order = #posenc<pairing interleaved>}>
    : (tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// No frequencies.
func.func @f(%a0: tensor<?xi64>, %a1: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op requires attribute 'frequencies'}}
  %r = "posenc.sinusoidal"(%a0, %a1) <{order = #posenc<order sin_cos>}>
    : (tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// No operand.
func.func @f() {
  // expected-error @+1 {{'posenc.sinusoidal' op expected 1 or more operands, but found 0}}
  "posenc.sinusoidal"() <{frequencies = #posenc.frequencies<dim = 8>, order = #posenc<order sin_cos>}>
    : () -> ()
  return
}

// -----

// An unknown order.
func.func @f(%p: tensor<?xi64>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{custom op 'posenc.sinusoidal' expected interleaved, sin_cos or cos_sin, got 'sin'}}
  %r = posenc.sinusoidal sin #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>) outs(%t : tensor<?x8xf32>)
  return
}

// -----

// An order of rope.
func.func @f(%p: tensor<?xi64>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{custom op 'posenc.sinusoidal' expected interleaved, sin_cos or cos_sin, got 'half'}}
  %r = posenc.sinusoidal half #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>) outs(%t : tensor<?x8xf32>)
  return
}

// -----

// No order.
func.func @f(%p: tensor<?xi64>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{custom op 'posenc.sinusoidal' expected valid keyword}}
  %r = posenc.sinusoidal #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>) outs(%t : tensor<?x8xf32>)
  return
}

// -----

// No frequencies.
func.func @f(%p: tensor<?xi64>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{expected '<'}}
  %r = posenc.sinusoidal sin_cos positions(%p : tensor<?xi64>) outs(%t : tensor<?x8xf32>)
  return
}

// -----

// A width of d with zero_pad.
func.func @f(%p: tensor<?xi64>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected a destination with a last dimension of 9, got 'tensor<?x8xf32>' (sinusoidal_c1)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> zero_pad positions(%p : tensor<?xi64>) outs(%t : tensor<?x8xf32>)
  return
}

// -----

// A width of d + 1 without zero_pad.
func.func @f(%p: tensor<?xi64>, %t: tensor<?x9xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected a destination with a last dimension of 8, got 'tensor<?x9xf32>' (sinusoidal_c1)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>) outs(%t : tensor<?x9xf32>)
  return
}

// -----

// A dimension of axes in the destination.
func.func @f(%p: tensor<2x?xi64>, %t: tensor<2x?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected a destination of rank 2, got 'tensor<2x?x8xf32>' (sinusoidal_c2)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> axes <axial, [2, 2]> positions(%p : tensor<2x?xi64>) outs(%t : tensor<2x?x8xf32>)
  return
}

// -----

// Positions of too few axes.
func.func @f(%p: tensor<2x?xi64>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected positions with a first dimension of 3 axes, got 'tensor<2x?xi64>' (sinusoidal_c4)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> axes <axial, [2, 1, 1]> positions(%p : tensor<2x?xi64>) outs(%t : tensor<?x8xf32>)
  return
}

// -----

// A scalar position with axes.
func.func @f(%p: i64, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected positions with a first dimension of 2 axes, got 'i64' (sinusoidal_c4)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> axes <axial, [2, 2]> positions(%p : i64) outs(%t : tensor<?x8xf32>)
  return
}

// -----

// Sections that do not add up.
func.func @f(%p: tensor<2x?xi64>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op sections add up to 5 pairs of 4 (sinusoidal_c4)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> axes <axial, [2, 3]> positions(%p : tensor<2x?xi64>) outs(%t : tensor<?x8xf32>)
  return
}

// -----

// Another layout.
func.func @f(%p: tensor<2x?xi64>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected axes with the layout axial, got contiguous (sinusoidal_c5)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> axes <contiguous, [2, 2]> positions(%p : tensor<2x?xi64>) outs(%t : tensor<?x8xf32>)
  return
}

// -----

// A frequency for each pair.
func.func @f(%p: tensor<2x?xi64>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected a scaling without a list of pairs, got #posenc.explicit<values = [1.000000e+00, 5.000000e-01, 2.500000e-01, 1.250000e-01]>; use one operation per axis (sinusoidal_c5)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8, scaling = #posenc.explicit<values = [1.0, 0.5, 0.25, 0.125]>> axes <axial, [2, 2]> positions(%p : tensor<2x?xi64>) outs(%t : tensor<?x8xf32>)
  return
}

// -----

// A padding position of a row with two positions.
func.func @f(%p: tensor<2x?xi64>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected no padding_position with axes, since a row has several positions (sinusoidal_c6)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> axes <axial, [2, 2]> padding_position = 0 positions(%p : tensor<2x?xi64>) outs(%t : tensor<?x8xf32>)
  return
}

// -----

// A shift that is too great for the pairs of an axis.
func.func @f(%p: tensor<2x?xi64>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected a shift below the number of pairs, 2, got 3.000000e+00 (geometric_c1)}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8, scaling = #posenc.geometric<shift = 3>> axes <axial, [2, 2]> positions(%p : tensor<2x?xi64>) outs(%t : tensor<?x8xf32>)
  return
}

// -----

// The forms in another sequence.
func.func @f(%p: tensor<?xi64>, %t: tensor<?x9xf32>) {
  // expected-error @+1 {{expected 'positions'}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> padding_position = 0 zero_pad positions(%p : tensor<?xi64>) outs(%t : tensor<?x9xf32>)
  return
}

// -----

// A padding position that is no integer.
func.func @f(%p: tensor<?xi64>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{floating point value not valid for specified type}}
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> padding_position = 1.5 positions(%p : tensor<?xi64>) outs(%t : tensor<?x8xf32>)
  return
}
