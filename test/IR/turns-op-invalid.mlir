//===- turns-op-invalid.mlir - errors of turns and of its users -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// Neither source.
func.func @f() {
  // expected-error @+1 {{expected either values, or both frequencies and length (turns_c1)}}
  %0:2 = "posenc.turns"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> (tensor<4xi64>, tensor<4xi64>)
  return
}

// -----

// Both sources.
func.func @f(%n: i64, %f: tensor<4xf32>) {
  // expected-error @+1 {{expected either values, or both frequencies and length (turns_c1)}}
  %0:2 = posenc.turns length(%n : i64) values(%f : tensor<4xf32>)
  return
}

// -----

// A length without frequencies.
func.func @f(%n: i64) {
  // expected-error @+1 {{expected either values, or both frequencies and length (turns_c1)}}
  %0:2 = posenc.turns length(%n : i64)
  return
}

// -----

// Frequencies that are constants.
func.func @f(%n: i64) {
  // expected-error @+1 {{'posenc.turns' op expected frequencies that depend on the length, got #posenc.frequencies<dim = 8, base = 1.000000e+04> (turns_c2)}}
  %0:2 = posenc.turns #posenc.frequencies<dim = 8> length(%n : i64)
  return
}

// -----

// A dynamic number of values.
func.func @f(%f: tensor<?xf32>) {
  // expected-error @+1 {{expected values of rank 1 and a static size between 1 and 32768, got 'tensor<?xf32>' (turns_c3)}}
  %0:2 = posenc.turns values(%f : tensor<?xf32>)
  return
}

// -----

// Values of rank 2.
func.func @f(%f: tensor<2x4xf32>) {
  // expected-error @+1 {{expected values of rank 1 and a static size between 1 and 32768, got 'tensor<2x4xf32>' (turns_c3)}}
  %0:2 = posenc.turns values(%f : tensor<2x4xf32>)
  return
}

// -----

// A length of another type.
func.func @f(%n: i32) {
  // expected-error @+1 {{must be 64-bit signless integer or 0D tensor of 64-bit signless integer values, but got 'i32'}}
  %0:2 = posenc.turns #posenc.frequencies<dim = 8, scaling = #posenc.dynamic<factor = 2, max_position = 4096>> length(%n : i32)
  return
}

// -----

// Frequencies by length without turns.
#f = #posenc.frequencies<dim = 8, scaling = #posenc.dynamic<factor = 2, max_position = 4096>>
func.func @f(%p: tensor<?xi64>, %t: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected turns, since the frequencies depend on the length (sincos_c6)}}
  %0:2 = posenc.sincos #f positions(%p : tensor<?xi64>) outs(%t, %t : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Turns of another number of pairs.
func.func @f(%h: tensor<3xi64>, %p: tensor<?xi64>, %x: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected two lists of turns with 4 elements, got ('tensor<3xi64>', 'tensor<3xi64>') (rope_c8)}}
  %0 = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<?x8xf32>) positions(%p : tensor<?xi64>) turns(%h, %h : tensor<3xi64>, tensor<3xi64>) dims = [0] outs(%x : tensor<?x8xf32>)
  return
}

// -----

// A single list.
func.func @f(%h: tensor<4xi64>, %p: tensor<?xi64>, %x: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected two lists of turns with 4 elements, got ('tensor<4xi64>') (rope_c8)}}
  %0 = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<?x8xf32>) positions(%p : tensor<?xi64>) turns(%h : tensor<4xi64>) dims = [0] outs(%x : tensor<?x8xf32>)
  return
}

// -----

// Turns without a rotation.
func.func @f(%h: tensor<4xi64>, %n: tensor<?xi64>, %k: tensor<?x?x2x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op turns without a rotation (kv_append_c11)}}
  %0:2 = posenc.kv_append ins(%k, %k : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>) lengths(%n : tensor<?xi64>) turns(%h, %h : tensor<4xi64>, tensor<4xi64>)
    outs(%k, %k : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>)
  return
}

// -----

// Rotations of different sizes.
func.func @f(%h: tensor<4xi64>, %k: tensor<?x?x2x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected two lists of turns with 2 elements, got ('tensor<4xi64>', 'tensor<4xi64>') (attn_c22)}}
  %0 = posenc.attention query_rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 8>> key_rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 4>>
    ins(%k, %k, %k : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>) turns(%h, %h : tensor<4xi64>, tensor<4xi64>)
    outs(%k : tensor<?x?x2x8xf32>)
  return
}

// -----

// A table of sinusoids has constant frequencies.
func.func @f(%p: tensor<?xi64>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected frequencies that do not depend on the length, got #posenc.frequencies<dim = 8, base = 1.000000e+04, scaling = #posenc.dynamic<factor = 2.000000e+00, max_position = 4.096000e+03>> (sinusoidal_c7)}}
  %0 = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8, scaling = #posenc.dynamic<factor = 2, max_position = 4096>> positions(%p : tensor<?xi64>) outs(%t : tensor<?x8xf32>)
  return
}
