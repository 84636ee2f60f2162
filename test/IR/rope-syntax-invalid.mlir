//===- rope-syntax-invalid.mlir - syntax errors of rope -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

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
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<?xf16>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op operand #1 must be ranked tensor of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or memref of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or 64-bit signless integer or 32-bit signless integer or index, but got 'tensor<?xf16>'}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<?xf16>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// An unranked tensor of positions.
func.func @f(%x0: tensor<?x8xf32>, %p: tensor<*xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op operand #1 must be ranked tensor of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or memref of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or 64-bit signless integer or 32-bit signless integer or index, but got 'tensor<*xi64>'}}
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x0 : tensor<?x8xf32>)
    positions(%p : tensor<*xi64>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A position of 16 bits.
func.func @f(%x0: tensor<?x8xf32>, %p: i16, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op operand #1 must be ranked tensor of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or memref of 64-bit signless integer or 32-bit signless integer or index or 32-bit float or 64-bit float values or 64-bit signless integer or 32-bit signless integer or index, but got 'i16'}}
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
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: -1, 1, 0, 3>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Segments that do not add up.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op operand count (3) does not match with the total size (2) specified in attribute 'operandSegmentSizes'}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 1, 0, 0>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Two positions.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?xi64>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected one operand of positions, got 2}}
  %r = "posenc.rope"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 2, 0, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// No positions.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected one operand of positions, got 0}}
  %r = "posenc.rope"(%a0, %a1) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 0, 0, 1>}>
    : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Inputs alone.
func.func @f(%a0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op expected one operand of positions, got 0}}
  "posenc.rope"(%a0) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, operandSegmentSizes = array<i32: 1, 0, 0, 0>}>
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
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 0, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// No dims.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op requires attribute 'dims'}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{frequencies = #posenc.frequencies<dim = 8>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 0, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// No pairing.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rope' op requires attribute 'pairing'}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{frequencies = #posenc.frequencies<dim = 8>, dims = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// A number for a pairing.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{invalid properties {dims = array<i64: 0>, frequencies = #posenc.frequencies<dim = 8, base = 1.000000e+04>, operandSegmentSizes = array<i32: 1, 1, 0, 1>, pairing = 0 : i32} for op posenc.rope: Invalid attribute `pairing` in property conversion: 0 : i32}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{frequencies = #posenc.frequencies<dim = 8>, dims = array<i64: 0>, pairing = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// dims as an array of attributes.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{invalid properties {dims = [0], frequencies = #posenc.frequencies<dim = 8, base = 1.000000e+04>, operandSegmentSizes = array<i32: 1, 1, 0, 1>, pairing = #posenc<pairing half>} for op posenc.rope: Invalid attribute `dims` in property conversion: [0]}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{frequencies = #posenc.frequencies<dim = 8>, dims = [0], pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 0, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// A real offset.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{invalid properties {dims = array<i64: 0>, frequencies = #posenc.frequencies<dim = 8, base = 1.000000e+04>, offset = 0.000000e+00 : f64, operandSegmentSizes = array<i32: 1, 1, 0, 1>, pairing = #posenc<pairing half>} for op posenc.rope: Invalid attribute `offset` in property conversion: 0.000000e+00 : f64}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, offset = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 0, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Frequencies with a base of 32 bits.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{expected '>'}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8, base = 1.0 : f32>, operandSegmentSizes = array<i32: 1, 1, 0, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Frequencies that are a string.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{invalid properties {dims = array<i64: 0>, frequencies = "yarn", operandSegmentSizes = array<i32: 1, 1, 0, 1>, pairing = #posenc<pairing half>} for op posenc.rope: Invalid attribute `frequencies` in property conversion: "yarn"}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = "yarn", operandSegmentSizes = array<i32: 1, 1, 0, 1>}>
    : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Axes that are a list.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<2x?xi64>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{invalid properties {axes = [2, 2], dims = array<i64: 0>, frequencies = #posenc.frequencies<dim = 8, base = 1.000000e+04>, operandSegmentSizes = array<i32: 1, 1, 0, 1>, pairing = #posenc<pairing half>} for op posenc.rope: Invalid attribute `axes` in property conversion: [2, 2]}}
  %r = "posenc.rope"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, frequencies = #posenc.frequencies<dim = 8>, axes = [2, 2], operandSegmentSizes = array<i32: 1, 1, 0, 1>}>
    : (tensor<?x8xf32>, tensor<2x?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// An unknown pairing.
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

// More results than destinations.
func.func @f(%x: tensor<?x8xf32>, %p: i64) {
  // expected-error @+1 {{operation defines 1 results but was provided 2 to bind}}
  %r:2 = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x : tensor<?x8xf32>) positions(%p : i64) dims = [0] outs(%x : tensor<?x8xf32>)
  return
}
