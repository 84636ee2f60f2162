//===- rope-invalid.mlir - violated constraints of rope -------------------===//
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
  "posenc.rope"(%a0) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 0, 1, 0, 0>}>
    : (tensor<?xi64>) -> ()
  return
}

// -----

// No destination.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>) {
  // expected-error @+1 {{'posenc.rope' op expected between 1 and 16 inputs and as many destinations, got 1 and 0 (rope_c1)}}
  "posenc.rope"(%a0, %a1) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 1, 0, 0>}>
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
  // expected-error @+1 {{'posenc.rope' op expected 1 elements of dims, got 0 (rope_c3)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = []
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Too many dims.
func.func @f(%x0: tensor<?x?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected 1 elements of dims, got 2 (rope_c3)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0, 1]
    outs(%o0 : tensor<?x?x8xf32>)
  return
}

// -----

// No dimension for a scalar position.
func.func @f(%x0: tensor<?x8xf32>, %p: i64, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected 1 elements of dims, got 0 (rope_c3)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : i64) dims = []
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Two dimensions for a scalar position.
func.func @f(%x0: tensor<?x?x8xf32>, %p: index, %o0: tensor<?x?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected 1 elements of dims, got 2 (rope_c3)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x?x8xf32>)
    positions(%p : index) dims = [0, 1]
    outs(%o0 : tensor<?x?x8xf32>)
  return
}

// -----

// A dimension for the axes.
func.func @f(%x0: tensor<2x?x8xf32>, %p: tensor<2x?xi64>, %o0: tensor<2x?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected 1 elements of dims, got 2 (rope_c3)}}
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

// A dimension out of range.
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
  // expected-error @+1 {{'posenc.rope' op rotary window of 8 lanes at offset 0 is not within the last dimension of 6 (rope_c4)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x6xf32>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%o0 : tensor<?x6xf32>)
  return
}

// -----

// A window that exceeds the dimension.
func.func @f(%x0: tensor<?x9xf32>, %p: tensor<?xi64>, %o0: tensor<?x9xf32>) {
  // expected-error @+1 {{'posenc.rope' op rotary window of 8 lanes at offset 2 is not within the last dimension of 9 (rope_c4)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x9xf32>)
    positions(%p : tensor<?xi64>) dims = [0] offset = 2
    outs(%o0 : tensor<?x9xf32>)
  return
}

// -----

// A window before the dimension.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op rotary window of 8 lanes at offset -1 is not within the last dimension of 8 (rope_c4)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0] offset = -1
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A window whose end overflows 64 bits.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op rotary window of 8 lanes at offset 9223372036854775807 is not within the last dimension of 8 (rope_c4)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0] offset = 9223372036854775807
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// The least offset.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op rotary window of 8 lanes at offset -9223372036854775808 is not within the last dimension of 8 (rope_c4)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xi64>) dims = [0] offset = -9223372036854775808
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A window that exceeds the second tensor.
func.func @f(%x0: tensor<?x8xf32>, %x1: tensor<?x7xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>, %o1: tensor<?x7xf32>) {
  // expected-error @+1 {{'posenc.rope' op rotary window of 8 lanes at offset 0 is not within the last dimension of 7 (rope_c4)}}
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

// Positions of another size after the dimension of axes.
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

// Tensors and memrefs.
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
  "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 1, 0, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> ()
  return
}

// -----

// Two results.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected one result for each tensor destination, of its type (rope_c7)}}
  %r:2 = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 1, 0, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>)
  return
}

// -----

// A result of another type.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected one result for each tensor destination, of its type (rope_c7)}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 1, 0, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<5x8xf32>
  return
}

// -----

// A result for a memref.
func.func @f(%a0: memref<?x8xf32>, %a1: i64, %a2: memref<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected one result for each tensor destination, of its type (rope_c7)}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 1, 0, 1>}>
    : (memref<?x8xf32>, i64, memref<?x8xf32>) -> tensor<?x8xf32>
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
