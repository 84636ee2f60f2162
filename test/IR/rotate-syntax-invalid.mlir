//===- rotate-syntax-invalid.mlir - syntax errors of rotate ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// A tensor of integers.
func.func @f(%x0: tensor<?x8xi32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xi32>) {
  // expected-error @+1 {{'posenc.rotate' op operand #0 must be variadic of ranked tensor of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values or memref of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values, but got 'tensor<?x8xi32>'}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xi32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0 : tensor<?x8xi32>)
  return
}

// -----

// An unranked tensor.
func.func @f(%x0: tensor<*xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<*xf32>) {
  // expected-error @+1 {{'posenc.rotate' op operand #0 must be variadic of ranked tensor of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values or memref of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values, but got 'tensor<*xf32>'}}
  posenc.rotate half ins(%x0 : tensor<*xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0 : tensor<*xf32>)
  return
}

// -----

// Tables of integers.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xi64>, %s: tensor<?x4xi64>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op operand #1 must be ranked tensor of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values or memref of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values, but got 'tensor<?x4xi64>'}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xi64>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A scalar table.
func.func @f(%x0: tensor<?x8xf32>, %c: f32, %s: f32, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op operand #1 must be ranked tensor of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values or memref of 64-bit float or 32-bit float or 16-bit float or bfloat16 type values, but got 'f32'}}
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : f32) dims = []
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// Operand segments with one operand too many.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op operand count (4) does not match with the total size (5) specified in attribute 'operandSegmentSizes'}}
  %r = "posenc.rotate"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 1, 2>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Operand segments with one operand too few.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op operand count (4) does not match with the total size (3) specified in attribute 'operandSegmentSizes'}}
  %r = "posenc.rotate"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 1, 0>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// A negative segment.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op 'operandSegmentSizes' attribute cannot have negative elements}}
  %r = "posenc.rotate"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: -1, 1, 1, 3>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Operand segments that add up modulo 2^32.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op operand count (4) does not match with the total size (4294967296) specified in attribute 'operandSegmentSizes'}}
  %r = "posenc.rotate"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 2147483647, 1, 1, 2147483647>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Two tables of cosines.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected one operand for each table, got 2}}
  %r = "posenc.rotate"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 0, 2, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// No table of sines.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected one operand for each table, got 0}}
  %r = "posenc.rotate"(%a0, %a1, %a2) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 0, 1>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// Neither tables nor destinations.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op expected one operand for each table, got 0}}
  "posenc.rotate"(%a0, %a1) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 2, 0, 0, 0>}>
    : (tensor<?x8xf32>, tensor<?x8xf32>) -> ()
  return
}

// -----

// Three segments.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{invalid properties {dims = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 2>, pairing = #posenc<pairing half>} for op posenc.rotate: size mismatch in attribute conversion: 3 vs 4}}
  %r = "posenc.rotate"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 2>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// No segments.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op operand count (4) does not match with the total size (0) specified in attribute 'operandSegmentSizes'}}
  %r = "posenc.rotate"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, pairing = #posenc<pairing half>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// No operand.
func.func @f() {
  // expected-error @+1 {{'posenc.rotate' op expected 2 or more operands, but found 0}}
  "posenc.rotate"() <{dims = array<i64: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 0, 0, 0, 0>}>
    : () -> ()
  return
}

// -----

// No dims.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op requires attribute 'dims'}}
  %r = "posenc.rotate"(%a0, %a1, %a2, %a3) <{pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// No pairing.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op requires attribute 'pairing'}}
  %r = "posenc.rotate"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// An order for a pairing.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{invalid properties {dims = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1>, pairing = #posenc<order interleaved>} for op posenc.rotate: Invalid attribute `pairing` in property conversion: #posenc<order interleaved>}}
  %r = "posenc.rotate"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, pairing = #posenc<order interleaved>, operandSegmentSizes = array<i32: 1, 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// dims of 32 bits.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{invalid properties {dims = array<i32: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1>, pairing = #posenc<pairing half>} for op posenc.rotate: Invalid attribute `dims` in property conversion: array<i32: 0>}}
  %r = "posenc.rotate"(%a0, %a1, %a2, %a3) <{dims = array<i32: 0>, pairing = #posenc<pairing half>, operandSegmentSizes = array<i32: 1, 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// An offset of 32 bits.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{'posenc.rotate' op attribute 'offset' failed to satisfy constraint: 64-bit signless integer attribute}}
  %r = "posenc.rotate"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, offset = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// An inverse attribute that is not a unit.
func.func @f(%a0: tensor<?x8xf32>, %a1: tensor<?x4xf32>, %a2: tensor<?x4xf32>, %a3: tensor<?x8xf32>) {
  // expected-error @+1 {{invalid properties {dims = array<i64: 0>, inverse = true, operandSegmentSizes = array<i32: 1, 1, 1, 1>, pairing = #posenc<pairing half>} for op posenc.rotate: Invalid attribute `inverse` in property conversion: true}}
  %r = "posenc.rotate"(%a0, %a1, %a2, %a3) <{dims = array<i64: 0>, pairing = #posenc<pairing half>, inverse = true, operandSegmentSizes = array<i32: 1, 1, 1, 1>}>
    : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// An unknown pairing.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{custom op 'posenc.rotate' expected half or interleaved, got 'neox'}}
  %r = posenc.rotate neox ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// No pairing.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{custom op 'posenc.rotate' expected half or interleaved, got 'ins'}}
  %r = posenc.rotate ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// inverse before the pairing.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{custom op 'posenc.rotate' expected half or interleaved, got 'inverse'}}
  %r = posenc.rotate inverse half ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// inverse twice.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  // expected-error @+1 {{custom op 'posenc.rotate' expected 'ins'}}
  %r = posenc.rotate half inverse inverse ins(%x0 : tensor<?x8xf32>)
    tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// An offset beyond 64 bits.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    // expected-error @+1 {{integer constant out of range for attribute}}
    tables(%c, %s : tensor<?x4xf32>) dims = [0] offset = 99999999999999999999
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// A dimension beyond 64 bits.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    // expected-error @+1 {{custom op 'posenc.rotate' integer value too large}}
    tables(%c, %s : tensor<?x4xf32>) dims = [99999999999999999999]
    outs(%o0 : tensor<?x8xf32>)
  return
}

// -----

// No list of dims.
func.func @f(%x0: tensor<?x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>, %o0: tensor<?x8xf32>) {
  %r = posenc.rotate half ins(%x0 : tensor<?x8xf32>)
    // expected-error @+1 {{expected '['}}
    tables(%c, %s : tensor<?x4xf32>) dims = 0
    outs(%o0 : tensor<?x8xf32>)
  return
}
