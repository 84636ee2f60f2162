//===- sincos-invalid.mlir - violated constraints of sincos ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// One destination.
func.func @f(%p: tensor<?xi64>, %c: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected two destinations of the same shape and element type (sincos_c1)}}
  %r = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c : tensor<?x4xf32>)
  return
}

// -----

// Three destinations.
func.func @f(%p: tensor<?xi64>, %c: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected two destinations of the same shape and element type (sincos_c1)}}
  %r:3 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %c, %c : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// No destination.
func.func @f(%p: tensor<?xi64>) {
  // expected-error @+1 {{'posenc.sincos' op expected two destinations of the same shape and element type (sincos_c1)}}
  "posenc.sincos"(%p) <{frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<?xi64>) -> ()
  return
}

// -----

// Different element types.
func.func @f(%p: tensor<?xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf16>) {
  // expected-error @+1 {{'posenc.sincos' op expected two destinations of the same shape and element type (sincos_c1)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf16>)
  return
}

// -----

// Different shapes.
func.func @f(%p: tensor<?xi64>, %c: tensor<6x4xf32>, %s: tensor<5x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected two destinations of the same shape and element type (sincos_c1)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %s : tensor<6x4xf32>, tensor<5x4xf32>)
  return
}

// -----

// The second has a dynamic last dimension.
func.func @f(%p: tensor<?xi64>, %c: tensor<5x4xf32>, %s: tensor<5x?xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected destinations with a last dimension of 4, got 'tensor<5x?xf32>' (sincos_c2)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %s : tensor<5x4xf32>, tensor<5x?xf32>)
  return
}

// -----

// A tensor and a memref.
func.func @f(%p: tensor<?xi64>, %c: tensor<?x4xf32>, %s: memref<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op mixes tensors and memrefs (sincos_c5)}}
  %r = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %s : tensor<?x4xf32>, memref<?x4xf32>)
  return
}

// -----

// A last dimension of twice the number of pairs.
func.func @f(%p: tensor<?xi64>, %c: tensor<?x8xf32>, %s: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected destinations with a last dimension of 4, got 'tensor<?x8xf32>' (sincos_c2)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %s : tensor<?x8xf32>, tensor<?x8xf32>)
  return
}

// -----

// A dynamic last dimension.
func.func @f(%p: tensor<?xi64>, %c: tensor<?x?xf32>, %s: tensor<?x?xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected destinations with a last dimension of 4, got 'tensor<?x?xf32>' (sincos_c2)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %s : tensor<?x?xf32>, tensor<?x?xf32>)
  return
}

// -----

// An empty last dimension.
func.func @f(%p: tensor<?xi64>, %c: tensor<?x0xf32>, %s: tensor<?x0xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected destinations with a last dimension of 4, got 'tensor<?x0xf32>' (sincos_c2)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %s : tensor<?x0xf32>, tensor<?x0xf32>)
  return
}

// -----

// No dimension.
func.func @f(%p: tensor<i64>, %c: tensor<f32>, %s: tensor<f32>) {
  // expected-error @+1 {{'posenc.sincos' op expected destinations with a last dimension of 4, got 'tensor<f32>' (sincos_c2)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<i64>)
    outs(%c, %s : tensor<f32>, tensor<f32>)
  return
}

// -----

// Tables of one row for many positions.
func.func @f(%p: tensor<?xi64>, %c: tensor<4xf32>, %s: tensor<4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected destinations of rank 2, got 'tensor<4xf32>' (sincos_c3)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %s : tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Tables of more dimensions than the positions.
func.func @f(%p: tensor<?xi64>, %c: tensor<?x?x4xf32>, %s: tensor<?x?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected destinations of rank 2, got 'tensor<?x?x4xf32>' (sincos_c3)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %s : tensor<?x?x4xf32>, tensor<?x?x4xf32>)
  return
}

// -----

// A row for a scalar position.
func.func @f(%p: i64, %c: tensor<4xf32>, %s: tensor<4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected destinations of rank 2, got 'tensor<4xf32>' (sincos_c3)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : i64)
    outs(%c, %s : tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Two dimensions for a scalar position.
func.func @f(%p: index, %c: tensor<2x3x4xf32>, %s: tensor<2x3x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected destinations of rank 2, got 'tensor<2x3x4xf32>' (sincos_c3)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : index)
    outs(%c, %s : tensor<2x3x4xf32>, tensor<2x3x4xf32>)
  return
}

// -----

// Sizes that disagree.
func.func @f(%p: tensor<5xi64>, %c: tensor<6x4xf32>, %s: tensor<6x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #1 has size 6 in dimension 0 where another operand has 5 (sincos_c3)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<5xi64>)
    outs(%c, %s : tensor<6x4xf32>, tensor<6x4xf32>)
  return
}

// -----

// Sizes that disagree in the second dimension.
func.func @f(%p: tensor<?x5xi64>, %c: tensor<7x6x4xf32>, %s: tensor<7x6x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #1 has size 6 in dimension 1 where another operand has 5 (sincos_c3)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?x5xi64>)
    outs(%c, %s : tensor<7x6x4xf32>, tensor<7x6x4xf32>)
  return
}

// -----

// Sizes that disagree after the dimension of axes.
func.func @f(%p: tensor<2x5xi64>, %c: tensor<6x4xf32>, %s: tensor<6x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #1 has size 6 in dimension 0 where another operand has 5 (sincos_c3)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> axes #posenc.axes<axial, [2, 2]> positions(%p : tensor<2x5xi64>)
    outs(%c, %s : tensor<6x4xf32>, tensor<6x4xf32>)
  return
}

// -----

// The greatest size.
func.func @f(%p: tensor<9223372036854775807xi64>, %c: tensor<1x4xf32>, %s: tensor<1x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #1 has size 1 in dimension 0 where another operand has 9223372036854775807 (sincos_c3)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<9223372036854775807xi64>)
    outs(%c, %s : tensor<1x4xf32>, tensor<1x4xf32>)
  return
}

// -----

// A scalar position for two axes.
func.func @f(%p: i64, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected positions with a first dimension of 2 axes, got 'i64' (sincos_c4)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> axes #posenc.axes<axial, [2, 2]> positions(%p : i64)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// One position for two axes.
func.func @f(%p: tensor<i64>, %c: tensor<4xf32>, %s: tensor<4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected positions with a first dimension of 2 axes, got 'tensor<i64>' (sincos_c4)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> axes #posenc.axes<axial, [2, 2]> positions(%p : tensor<i64>)
    outs(%c, %s : tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Positions of three axes.
func.func @f(%p: tensor<3x?xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected positions with a first dimension of 2 axes, got 'tensor<3x?xi64>' (sincos_c4)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> axes #posenc.axes<axial, [2, 2]> positions(%p : tensor<3x?xi64>)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Positions of an unknown number of axes.
func.func @f(%p: tensor<?x?xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected positions with a first dimension of 2 axes, got 'tensor<?x?xi64>' (sincos_c4)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> axes #posenc.axes<axial, [2, 2]> positions(%p : tensor<?x?xi64>)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Too few pairs.
func.func @f(%p: tensor<2x?xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op sections add up to 3 pairs of 4 (sincos_c4)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> axes #posenc.axes<axial, [2, 1]> positions(%p : tensor<2x?xi64>)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Too many pairs.
func.func @f(%p: tensor<8x?xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op sections add up to 262144 pairs of 4 (sincos_c4)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> axes #posenc.axes<axial, [32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768]> positions(%p : tensor<8x?xi64>)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Positions on a memref, destinations on tensors.
func.func @f(%p: memref<?xi64>, %c: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op mixes tensors and memrefs (sincos_c5)}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : memref<?xi64>)
    outs(%c, %c : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Positions on a tensor, destinations on memrefs.
func.func @f(%p: tensor<?xi64>, %c: memref<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op mixes tensors and memrefs (sincos_c5)}}
  posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %c : memref<?x4xf32>, memref<?x4xf32>)
  return
}

// -----

// Too few results.
func.func @f(%p: i64, %c: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected one result for each tensor destination, of its type (sincos_c5)}}
  %r = "posenc.sincos"(%p, %c, %c) <{frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 0, 2>}> : (i64, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

// No result.
func.func @f(%p: i64, %c: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected one result for each tensor destination, of its type (sincos_c5)}}
  "posenc.sincos"(%p, %c, %c) <{frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 0, 2>}> : (i64, tensor<?x4xf32>, tensor<?x4xf32>) -> ()
  return
}

// -----

// Too many results.
func.func @f(%p: i64, %c: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected one result for each tensor destination, of its type (sincos_c5)}}
  %r:3 = "posenc.sincos"(%p, %c, %c) <{frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 0, 2>}> : (i64, tensor<?x4xf32>, tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// A result of another type.
func.func @f(%p: i64, %c: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected one result for each tensor destination, of its type (sincos_c5)}}
  %r:2 = "posenc.sincos"(%p, %c, %c) <{frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 0, 2>}> : (i64, tensor<?x4xf32>, tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<5x4xf32>)
  return
}

// -----

// A result for a memref.
func.func @f(%p: i64, %c: memref<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected one result for each tensor destination, of its type (sincos_c5)}}
  %r:2 = "posenc.sincos"(%p, %c, %c) <{frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 0, 2>}> : (i64, memref<?x4xf32>, memref<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Frequencies that do not verify.
func.func @f(%p: i64, %c: tensor<?x4xf32>) {
  // expected-error @+1 {{expected an even rotary dimension between 2 and 65536, got 7 (frequencies_c1)}}
  %r:2 = "posenc.sincos"(%p, %c, %c) <{frequencies = #posenc.frequencies<dim = 7>, operandSegmentSizes = array<i32: 1, 0, 2>}> : (i64, tensor<?x4xf32>, tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>)
  return
}
