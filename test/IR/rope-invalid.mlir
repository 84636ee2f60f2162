//===- rope-invalid.mlir - errors of rope ---------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// No input.
func.func @f(%a0: tensor<?xi64>) {
  // expected-error @+1 {{'posenc.rope' op expected between 1 and 16 inputs and as many destinations, got 0 and 0 (rope_c1)}}
  "posenc.rope"(%a0) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 0, 1, 0>}>
    : (tensor<?xi64>) -> ()
  return
}

// -----

// No destination.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>) {
  // expected-error @+1 {{'posenc.rope' op expected between 1 and 16 inputs and as many destinations, got 1 and 0 (rope_c1)}}
  "posenc.rope"(%a0, %a1) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 1, 0>}>
    : (tensor<?x8xf32>, tensor<?xi64>) -> ()
  return
}

// -----

// Two inputs, one destination.
func.func @f(%x0: tensor<?x8xf32>, %x1: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected between 1 and 16 inputs and as many destinations, got 2 and 1 (rope_c1)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0, %x1 : tensor<?x8xf32>, tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Seventeen inputs.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected between 1 and 16 inputs and as many destinations, got 17 and 17 (rope_c1)}}
  %r:17 = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
  return
}

// -----

// Inputs of different element types.
func.func @f(%x0: tensor<?x8xf32>, %x1: tensor<?x8xf16>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>, %o1: tensor<?x8xf16>) {
  // expected-error @+1 {{'posenc.rope' op expected one element type, and the shape of each input for its destination, got 'tensor<?x8xf16>' and 'tensor<?x8xf16>' (rope_c1)}}
  %r:2 = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0, %x1 : tensor<?x8xf32>, tensor<?x8xf16>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%o0, %o1 : tensor<?x8xf32>, tensor<?x8xf16>)
  return
}

// -----

// A destination of another element type.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf16>) {
  // expected-error @+1 {{'posenc.rope' op expected one element type, and the shape of each input for its destination, got 'tensor<?x8xf32>' and 'tensor<?x8xf16>' (rope_c1)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%o0 : tensor<?x8xf16>)
  return
}

// -----

// A destination of another rank.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected one element type, and the shape of each input for its destination, got 'tensor<?x8xf32>' and 'tensor<?x?x8xf32>' (rope_c1)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%o0 : tensor<?x?x8xf32>)
  return
}

// -----

// A destination of another size.
func.func @f(%x0: tensor<5x8xf32>, %p: tensor<?xi64>, %o0: tensor<6x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected one element type, and the shape of each input for its destination, got 'tensor<5x8xf32>' and 'tensor<6x8xf32>' (rope_c1)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<5x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%o0 : tensor<6x8xf32>)
  return
}

// -----

// One dimension.
func.func @f(%x0: tensor<8xf32>, %p: tensor<i64>, %o0: tensor<8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected a rank between 2 and 64 and a static last dimension, got 'tensor<8xf32>' (rope_c2)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<8xf32>)
    positions(%p : tensor<i64>) dims = []
    outs(%o0 : tensor<8xf32>)
  return
}

// -----

// No dimension.
func.func @f(%x0: tensor<f32>, %p: tensor<i64>, %o0: tensor<f32>) {
  // expected-error @+1 {{'posenc.rope' op expected a rank between 2 and 64 and a static last dimension, got 'tensor<f32>' (rope_c2)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<f32>)
    positions(%p : tensor<i64>) dims = []
    outs(%o0 : tensor<f32>)
  return
}

// -----

// A dynamic last dimension.
func.func @f(%x0: tensor<?x?xf32>, %p: tensor<?xi64>, %o0: tensor<?x?xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected a rank between 2 and 64 and a static last dimension, got 'tensor<?x?xf32>' (rope_c2)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x?xf32>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%o0 : tensor<?x?xf32>)
  return
}

// -----

// A destination with a dynamic last dimension.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x?xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected a rank between 2 and 64 and a static last dimension, got 'tensor<?x?xf32>' (rope_c2)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%o0 : tensor<?x?xf32>)
  return
}

// -----

// 65 dimensions.
func.func @f(%x0: tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x8xf32>, %p: tensor<1xi64>, %o0: tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected a rank between 2 and 64 and a static last dimension, got 'tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x8xf32>' (rope_c2)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x8xf32>)
    positions(%p : tensor<1xi64>) dims = [0]
    outs(%o0 : tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x8xf32>)
  return
}

// -----

// Too few dims.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected 1 entries of dims, got 0 (rope_c3)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = []
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Too many dims.
func.func @f(%x0: tensor<?x?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected 1 entries of dims, got 2 (rope_c3)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0, 1]
    outs(%o0 : tensor<?x?x8xf32>)
  return
}

// -----

// No dimension for a scalar position.
func.func @f(%x0: tensor<?x8xf32>, %p: i64, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected 1 entries of dims, got 0 (rope_c3)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : i64) dims = []
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Two dimensions for a scalar position.
func.func @f(%x0: tensor<?x?x8xf32>, %p: index, %o0: tensor<?x?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected 1 entries of dims, got 2 (rope_c3)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x?x8xf32>)
    positions(%p : index) dims = [0, 1]
    outs(%o0 : tensor<?x?x8xf32>)
  return
}

// -----

// A dimension for the axes.
func.func @f(%x0: tensor<2x?x8xf32>, %p: tensor<2x?xi64>, %o0: tensor<2x?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected 1 entries of dims, got 2 (rope_c3)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8> axes #posenc.axes<axial, [2, 2]>
    ins(%x0 : tensor<2x?x8xf32>)
    positions(%p : tensor<2x?xi64>) dims = [0, 1]
    outs(%o0 : tensor<2x?x8xf32>)
  return
}

// -----

// The last dimension.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected different dims in [0, 1), got 1 (rope_c3)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [1]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A dimension that does not exist.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected different dims in [0, 1), got 2 (rope_c3)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [2]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A dimension that the second tensor does not have.
func.func @f(%x0: tensor<?x?x8xf32>, %x1: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x?x8xf32>, %o1: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected different dims in [0, 1), got 1 (rope_c3)}}
  %r:2 = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0, %x1 : tensor<?x?x8xf32>, tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [1]
    outs(%o0, %o1 : tensor<?x?x8xf32>, tensor<?x8xf32>)
  return
}

// -----

// A negative dimension.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected different dims in [0, 1), got -1 (rope_c3)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [-1]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A dimension twice.
func.func @f(%x0: tensor<?x?x8xf32>, %p: tensor<?x?xi64>, %o0: tensor<?x?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected different dims in [0, 2), got 1 (rope_c3)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x?x8xf32>)
    positions(%p : tensor<?x?xi64>) dims = [1, 1]
    outs(%o0 : tensor<?x?x8xf32>)
  return
}

// -----

// The greatest number.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected different dims in [0, 1), got 9223372036854775807 (rope_c3)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [9223372036854775807]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// The least number.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected different dims in [0, 1), got -9223372036854775808 (rope_c3)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [-9223372036854775808]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A window wider than the dimension.
func.func @f(%x0: tensor<?x6xf32>, %p: tensor<?xi64>, %o0: tensor<?x6xf32>) {
  // expected-error @+1 {{'posenc.rope' op rotary window of 8 lanes at offset 0 leaves the last dimension of 6 (rope_c4)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x6xf32>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%o0 : tensor<?x6xf32>)
  return
}

// -----

// A window that leaves the dimension.
func.func @f(%x0: tensor<?x9xf32>, %p: tensor<?xi64>, %o0: tensor<?x9xf32>) {
  // expected-error @+1 {{'posenc.rope' op rotary window of 8 lanes at offset 2 leaves the last dimension of 9 (rope_c4)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x9xf32>)
    positions(%p : tensor<?xi64>) dims = [0] offset = 2
    outs(%o0 : tensor<?x9xf32>)
  return
}

// -----

// A window before the dimension.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op rotary window of 8 lanes at offset -1 leaves the last dimension of 8 (rope_c4)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0] offset = -1
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A window whose end is no 64-bit number.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op rotary window of 8 lanes at offset 9223372036854775807 leaves the last dimension of 8 (rope_c4)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0] offset = 9223372036854775807
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// The least offset.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op rotary window of 8 lanes at offset -9223372036854775808 leaves the last dimension of 8 (rope_c4)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0] offset = -9223372036854775808
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A window that leaves the second tensor.
func.func @f(%x0: tensor<?x8xf32>, %x1: tensor<?x7xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>, %o1: tensor<?x7xf32>) {
  // expected-error @+1 {{'posenc.rope' op rotary window of 8 lanes at offset 0 leaves the last dimension of 7 (rope_c4)}}
  %r:2 = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0, %x1 : tensor<?x8xf32>, tensor<?x7xf32>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%o0, %o1 : tensor<?x8xf32>, tensor<?x7xf32>)
  return
}

// -----

// Positions of another size.
func.func @f(%x0: tensor<5x8xf32>, %p: tensor<6xi64>, %o0: tensor<5x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op operand #1 has size 6 in dimension 0 where another operand has 5 (rope_c5)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<5x8xf32>)
    positions(%p : tensor<6xi64>) dims = [0]
    outs(%o0 : tensor<5x8xf32>)
  return
}

// -----

// Positions of another size than the second dimension.
func.func @f(%x0: tensor<6x5x8xf32>, %p: tensor<6xi64>, %o0: tensor<6x5x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op operand #1 has size 6 in dimension 0 where another operand has 5 (rope_c5)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<6x5x8xf32>)
    positions(%p : tensor<6xi64>) dims = [1]
    outs(%o0 : tensor<6x5x8xf32>)
  return
}

// -----

// Positions of another size behind the axes.
func.func @f(%x0: tensor<5x8xf32>, %p: tensor<2x6xi64>, %o0: tensor<5x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op operand #1 has size 6 in dimension 1 where another operand has 5 (rope_c5)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8> axes #posenc.axes<axial, [2, 2]>
    ins(%x0 : tensor<5x8xf32>)
    positions(%p : tensor<2x6xi64>) dims = [0]
    outs(%o0 : tensor<5x8xf32>)
  return
}

// -----

// Tensors of different sizes.
func.func @f(%x0: tensor<5x8xf32>, %x1: tensor<6x8xf32>, %p: tensor<?xi64>, %o0: tensor<5x8xf32>, %o1: tensor<6x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op operand #1 has size 6 in dimension 0 where another operand has 5 (rope_c5)}}
  %r:2 = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0, %x1 : tensor<5x8xf32>, tensor<6x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%o0, %o1 : tensor<5x8xf32>, tensor<6x8xf32>)
  return
}

// -----

// Tensors of different sizes at a scalar position.
func.func @f(%x0: tensor<5x8xf32>, %x1: tensor<6x8xf32>, %p: i64, %o0: tensor<5x8xf32>, %o1: tensor<6x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op operand #1 has size 6 in dimension 0 where another operand has 5 (rope_c5)}}
  %r:2 = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0, %x1 : tensor<5x8xf32>, tensor<6x8xf32>)
    positions(%p : i64) dims = [0]
    outs(%o0, %o1 : tensor<5x8xf32>, tensor<6x8xf32>)
  return
}

// -----

// The greatest size.
func.func @f(%x0: tensor<9223372036854775807x8xf32>, %p: tensor<1xi64>, %o0: tensor<9223372036854775807x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op operand #1 has size 1 in dimension 0 where another operand has 9223372036854775807 (rope_c5)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<9223372036854775807x8xf32>)
    positions(%p : tensor<1xi64>) dims = [0]
    outs(%o0 : tensor<9223372036854775807x8xf32>)
  return
}

// -----

// A scalar position for two axes.
func.func @f(%x0: tensor<?x8xf32>, %p: i64, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected positions with a first dimension of 2 axes, got 'i64' (rope_c6)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8> axes #posenc.axes<axial, [2, 2]>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : i64) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// One position for two axes.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<i64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected positions with a first dimension of 2 axes, got 'tensor<i64>' (rope_c6)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8> axes #posenc.axes<axial, [2, 2]>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<i64>) dims = []
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Positions of three axes.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<3x?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected positions with a first dimension of 2 axes, got 'tensor<3x?xi64>' (rope_c6)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8> axes #posenc.axes<axial, [2, 2]>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<3x?xi64>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Positions of an unknown number of axes.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?x?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected positions with a first dimension of 2 axes, got 'tensor<?x?xi64>' (rope_c6)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8> axes #posenc.axes<axial, [2, 2]>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?x?xi64>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Too few pairs.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<2x?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op sections add up to 3 pairs of 4 (rope_c6)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8> axes #posenc.axes<interleaved, [2, 1]>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<2x?xi64>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Too many pairs.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<2x?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op sections add up to 5 pairs of 4 (rope_c6)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8> axes #posenc.axes<contiguous, [2, 3]>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<2x?xi64>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Positions on a memref.
func.func @f(%x0: tensor<?x8xf32>, %p: memref<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op mixes tensors and memrefs (rope_c7)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : memref<?xi64>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// An input on a memref.
func.func @f(%x0: memref<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op mixes tensors and memrefs (rope_c7)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : memref<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A destination on a memref.
func.func @f(%x0: tensor<?x8xf32>, %p: i64, %o0: memref<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op mixes tensors and memrefs (rope_c7)}}
  posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : i64) dims = [0]
    outs(%o0 : memref<?x8xf32>)
  return
}

// -----

// One pair of tensors, one of memrefs.
func.func @f(%x0: tensor<?x8xf32>, %x1: memref<?x8xf32>, %p: i64, %o0: tensor<?x8xf32>, %o1: memref<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op mixes tensors and memrefs (rope_c7)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0, %x1 : tensor<?x8xf32>, memref<?x8xf32>)
    positions(%p : i64) dims = [0]
    outs(%o0, %o1 : tensor<?x8xf32>, memref<?x8xf32>)
  return
}

// -----

// No result.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected one result for each tensor destination, of its type (rope_c7)}}
  "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> ()
  return
}

// -----

// Two results.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected one result for each tensor destination, of its type (rope_c7)}}
  %r:2 = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>)
  return
}

// -----

// A result of another type.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected one result for each tensor destination, of its type (rope_c7)}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<5x8xf32>
  return
}

// -----

// A result for a memref.
func.func @f(%a0: memref<?x8xf32>, %a1: i64, %a2: memref<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected one result for each tensor destination, of its type (rope_c7)}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 1, 1>}>
    : (memref<?x8xf32>, i64, memref<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// A tensor of integers.
func.func @f(%x0: tensor<?x8xi64>, %p: tensor<?xi64>, %o0: tensor<?x8xi64>) {
  // expected-error @+1 {{'posenc.rope' op operand #0 must be variadic of ranked tensor of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values or memref of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values, but got 'tensor<?x8xi64>'}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xi64>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%o0 : tensor<?x8xi64>)
  return
}

// -----

// Real positions.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op operand #1 must be ranked tensor of 64-bit signless integer or 32-bit signless integer or index values or memref of 64-bit signless integer or 32-bit signless integer or index values or 64-bit signless integer or 32-bit signless integer or index, but got 'tensor<?xf32>'}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xf32>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// An unranked tensor of positions.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<*xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op operand #1 must be ranked tensor of 64-bit signless integer or 32-bit signless integer or index values or memref of 64-bit signless integer or 32-bit signless integer or index values or 64-bit signless integer or 32-bit signless integer or index, but got 'tensor<*xi64>'}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<*xi64>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A position of 16 bits.
func.func @f(%x0: tensor<?x8xf32>, %p: i16, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op operand #1 must be ranked tensor of 64-bit signless integer or 32-bit signless integer or index values or memref of 64-bit signless integer or 32-bit signless integer or index values or 64-bit signless integer or 32-bit signless integer or index, but got 'i16'}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : i16) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A negative segment.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op 'operandSegmentSizes' attribute cannot have negative elements}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: -1, 1, 3>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Segments that do not add up.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op operand count (3) does not match with the total size (2) specified in attribute 'operandSegmentSizes'}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 1, 0>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Two positions.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?xi64>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected one operand of positions, got 2}}
  %r = "posenc.rope"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 2, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// No positions: what follows them is none.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected one operand of positions, got 0}}
  %r = "posenc.rope"(%a0, %a1) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 0, 1>}>
    : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Inputs alone.
func.func @f(%a0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected one operand of positions, got 0}}
  "posenc.rope"(%a0) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 0, 0>}>
    : (tensor<?x8xf32>) -> ()
  return
}

// -----

// No segments.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op operand count (3) does not match with the total size (0) specified in attribute 'operandSegmentSizes'}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// No frequencies.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op requires attribute 'frequencies'}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// No dims.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op requires attribute 'dims'}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{frequencies = #posenc.frequencies<dim = 8>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// No pairing.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op requires attribute 'pairing'}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{frequencies = #posenc.frequencies<dim = 8>, dims = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// A number for a pairing.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{invalid properties {dims = array<i64: 0>, frequencies = #posenc.frequencies<dim = 8, base = 1.000000e+04>, operandSegmentSizes = array<i32: 1, 1, 1>, pairing = 0 : i32} for op posenc.rope: Invalid attribute `pairing` in property conversion: 0 : i32}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{frequencies = #posenc.frequencies<dim = 8>, dims = array<i64: 0>, pairing = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// dims as an array of attributes.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{invalid properties {dims = [0], frequencies = #posenc.frequencies<dim = 8, base = 1.000000e+04>, operandSegmentSizes = array<i32: 1, 1, 1>, pairing = #posenc<pairing half>} for op posenc.rope: Invalid attribute `dims` in property conversion: [0]}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{frequencies = #posenc.frequencies<dim = 8>, dims = [0], pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// A real offset.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{invalid properties {dims = array<i64: 0>, frequencies = #posenc.frequencies<dim = 8, base = 1.000000e+04>, offset = 0.000000e+00 : f64, operandSegmentSizes = array<i32: 1, 1, 1>, pairing = #posenc<pairing half>} for op posenc.rope: Invalid attribute `offset` in property conversion: 0.000000e+00 : f64}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, offset = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Frequencies with a base of 32 bits.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{expected '>'}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8, base = 1.0 : f32>, operandSegmentSizes = array<i32: 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Frequencies that are a string.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{invalid properties {dims = array<i64: 0>, frequencies = "yarn", operandSegmentSizes = array<i32: 1, 1, 1>, pairing = #posenc<pairing half>} for op posenc.rope: Invalid attribute `frequencies` in property conversion: "yarn"}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = "yarn", operandSegmentSizes = array<i32: 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Axes that are a list.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<2x?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{invalid properties {axes = [2, 2], dims = array<i64: 0>, frequencies = #posenc.frequencies<dim = 8, base = 1.000000e+04>, operandSegmentSizes = array<i32: 1, 1, 1>, pairing = #posenc<pairing half>} for op posenc.rope: Invalid attribute `axes` in property conversion: [2, 2]}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, axes = [2, 2], operandSegmentSizes = array<i32: 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<2x?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// A pairing that does not exist.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{custom op 'posenc.rope' expected half or interleaved, got 'quarter'}}
  %r = posenc.rope quarter #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Frequencies before the pairing.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{custom op 'posenc.rope' expected valid keyword}}
  %r = posenc.rope #posenc.frequencies<dim = 8> half
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// No positions.
func.func @f(%x: tensor<?x8xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    // expected-error @+1 {{custom op 'posenc.rope' expected 'positions'}}
    ins(%x : tensor<?x8xf32>) dims = [0] outs(%x : tensor<?x8xf32>)
  return
}

// -----

// No inputs in the list.
func.func @f(%x: tensor<?x8xf32>, %p: i64) {
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    // expected-error @+1 {{expected non-function type}}
    ins( : ) positions(%p : i64) dims = [0] outs(%x : tensor<?x8xf32>)
  return
}

// -----

// No dims.
func.func @f(%x: tensor<?x8xf32>, %p: i64) {
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    // expected-error @+1 {{custom op 'posenc.rope' expected 'dims'}}
    ins(%x : tensor<?x8xf32>) positions(%p : i64) outs(%x : tensor<?x8xf32>)
  return
}

// -----

// offset before dims.
func.func @f(%x: tensor<?x8xf32>, %p: i64) {
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    // expected-error @+1 {{custom op 'posenc.rope' expected 'dims'}}
    ins(%x : tensor<?x8xf32>) positions(%p : i64) offset = 0 dims = [0] outs(%x : tensor<?x8xf32>)
  return
}

// -----

// Axes that do not verify.
func.func @f(%x: tensor<?x8xf32>, %p: tensor<1x?xi64>) {
  // expected-error @+1 {{custom op 'posenc.rope' expected between 2 and 8 sections, got 1 (axes_c1)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8> axes <axial, [4]>
    ins(%x : tensor<?x8xf32>) positions(%p : tensor<1x?xi64>) dims = [0] outs(%x : tensor<?x8xf32>)
  return
}

// -----

// The number of results is that of the destinations.
func.func @f(%x: tensor<?x8xf32>, %p: i64) {
  // expected-error @+1 {{operation defines 1 results but was provided 2 to bind}}
  %r:2 = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x : tensor<?x8xf32>) positions(%p : i64) dims = [0] outs(%x : tensor<?x8xf32>)
  return
}
