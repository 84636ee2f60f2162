//===- rotate-invalid.mlir - violated constraints of rotate ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// No input.
func.func @f(%a0: tensor<?x4xf32>, %a1: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected between 1 and 16 inputs and as many destinations, got 0 and 0 (rotate_c1)}}
  "posenc.rotate"(%a0, %a1) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 0, 1, 1, 0>}>
    : (tensor<?x4xf32>, tensor<?x4xf32>) -> ()
  return
}

// -----

// No destination.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected between 1 and 16 inputs and as many destinations, got 1 and 0 (rotate_c1)}}
  "posenc.rotate"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 1, 0>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>) -> ()
  return
}

// -----

// Two inputs, one destination.
func.func @f(%x0: tensor<?x8xf32>, %x1: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected between 1 and 16 inputs and as many destinations, got 2 and 1 (rotate_c1)}}
  %r = posenc.rotate half ins(%x0, %x1 : tensor<?x8xf32>, tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Seventeen inputs.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected between 1 and 16 inputs and as many destinations, got 17 and 17 (rotate_c1)}}
  %r:17 = posenc.rotate half ins(%x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
  return
}

// -----

// Inputs of different element types.
func.func @f(%x0: tensor<?x8xf32>, %x1: tensor<?x8xf16>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>, %o1: tensor<?x8xf16>) {
  // expected-error @+1 {{'posenc.rotate' op expected one element type, and the shape of each input for its destination, got 'tensor<?x8xf16>' and 'tensor<?x8xf16>' (rotate_c1)}}
  %r:2 = posenc.rotate half ins(%x0, %x1 : tensor<?x8xf32>, tensor<?x8xf16>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0, %o1 : tensor<?x8xf32>, tensor<?x8xf16>)
  return
}

// -----

// A destination of another element type.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf16>) {
  // expected-error @+1 {{'posenc.rotate' op expected one element type, and the shape of each input for its destination, got 'tensor<?x8xf32>' and 'tensor<?x8xf16>' (rotate_c1)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0 : tensor<?x8xf16>)
  return
}

// -----

// A destination of another rank.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected one element type, and the shape of each input for its destination, got 'tensor<?x8xf32>' and 'tensor<?x?x8xf32>' (rotate_c1)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0 : tensor<?x?x8xf32>)
  return
}

// -----

// A destination of another size.
func.func @f(%x0: tensor<5x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<6x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected one element type, and the shape of each input for its destination, got 'tensor<5x8xf32>' and 'tensor<6x8xf32>' (rotate_c1)}}
  %r = posenc.rotate half ins(%x0 : tensor<5x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0 : tensor<6x8xf32>)
  return
}

// -----

// Destinations in another order.
func.func @f(%x0: tensor<?x8xf32>, %x1: tensor<?x2x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x2x8xf32>, %o1: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected one element type, and the shape of each input for its destination, got 'tensor<?x8xf32>' and 'tensor<?x2x8xf32>' (rotate_c1)}}
  %r:2 = posenc.rotate half ins(%x0, %x1 : tensor<?x8xf32>, tensor<?x2x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0, %o1 : tensor<?x2x8xf32>, tensor<?x8xf32>)
  return
}

// -----

// No dimension.
func.func @f(%x0: tensor<f32>, %c: tensor<4xf32>, %s: tensor<4xf32>, %o0: tensor<f32>) {
  // expected-error @+1 {{'posenc.rotate' op expected a rank between 2 and 64 and a static last dimension, got 'tensor<f32>' (rotate_c2)}}
  %r = posenc.rotate half ins(%x0 : tensor<f32>)
    tables(%c, %s : tensor<4xf32>) dims = []
    outs(%o0 : tensor<f32>)
  return
}

// -----

// One dimension.
func.func @f(%x0: tensor<8xf32>, %c: tensor<4xf32>, %s: tensor<4xf32>, %o0: tensor<8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected a rank between 2 and 64 and a static last dimension, got 'tensor<8xf32>' (rotate_c2)}}
  %r = posenc.rotate half ins(%x0 : tensor<8xf32>)
    tables(%c, %s : tensor<4xf32>) dims = []
    outs(%o0 : tensor<8xf32>)
  return
}

// -----

// A dynamic last dimension.
func.func @f(%x0: tensor<?x?xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x?xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected a rank between 2 and 64 and a static last dimension, got 'tensor<?x?xf32>' (rotate_c2)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x?xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0 : tensor<?x?xf32>)
  return
}

// -----

// A destination with a dynamic last dimension.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x?xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected a rank between 2 and 64 and a static last dimension, got 'tensor<?x?xf32>' (rotate_c2)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0 : tensor<?x?xf32>)
  return
}

// -----

// The second input has a dynamic last dimension.
func.func @f(%x0: tensor<?x8xf32>, %x1: tensor<?x?xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>, %o1: tensor<?x?xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected a rank between 2 and 64 and a static last dimension, got 'tensor<?x?xf32>' (rotate_c2)}}
  %r:2 = posenc.rotate half ins(%x0, %x1 : tensor<?x8xf32>, tensor<?x?xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0, %o1 : tensor<?x8xf32>, tensor<?x?xf32>)
  return
}

// -----

// 65 dimensions.
func.func @f(%x0: tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x8xf32>, %c: tensor<1x4xf32>, %s: tensor<1x4xf32>, %o0: tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected a rank between 2 and 64 and a static last dimension, got 'tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x8xf32>' (rotate_c2)}}
  %r = posenc.rotate half ins(%x0 : tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x8xf32>)
    tables(%c, %s : tensor<1x4xf32>) dims = [0]
    outs(%o0 : tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x8xf32>)
  return
}

// -----

// Tables of different shapes.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<6x4xf32>, %s: tensor<5x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected tables of one shape and element type with a static last dimension between 1 and 32768, got 'tensor<6x4xf32>' and 'tensor<5x4xf32>' (rotate_c3)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<6x4xf32>, tensor<5x4xf32>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// The second table has a dynamic last dimension.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<5x4xf32>, %s: tensor<5x?xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected tables of one shape and element type with a static last dimension between 1 and 32768, got 'tensor<5x4xf32>' and 'tensor<5x?xf32>' (rotate_c3)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<5x4xf32>, tensor<5x?xf32>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Tables of different element types.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf16>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected tables of one shape and element type with a static last dimension between 1 and 32768, got 'tensor<?x4xf32>' and 'tensor<?x4xf16>' (rotate_c3)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>, tensor<?x4xf16>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A dynamic last dimension of the tables.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x?xf32>, %s: tensor<?x?xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected tables of one shape and element type with a static last dimension between 1 and 32768, got 'tensor<?x?xf32>' and 'tensor<?x?xf32>' (rotate_c3)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x?xf32>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Empty tables.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x0xf32>, %s: tensor<?x0xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected tables of one shape and element type with a static last dimension between 1 and 32768, got 'tensor<?x0xf32>' and 'tensor<?x0xf32>' (rotate_c3)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x0xf32>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Tables without a dimension.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<f32>, %s: tensor<f32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected tables of one shape and element type with a static last dimension between 1 and 32768, got 'tensor<f32>' and 'tensor<f32>' (rotate_c3)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<f32>) dims = []
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Too many pairs.
func.func @f(%x0: tensor<?x65538xf32>, %c: tensor<?x32769xf32>, %s: tensor<?x32769xf32>, %o0: tensor<?x65538xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected tables of one shape and element type with a static last dimension between 1 and 32768, got 'tensor<?x32769xf32>' and 'tensor<?x32769xf32>' (rotate_c3)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x65538xf32>)
    tables(%c, %s : tensor<?x32769xf32>) dims = [0]
    outs(%o0 : tensor<?x65538xf32>)
  return
}

// -----

// Twice the number of pairs overflows 64 bits.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x9223372036854775807xf32>, %s: tensor<?x9223372036854775807xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected tables of one shape and element type with a static last dimension between 1 and 32768, got 'tensor<?x9223372036854775807xf32>' and 'tensor<?x9223372036854775807xf32>' (rotate_c3)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x9223372036854775807xf32>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Too few dims.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected 1 elements of dims, got 0 (rotate_c4)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = []
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Too many dims.
func.func @f(%x0: tensor<?x?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected 1 elements of dims, got 2 (rotate_c4)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0, 1]
    outs(%o0 : tensor<?x?x8xf32>)
  return
}

// -----

// The last dimension.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected different dims in [0, 1), got 1 (rotate_c4)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [1]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A dimension out of range.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected different dims in [0, 1), got 2 (rotate_c4)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [2]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A dimension that the second tensor does not have.
func.func @f(%x0: tensor<?x?x8xf32>, %x1: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x?x8xf32>, %o1: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected different dims in [0, 1), got 1 (rotate_c4)}}
  %r:2 = posenc.rotate half ins(%x0, %x1 : tensor<?x?x8xf32>, tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [1]
    outs(%o0, %o1 : tensor<?x?x8xf32>, tensor<?x8xf32>)
  return
}

// -----

// A negative dimension.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected different dims in [0, 1), got -1 (rotate_c4)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [-1]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A dimension twice.
func.func @f(%x0: tensor<?x?x8xf32>, %c: tensor<?x?x4xf32>, %s: tensor<?x?x4xf32>, %o0: tensor<?x?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected different dims in [0, 2), got 1 (rotate_c4)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x?x8xf32>)
    tables(%c, %s : tensor<?x?x4xf32>) dims = [1, 1]
    outs(%o0 : tensor<?x?x8xf32>)
  return
}

// -----

// The greatest number.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected different dims in [0, 1), got 9223372036854775807 (rotate_c4)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [9223372036854775807]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// The least number.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected different dims in [0, 1), got -9223372036854775808 (rotate_c4)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [-9223372036854775808]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A window wider than the dimension.
func.func @f(%x0: tensor<?x6xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x6xf32>) {
  // expected-error @+1 {{'posenc.rotate' op rotary window of 8 lanes at offset 0 is not within the last dimension of 6 (rotate_c5)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x6xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0 : tensor<?x6xf32>)
  return
}

// -----

// A window that exceeds the dimension.
func.func @f(%x0: tensor<?x9xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x9xf32>) {
  // expected-error @+1 {{'posenc.rotate' op rotary window of 8 lanes at offset 2 is not within the last dimension of 9 (rotate_c5)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x9xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0] offset = 2
    outs(%o0 : tensor<?x9xf32>)
  return
}

// -----

// A window before the dimension.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op rotary window of 8 lanes at offset -1 is not within the last dimension of 8 (rotate_c5)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0] offset = -1
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A window whose end overflows 64 bits.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op rotary window of 8 lanes at offset 9223372036854775807 is not within the last dimension of 8 (rotate_c5)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0] offset = 9223372036854775807
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// The least offset.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op rotary window of 8 lanes at offset -9223372036854775808 is not within the last dimension of 8 (rotate_c5)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0] offset = -9223372036854775808
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A window that exceeds the second tensor.
func.func @f(%x0: tensor<?x8xf32>, %x1: tensor<?x7xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>, %o1: tensor<?x7xf32>) {
  // expected-error @+1 {{'posenc.rotate' op rotary window of 8 lanes at offset 0 is not within the last dimension of 7 (rotate_c5)}}
  %r:2 = posenc.rotate half ins(%x0, %x1 : tensor<?x8xf32>, tensor<?x7xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0, %o1 : tensor<?x8xf32>, tensor<?x7xf32>)
  return
}

// -----

// Tables of another size.
func.func @f(%x0: tensor<5x8xf32>, %c: tensor<6x4xf32>, %s: tensor<6x4xf32>, %o0: tensor<5x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op operand #1 has size 6 in dimension 0 where another operand has 5 (rotate_c6)}}
  %r = posenc.rotate half ins(%x0 : tensor<5x8xf32>)
    tables(%c, %s : tensor<6x4xf32>) dims = [0]
    outs(%o0 : tensor<5x8xf32>)
  return
}

// -----

// Tables of another size than the second dimension.
func.func @f(%x0: tensor<6x5x8xf32>, %c: tensor<6x4xf32>, %s: tensor<6x4xf32>, %o0: tensor<6x5x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op operand #1 has size 6 in dimension 0 where another operand has 5 (rotate_c6)}}
  %r = posenc.rotate half ins(%x0 : tensor<6x5x8xf32>)
    tables(%c, %s : tensor<6x4xf32>) dims = [1]
    outs(%o0 : tensor<6x5x8xf32>)
  return
}

// -----

// Tensors of different sizes.
func.func @f(%x0: tensor<5x8xf32>, %x1: tensor<6x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<5x8xf32>, %o1: tensor<6x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op operand #1 has size 6 in dimension 0 where another operand has 5 (rotate_c6)}}
  %r:2 = posenc.rotate half ins(%x0, %x1 : tensor<5x8xf32>, tensor<6x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0, %o1 : tensor<5x8xf32>, tensor<6x8xf32>)
  return
}

// -----

// A destination of another size than the tables.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<6x4xf32>, %s: tensor<6x4xf32>, %o0: tensor<5x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op operand #3 has size 5 in dimension 0 where another operand has 6 (rotate_c6)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<6x4xf32>) dims = [0]
    outs(%o0 : tensor<5x8xf32>)
  return
}

// -----

// f64 tables for f32 tensors.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf64>, %s: tensor<?x4xf64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected tables of at most 32 bits for 'tensor<?x8xf32>' (rotate_c7)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf64>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// f64 tables for bf16 tensors.
func.func @f(%x0: tensor<?x8xbf16>, %c: tensor<?x4xf64>, %s: tensor<?x4xf64>, %o0: tensor<?x8xbf16>) {
  // expected-error @+1 {{'posenc.rotate' op expected tables of at most 32 bits for 'tensor<?x8xbf16>' (rotate_c7)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xbf16>)
    tables(%c, %s : tensor<?x4xf64>) dims = [0]
    outs(%o0 : tensor<?x8xbf16>)
  return
}

// -----

// Tables on memrefs.
func.func @f(%x0: tensor<?x8xf32>, %c: memref<?x4xf32>, %s: memref<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op mixes tensors and memrefs (rotate_c8)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : memref<?x4xf32>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// One table on a memref.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: memref<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op mixes tensors and memrefs (rotate_c8)}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>, memref<?x4xf32>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// An input on a memref.
func.func @f(%x0: memref<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op mixes tensors and memrefs (rotate_c8)}}
  %r = posenc.rotate half ins(%x0 : memref<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A destination on a memref.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: memref<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op mixes tensors and memrefs (rotate_c8)}}
  posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0 : memref<?x8xf32>)
  return
}

// -----

// No result.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected one result for each tensor destination, of its type (rotate_c8)}}
  "posenc.rotate"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> ()
  return
}

// -----

// Two results.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected one result for each tensor destination, of its type (rotate_c8)}}
  %r:2 = "posenc.rotate"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>)
  return
}

// -----

// A result of another type.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected one result for each tensor destination, of its type (rotate_c8)}}
  %r = "posenc.rotate"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<5x8xf32>
  return
}

// -----

// A result for a memref.
func.func @f(%a0: memref<?x8xf32>, %a1: memref<?x4xf32>, %a2: memref<?x4xf32>, %a3: memref<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected one result for each tensor destination, of its type (rotate_c8)}}
  %r = "posenc.rotate"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 1, 1>}>
    : (memref<?x8xf32>, memref<?x4xf32>, memref<?x4xf32>, memref<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// An odd number of lanes.
func.func @f(%x: tensor<?x8xf32>, %c: tensor<?x3xf32>, %s: tensor<?x3xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected tables of one shape and element type with a static last dimension between 1 and 32768 that is even, got 'tensor<?x3xf32>' and 'tensor<?x3xf32>' (rotate_c3)}}
  %r = posenc.rotate half full_tables ins(%x : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x3xf32>) dims = [0]
    outs(%x : tensor<?x8xf32>)
  return
}

// -----

// The window of full tables is wider than the rows.
func.func @f(%x: tensor<?x8xf32>, %c: tensor<?x8xf32>, %s: tensor<?x8xf32>) {
  // expected-error @+1 {{(rotate_c5)}}
  %r = posenc.rotate half full_tables ins(%x : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x8xf32>) dims = [0] offset = 2
    outs(%x : tensor<?x8xf32>)
  return
}

// -----

// Full tables on memrefs.
func.func @f(%x: memref<?x8xf32>, %c: memref<?x8xf32>, %s: memref<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected tensors with full_tables (rotate_c9)}}
  posenc.rotate half full_tables ins(%x : memref<?x8xf32>)
    tables(%c, %s : memref<?x8xf32>) dims = [0]
    outs(%x : memref<?x8xf32>)
  return
}
