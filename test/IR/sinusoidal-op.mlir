//===- sinusoidal-op.mlir - syntax of sinusoidal --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-roundtrip --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --mlir-print-op-generic \
// RUN:   | posenc-opt --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --emit-bytecode \
// RUN:   | posenc-opt --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --mlir-print-op-generic --mlir-print-local-scope \
// RUN:   | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: func @interleaved(
// CHECK: posenc.sinusoidal interleaved <dim = 512, base = 1.000000e+04>
// CHECK-SAME: positions(%arg0 : tensor<?xi64>) outs(%arg1 : tensor<?x512xf32>){{$}}
// GENERIC-LABEL: sym_name = "interleaved"
// GENERIC: "posenc.sinusoidal"(
// GENERIC-SAME: <{frequencies = #posenc.frequencies<dim = 512, base = 1.000000e+04>, order = #posenc<order interleaved>}>
// GENERIC-SAME: : (tensor<?xi64>, tensor<?x512xf32>) -> tensor<?x512xf32>
func.func @interleaved(%p: tensor<?xi64>, %t: tensor<?x512xf32>) {
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 512, base = 1.000000e+04>
    positions(%p : tensor<?xi64>)
    outs(%t : tensor<?x512xf32>)
  return
}

// CHECK-LABEL: func @sin_cos(
// CHECK: posenc.sinusoidal sin_cos <dim = 8, base = 1.000000e+04> positions(%arg0 : tensor<5xi32>)
// CHECK-SAME: outs(%arg1 : tensor<5x8xf64>){{$}}
// GENERIC-LABEL: sym_name = "sin_cos"
// GENERIC: order = #posenc<order sin_cos>
func.func @sin_cos(%p: tensor<5xi32>, %t: tensor<5x8xf64>) {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : tensor<5xi32>)
    outs(%t : tensor<5x8xf64>)
  return
}

// CHECK-LABEL: func @cos_sin(
// CHECK: posenc.sinusoidal cos_sin <dim = 8, base = 1.000000e+04>
// CHECK-SAME: positions(%arg0 : tensor<?xindex>) outs(%arg1 : tensor<?x8xbf16>){{$}}
// GENERIC-LABEL: sym_name = "cos_sin"
// GENERIC: order = #posenc<order cos_sin>
func.func @cos_sin(%p: tensor<?xindex>, %t: tensor<?x8xbf16>) {
  %r = posenc.sinusoidal cos_sin #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : tensor<?xindex>)
    outs(%t : tensor<?x8xbf16>)
  return
}

// CHECK-LABEL: func @batch_f16(
// CHECK: posenc.sinusoidal sin_cos <dim = 8, base = 1.000000e+04>
// CHECK-SAME: positions(%arg0 : tensor<?x3xi64>) outs(%arg1 : tensor<2x?x8xf16>){{$}}
func.func @batch_f16(%p: tensor<?x3xi64>, %t: tensor<2x?x8xf16>) {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : tensor<?x3xi64>)
    outs(%t : tensor<2x?x8xf16>)
  return
}

// CHECK-LABEL: func @one_position(
// CHECK: posenc.sinusoidal sin_cos <dim = 8, base = 1.000000e+04> positions(%arg0 : tensor<i64>)
// CHECK-SAME: outs(%arg1 : tensor<8xf32>){{$}}
func.func @one_position(%p: tensor<i64>, %t: tensor<8xf32>) {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : tensor<i64>)
    outs(%t : tensor<8xf32>)
  return
}

// CHECK-LABEL: func @empty(
// CHECK: posenc.sinusoidal cos_sin <dim = 8, base = 1.000000e+04> positions(%arg0 : tensor<0xi64>)
// CHECK-SAME: outs(%arg1 : tensor<0x8xf32>){{$}}
func.func @empty(%p: tensor<0xi64>, %t: tensor<0x8xf32>) {
  %r = posenc.sinusoidal cos_sin #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : tensor<0xi64>)
    outs(%t : tensor<0x8xf32>)
  return
}

// CHECK-LABEL: func @scalar_i64(
// CHECK: posenc.sinusoidal interleaved <dim = 8, base = 1.000000e+04> positions(%arg0 : i64)
// CHECK-SAME: outs(%arg1 : tensor<?x8xf32>){{$}}
func.func @scalar_i64(%p: i64, %t: tensor<?x8xf32>) {
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : i64)
    outs(%t : tensor<?x8xf32>)
  return
}

// CHECK-LABEL: func @scalar_i32(
// CHECK: posenc.sinusoidal interleaved <dim = 8, base = 1.000000e+04> positions(%arg0 : i32)
// CHECK-SAME: outs(%arg1 : tensor<?x8xf32>){{$}}
func.func @scalar_i32(%p: i32, %t: tensor<?x8xf32>) {
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : i32)
    outs(%t : tensor<?x8xf32>)
  return
}

// CHECK-LABEL: func @scalar_index(
// CHECK: posenc.sinusoidal interleaved <dim = 8, base = 1.000000e+04> positions(%arg0 : index)
// CHECK-SAME: outs(%arg1 : tensor<?x8xf32>){{$}}
func.func @scalar_index(%p: index, %t: tensor<?x8xf32>) {
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : index)
    outs(%t : tensor<?x8xf32>)
  return
}

// CHECK-LABEL: func @scaled(
// CHECK: posenc.sinusoidal interleaved <dim = 8, base = 1.000000e+02, scaling = #posenc.linear<factor = 2.000000e+00>>
// CHECK-SAME: positions(%arg0 : tensor<?xi64>) outs(%arg1 : tensor<?x8xf32>){{$}}
func.func @scaled(%p: tensor<?xi64>, %t: tensor<?x8xf32>) {
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 8, base = 1.000000e+02, scaling = #posenc.linear<factor = 2.000000e+00>>
    positions(%p : tensor<?xi64>)
    outs(%t : tensor<?x8xf32>)
  return
}

// CHECK-LABEL: func @on_memref(
// CHECK: posenc.sinusoidal sin_cos <dim = 8, base = 1.000000e+04> positions(%arg0 : memref<?xi64>)
// CHECK-SAME: outs(%arg1 : memref<?x8xf32>){{$}}
// GENERIC-LABEL: sym_name = "on_memref"
// GENERIC: "posenc.sinusoidal"(
// GENERIC-SAME: -> ()
func.func @on_memref(%p: memref<?xi64>, %t: memref<?x8xf32>) {
  posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : memref<?xi64>)
    outs(%t : memref<?x8xf32>)
  return
}

// CHECK-LABEL: func @on_memref_strided(
// CHECK: posenc.sinusoidal cos_sin <dim = 8, base = 1.000000e+04>
// CHECK-SAME: positions(%arg0 : memref<?xi64, strided<[?], offset: ?>>)
// CHECK-SAME: outs(%arg1 : memref<?x8xf16, strided<[?, ?], offset: ?>, 1>){{$}}
func.func @on_memref_strided(%p: memref<?xi64, strided<[?], offset: ?>>, %t: memref<?x8xf16, strided<[?, ?], offset: ?>, 1>) {
  posenc.sinusoidal cos_sin #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : memref<?xi64, strided<[?], offset: ?>>)
    outs(%t : memref<?x8xf16, strided<[?, ?], offset: ?>, 1>)
  return
}

// CHECK-LABEL: func @on_memref_scalar(
// CHECK: posenc.sinusoidal interleaved <dim = 8, base = 1.000000e+04> positions(%arg0 : i32)
// CHECK-SAME: outs(%arg1 : memref<16x8xf64>){{$}}
func.func @on_memref_scalar(%p: i32, %t: memref<16x8xf64>) {
  posenc.sinusoidal interleaved #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : i32)
    outs(%t : memref<16x8xf64>)
  return
}

// CHECK-LABEL: func @from_generic(
// CHECK: posenc.sinusoidal cos_sin <dim = 8, base = 1.000000e+04> positions(%arg0 : i64) outs(%arg1 : tensor<4x8xf32>) {test.note}{{$}}
func.func @from_generic(%p: i64, %t: tensor<4x8xf32>) {
  %0 = "posenc.sinusoidal"(%p, %t) <{frequencies = #posenc.frequencies<dim = 8>, order = #posenc<order cos_sin>}> {test.note}
    : (i64, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func @zero_pad(
// CHECK: posenc.sinusoidal sin_cos <dim = 8, base = 1.000000e+04, scaling = #posenc.geometric<shift = 1.000000e+00>> zero_pad positions(%arg0 : tensor<?xi64>)
// CHECK-SAME: outs(%arg1 : tensor<?x9xf32>){{$}}
func.func @zero_pad(%p: tensor<?xi64>, %t: tensor<?x9xf32>) {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8, base = 1.000000e+04, scaling = #posenc.geometric<shift = 1.000000e+00>> zero_pad
    positions(%p : tensor<?xi64>)
    outs(%t : tensor<?x9xf32>)
  return
}

// CHECK-LABEL: func @padding_position(
// CHECK: posenc.sinusoidal sin_cos <dim = 8, base = 1.000000e+04> padding_position = -1 positions(%arg0 : i64)
// CHECK-SAME: outs(%arg1 : tensor<?x8xf32>){{$}}
func.func @padding_position(%p: i64, %t: tensor<?x8xf32>) {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8, base = 1.000000e+04> padding_position = -1
    positions(%p : i64)
    outs(%t : tensor<?x8xf32>)
  return
}

// CHECK-LABEL: func @axes(
// CHECK: posenc.sinusoidal cos_sin <dim = 12, base = 1.000000e+04> axes <axial, [1, 2, 3]> zero_pad positions(%arg0 : memref<3x2x?xi64>)
// CHECK-SAME: outs(%arg1 : memref<2x?x13xbf16>){{$}}
func.func @axes(%p: memref<3x2x?xi64>, %t: memref<2x?x13xbf16>) {
  posenc.sinusoidal cos_sin #posenc.frequencies<dim = 12, base = 1.000000e+04> axes #posenc.axes<axial, [1, 2, 3]> zero_pad
    positions(%p : memref<3x2x?xi64>)
    outs(%t : memref<2x?x13xbf16>)
  return
}
