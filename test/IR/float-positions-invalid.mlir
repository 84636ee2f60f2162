//===- float-positions-invalid.mlir - positions and angles of floats ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --split-input-file --verify-diagnostics

// A scalar, to which the row index would be added.
func.func @f(%p: f32, %t: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #0 must be}}
  %0:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : f32) outs(%t, %t : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

func.func @f(%p: tensor<?xf16>, %t: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #0 must be}}
  %0:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xf16>) outs(%t, %t : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Frequencies at run time have no whole turns.
func.func @f(%h: tensor<4xi64>, %p: tensor<?xf32>, %t: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected positions that are integers, since the frequencies are computed at run time, got 'tensor<?xf32>' (sincos_c6)}}
  %0:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xf32>) turns(%h, %h : tensor<4xi64>, tensor<4xi64>) outs(%t, %t : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

func.func @f(%h: tensor<4xi64>, %p: tensor<?xf64>, %x: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected positions that are integers, since the frequencies are computed at run time, got 'tensor<?xf64>' (rope_c8)}}
  %0 = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<?x8xf32>) positions(%p : tensor<?xf64>) turns(%h, %h : tensor<4xi64>, tensor<4xi64>) dims = [0] outs(%x : tensor<?x8xf32>)
  return
}

// -----

func.func @f(%h: tensor<4xi64>, %p: tensor<?x?xf32>, %k: tensor<?x?x2x8xf32>) {
  // expected-error @+1 {{'posenc.attention' op expected positions that are integers, since the frequencies are computed at run time, got 'tensor<?x?xf32>' (attn_c22)}}
  %0 = posenc.attention key_rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 8>>
    ins(%k, %k, %k : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>) key_positions(%p : tensor<?x?xf32>) turns(%h, %h : tensor<4xi64>, tensor<4xi64>)
    outs(%k : tensor<?x?x2x8xf32>)
  return
}

// -----

func.func @f(%h: tensor<4xi64>, %n: tensor<?xi64>, %p: tensor<?x?xf32>, %k: tensor<?x?x2x8xf32>) {
  // expected-error @+1 {{'posenc.kv_append' op expected positions that are integers, since the frequencies are computed at run time, got 'tensor<?x?xf32>' (kv_append_c11)}}
  %0:2 = posenc.kv_append rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 8>> ins(%k, %k : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>) lengths(%n : tensor<?xi64>) positions(%p : tensor<?x?xf32>) turns(%h, %h : tensor<4xi64>, tensor<4xi64>)
    outs(%k, %k : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>)
  return
}

// -----

// The frequencies of turns are not rounded.
func.func @f(%h: tensor<4xi64>, %p: tensor<?xi64>, %t: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected exact frequencies with turns, got #posenc.frequencies<dim = 8, base = 1.000000e+04, precision = hf_f32> (sincos_c6)}}
  %0:2 = posenc.sincos #posenc.frequencies<dim = 8, precision = hf_f32> positions(%p : tensor<?xi64>) turns(%h, %h : tensor<4xi64>, tensor<4xi64>) outs(%t, %t : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

func.func @f(%p: tensor<?xf32>, %t: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sinusoidal' op expected no padding_position, since positions are floats, got 'tensor<?xf32>' (sinusoidal_c6)}}
  %0 = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> padding_position = 1 positions(%p : tensor<?xf32>) outs(%t : tensor<?x8xf32>)
  return
}

// -----

// expected-error @+1 {{expected a scaling of transformers, with a length if it depends on one, for the precision hf_f32, got #posenc.ntk<factor = 2.000000e+00> (frequencies_c5)}}
#f = #posenc.frequencies<dim = 8, scaling = #posenc.ntk<factor = 2>, precision = hf_f32>

// -----

// expected-error @+1 {{(frequencies_c5)}}
#f = #posenc.frequencies<dim = 8, scaling = #posenc.dynamic<factor = 2, max_position = 4096>, precision = hf_f32>

// -----

// expected-error @+1 {{(frequencies_c5)}}
#f = #posenc.frequencies<dim = 8, scaling = #posenc.yarn<factor = 2, original_max_position = 4096, ext_factor = 0.5>, precision = hf_f32>

// -----

// expected-error @+1 {{(frequencies_c5)}}
#f = #posenc.frequencies<dim = 8, scaling = #posenc.geometric<shift = 1>, precision = hf_f32>

// -----

// expected-error @+1 {{expected one of [exact, hf_f32] for how angles are computed, got: f32}}
#f = #posenc.frequencies<dim = 8, precision = f32>
