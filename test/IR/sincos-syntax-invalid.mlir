//===- sincos-syntax-invalid.mlir - syntax errors of sincos ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// Positions of the type tensor<*xi64>.
func.func @f(%p: tensor<*xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #0 must be ranked tensor of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or memref of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or 64-bit signless integer or 32-bit signless integer or index, but got 'tensor<*xi64>'}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<*xi64>)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Positions of the type tensor<?xi16>.
func.func @f(%p: tensor<?xi16>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #0 must be ranked tensor of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or memref of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or 64-bit signless integer or 32-bit signless integer or index, but got 'tensor<?xi16>'}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi16>)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Positions of the type tensor<?xf16>.
func.func @f(%p: tensor<?xf16>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #0 must be ranked tensor of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or memref of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or 64-bit signless integer or 32-bit signless integer or index, but got 'tensor<?xf16>'}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xf16>)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Positions of the type tensor<?xui64>.
func.func @f(%p: tensor<?xui64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #0 must be ranked tensor of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or memref of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or 64-bit signless integer or 32-bit signless integer or index, but got 'tensor<?xui64>'}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xui64>)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Positions of the type i16.
func.func @f(%p: i16, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #0 must be ranked tensor of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or memref of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or 64-bit signless integer or 32-bit signless integer or index, but got 'i16'}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : i16)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Positions of the type f32.
func.func @f(%p: f32, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #0 must be ranked tensor of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or memref of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or 64-bit signless integer or 32-bit signless integer or index, but got 'f32'}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : f32)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Positions of the type vector<4xi64>.
func.func @f(%p: vector<4xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #0 must be ranked tensor of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or memref of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or 64-bit signless integer or 32-bit signless integer or index, but got 'vector<4xi64>'}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : vector<4xi64>)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Positions of the type memref<*xi64>.
func.func @f(%p: memref<*xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #0 must be ranked tensor of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or memref of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or 64-bit signless integer or 32-bit signless integer or index, but got 'memref<*xi64>'}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : memref<*xi64>)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Positions of the type memref<?xi1>.
func.func @f(%p: memref<?xi1>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #0 must be ranked tensor of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or memref of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or 64-bit signless integer or 32-bit signless integer or index, but got 'memref<?xi1>'}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : memref<?xi1>)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// A destination of the type tensor<*xf32>.
func.func @f(%p: tensor<?xi64>, %c: tensor<*xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #1 must be variadic of ranked tensor of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values or memref of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values, but got 'tensor<*xf32>'}}
  posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %c : tensor<*xf32>, tensor<*xf32>)
  return
}

// -----

// A destination of the type tensor<?x4xi32>.
func.func @f(%p: tensor<?xi64>, %c: tensor<?x4xi32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #1 must be variadic of ranked tensor of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values or memref of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values, but got 'tensor<?x4xi32>'}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %c : tensor<?x4xi32>, tensor<?x4xi32>)
  return
}

// -----

// A destination of the type tensor<?x4xf8E4M3FN>.
func.func @f(%p: tensor<?xi64>, %c: tensor<?x4xf8E4M3FN>) {
  // expected-error @+1 {{'posenc.sincos' op operand #1 must be variadic of ranked tensor of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values or memref of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values, but got 'tensor<?x4xf8E4M3FN>'}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %c : tensor<?x4xf8E4M3FN>, tensor<?x4xf8E4M3FN>)
  return
}

// -----

// A destination of the type tensor<?x4xf80>.
func.func @f(%p: tensor<?xi64>, %c: tensor<?x4xf80>) {
  // expected-error @+1 {{'posenc.sincos' op operand #1 must be variadic of ranked tensor of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values or memref of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values, but got 'tensor<?x4xf80>'}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %c : tensor<?x4xf80>, tensor<?x4xf80>)
  return
}

// -----

// A destination of the type vector<4xf32>.
func.func @f(%p: tensor<?xi64>, %c: vector<4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op operand #1 must be variadic of ranked tensor of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values or memref of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values, but got 'vector<4xf32>'}}
  posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %c : vector<4xf32>, vector<4xf32>)
  return
}

// -----

// A destination of the type f32.
func.func @f(%p: tensor<?xi64>, %c: f32) {
  // expected-error @+1 {{'posenc.sincos' op operand #1 must be variadic of ranked tensor of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values or memref of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values, but got 'f32'}}
  posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>)
    outs(%c, %c : f32, f32)
  return
}

// -----

// No operand.
func.func @f() {
  // expected-error @+1 {{'posenc.sincos' op expected 1 or more operands, but found 0}}
  "posenc.sincos"() <{frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 0, -1>}> : () -> ()
  return
}

// -----

// No frequencies.
func.func @f(%p: i64, %c: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op requires attribute 'frequencies'}}
  %r:2 = "posenc.sincos"(%p, %c, %c) <{operandSegmentSizes = array<i32: 1, 0, 2>}> : (i64, tensor<?x4xf32>, tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Frequencies of another kind.
func.func @f(%p: i64, %c: tensor<?x4xf32>) {
  // expected-error @+1 {{invalid properties {frequencies = 4 : i64, operandSegmentSizes = array<i32: 1, 0, 2>} for op posenc.sincos: Invalid attribute `frequencies` in property conversion: 4 : i64}}
  %r:2 = "posenc.sincos"(%p, %c, %c) <{frequencies = 4 : i64, operandSegmentSizes = array<i32: 1, 0, 2>}> : (i64, tensor<?x4xf32>, tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Axes of another kind.
func.func @f(%p: i64, %c: tensor<?x4xf32>) {
  // expected-error @+1 {{invalid properties {axes, frequencies = #posenc.frequencies<dim = 8, base = 1.000000e+04>, operandSegmentSizes = array<i32: 1, 0, 2>} for op posenc.sincos: Invalid attribute `axes` in property conversion: unit}}
  %r:2 = "posenc.sincos"(%p, %c, %c) <{frequencies = #posenc.frequencies<dim = 8>, axes = unit, operandSegmentSizes = array<i32: 1, 0, 2>}> : (i64, tensor<?x4xf32>, tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Frequencies left out.
func.func @f(%p: i64, %c: tensor<?x4xf32>) {
  // expected-error @+1 {{expected '<'}}
  %r:2 = posenc.sincos positions(%p : i64) outs(%c, %c : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Axes where frequencies belong.
func.func @f(%p: i64, %c: tensor<?x4xf32>) {
  // expected-error @+1 {{custom op 'posenc.sincos' invalid kind of attribute specified}}
  %r:2 = posenc.sincos #posenc.axes<axial, [2, 2]> positions(%p : i64) outs(%c, %c : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Destinations left out.
func.func @f(%p: i64) {
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : i64)
  // expected-error @+1 {{custom op 'posenc.sincos' expected 'outs'}}
  return
}

// -----

// An empty list of destinations.
func.func @f(%p: i64) {
  // expected-error @+1 {{expected ':'}}
  posenc.sincos #posenc.frequencies<dim = 8> positions(%p : i64) outs()
  return
}

// -----

// More types than destinations.
func.func @f(%p: i64, %c: tensor<?x4xf32>) {
  // expected-error @+1 {{custom op 'posenc.sincos' number of operands and types do not match: got 2 operands and 3 types}}
  %r:3 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : i64) outs(%c, %c : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// Fewer types than destinations.
func.func @f(%p: i64, %c: tensor<?x4xf32>) {
  // expected-error @+1 {{custom op 'posenc.sincos' number of operands and types do not match: got 2 operands and 1 types}}
  %r = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : i64) outs(%c, %c : tensor<?x4xf32>)
  return
}

// -----

// Two positions.
func.func @f(%p: i64, %c: tensor<?x4xf32>) {
  // expected-error @+1 {{expected ':'}}
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> positions(%p, %p : i64, i64) outs(%c, %c : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}
