//===- sincos-op.mlir - syntax of sincos ----------------------------------===//
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

// CHECK-LABEL: func @sincos(
// CHECK: posenc.sincos <dim = 128, base = 1.000000e+04> positions(%arg0 : tensor<?xi64>)
// CHECK-SAME: outs(%arg1, %arg2 : tensor<?x64xf32>, tensor<?x64xf32>){{$}}
// GENERIC-LABEL: sym_name = "sincos"
// GENERIC: "posenc.sincos"(
// GENERIC-SAME: <{frequencies = #posenc.frequencies<dim = 128, base = 1.000000e+04>, operandSegmentSizes = array<i32: 1, 0, 2>}>
// GENERIC-SAME: : (tensor<?xi64>, tensor<?x64xf32>, tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
func.func @sincos(%p: tensor<?xi64>, %c: tensor<?x64xf32>, %s: tensor<?x64xf32>) {
  %r:2 = posenc.sincos #posenc.frequencies<dim = 128, base = 1.000000e+04>
    positions(%p : tensor<?xi64>)
    outs(%c, %s : tensor<?x64xf32>, tensor<?x64xf32>)
  return
}

// CHECK-LABEL: func @sincos_static_f64(
// CHECK: posenc.sincos <dim = 8, base = 1.000000e+04> positions(%arg0 : tensor<5xi64>)
// CHECK-SAME: outs(%arg1, %arg2 : tensor<5x4xf64>, tensor<5x4xf64>){{$}}
func.func @sincos_static_f64(%p: tensor<5xi64>, %c: tensor<5x4xf64>, %s: tensor<5x4xf64>) {
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : tensor<5xi64>)
    outs(%c, %s : tensor<5x4xf64>, tensor<5x4xf64>)
  return
}

// CHECK-LABEL: func @sincos_f16_i32(
// CHECK: posenc.sincos <dim = 8, base = 1.000000e+04> positions(%arg0 : tensor<?xi32>)
// CHECK-SAME: outs(%arg1, %arg2 : tensor<?x4xf16>, tensor<?x4xf16>){{$}}
func.func @sincos_f16_i32(%p: tensor<?xi32>, %c: tensor<?x4xf16>, %s: tensor<?x4xf16>) {
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : tensor<?xi32>)
    outs(%c, %s : tensor<?x4xf16>, tensor<?x4xf16>)
  return
}

// CHECK-LABEL: func @sincos_bf16_index(
// CHECK: posenc.sincos <dim = 8, base = 1.000000e+04> positions(%arg0 : tensor<?xindex>)
// CHECK-SAME: outs(%arg1, %arg2 : tensor<?x4xbf16>, tensor<?x4xbf16>){{$}}
func.func @sincos_bf16_index(%p: tensor<?xindex>, %c: tensor<?x4xbf16>, %s: tensor<?x4xbf16>) {
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : tensor<?xindex>)
    outs(%c, %s : tensor<?x4xbf16>, tensor<?x4xbf16>)
  return
}

// A dynamic size agrees with a static one.
// CHECK-LABEL: func @sincos_mixed_static(
// CHECK: posenc.sincos <dim = 8, base = 1.000000e+04> positions(%arg0 : tensor<?x7xi64>)
// CHECK-SAME: outs(%arg1, %arg2 : tensor<3x?x4xf32>, tensor<3x?x4xf32>){{$}}
func.func @sincos_mixed_static(%p: tensor<?x7xi64>, %c: tensor<3x?x4xf32>, %s: tensor<3x?x4xf32>) {
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : tensor<?x7xi64>)
    outs(%c, %s : tensor<3x?x4xf32>, tensor<3x?x4xf32>)
  return
}

// Positions of rank 0 have no loops.
// CHECK-LABEL: func @sincos_one_position(
// CHECK: posenc.sincos <dim = 8, base = 1.000000e+04> positions(%arg0 : tensor<i64>)
// CHECK-SAME: outs(%arg1, %arg2 : tensor<4xf32>, tensor<4xf32>){{$}}
func.func @sincos_one_position(%p: tensor<i64>, %c: tensor<4xf32>, %s: tensor<4xf32>) {
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : tensor<i64>)
    outs(%c, %s : tensor<4xf32>, tensor<4xf32>)
  return
}

// CHECK-LABEL: func @sincos_empty(
// CHECK: posenc.sincos <dim = 8, base = 1.000000e+04> positions(%arg0 : tensor<0xi64>)
// CHECK-SAME: outs(%arg1, %arg2 : tensor<0x4xf32>, tensor<0x4xf32>){{$}}
func.func @sincos_empty(%p: tensor<0xi64>, %c: tensor<0x4xf32>, %s: tensor<0x4xf32>) {
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : tensor<0xi64>)
    outs(%c, %s : tensor<0x4xf32>, tensor<0x4xf32>)
  return
}

// CHECK-LABEL: func @sincos_scalar_i64(
// CHECK: posenc.sincos <dim = 8, base = 1.000000e+04> positions(%arg0 : i64)
// CHECK-SAME: outs(%arg1, %arg2 : tensor<?x4xf32>, tensor<?x4xf32>){{$}}
func.func @sincos_scalar_i64(%p: i64, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : i64)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// CHECK-LABEL: func @sincos_scalar_i32(
// CHECK: posenc.sincos <dim = 8, base = 1.000000e+04> positions(%arg0 : i32)
// CHECK-SAME: outs(%arg1, %arg2 : tensor<?x4xf32>, tensor<?x4xf32>){{$}}
func.func @sincos_scalar_i32(%p: i32, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : i32)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// CHECK-LABEL: func @sincos_scalar_index(
// CHECK: posenc.sincos <dim = 8, base = 1.000000e+04> positions(%arg0 : index)
// CHECK-SAME: outs(%arg1, %arg2 : tensor<?x4xf32>, tensor<?x4xf32>){{$}}
func.func @sincos_scalar_index(%p: index, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) {
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : index)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// CHECK-LABEL: func @sincos_axes_contiguous(
// CHECK: posenc.sincos <dim = 128, base = 1.000000e+04> axes <contiguous, [16, 24, 24]>
// CHECK-SAME: positions(%arg0 : tensor<3x?xi64>) outs(%arg1, %arg2 : tensor<?x64xf32>, tensor<?x64xf32>){{$}}
// GENERIC-LABEL: sym_name = "sincos_axes_contiguous"
// GENERIC: "posenc.sincos"(
// GENERIC-SAME: <{axes = #posenc.axes<contiguous, [16, 24, 24]>, frequencies =
func.func @sincos_axes_contiguous(%p: tensor<3x?xi64>, %c: tensor<?x64xf32>, %s: tensor<?x64xf32>) {
  %r:2 = posenc.sincos #posenc.frequencies<dim = 128, base = 1.000000e+04> axes #posenc.axes<contiguous, [16, 24, 24]>
    positions(%p : tensor<3x?xi64>)
    outs(%c, %s : tensor<?x64xf32>, tensor<?x64xf32>)
  return
}

// CHECK-LABEL: func @sincos_axes_interleaved(
// CHECK: posenc.sincos <dim = 128, base = 1.000000e+04> axes <interleaved, [24, 20, 20]>
// CHECK-SAME: positions(%arg0 : tensor<3x?x?xi64>)
// CHECK-SAME: outs(%arg1, %arg2 : tensor<?x?x64xf32>, tensor<?x?x64xf32>){{$}}
func.func @sincos_axes_interleaved(%p: tensor<3x?x?xi64>, %c: tensor<?x?x64xf32>, %s: tensor<?x?x64xf32>) {
  %r:2 = posenc.sincos #posenc.frequencies<dim = 128, base = 1.000000e+04> axes #posenc.axes<interleaved, [24, 20, 20]>
    positions(%p : tensor<3x?x?xi64>)
    outs(%c, %s : tensor<?x?x64xf32>, tensor<?x?x64xf32>)
  return
}

// CHECK-LABEL: func @sincos_axes_axial(
// CHECK: posenc.sincos <dim = 8, base = 1.000000e+04> axes <axial, [2, 2]>
// CHECK-SAME: positions(%arg0 : tensor<2xindex>) outs(%arg1, %arg2 : tensor<4xf32>, tensor<4xf32>){{$}}
func.func @sincos_axes_axial(%p: tensor<2xindex>, %c: tensor<4xf32>, %s: tensor<4xf32>) {
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8, base = 1.000000e+04> axes #posenc.axes<axial, [2, 2]>
    positions(%p : tensor<2xindex>)
    outs(%c, %s : tensor<4xf32>, tensor<4xf32>)
  return
}

// CHECK-LABEL: func @sincos_memref(
// CHECK: posenc.sincos <dim = 8, base = 1.000000e+04> positions(%arg0 : memref<?xi64>)
// CHECK-SAME: outs(%arg1, %arg2 : memref<?x4xf32>, memref<?x4xf32>){{$}}
// GENERIC-LABEL: sym_name = "sincos_memref"
// GENERIC: "posenc.sincos"(
// GENERIC-SAME: -> ()
func.func @sincos_memref(%p: memref<?xi64>, %c: memref<?x4xf32>, %s: memref<?x4xf32>) {
  posenc.sincos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : memref<?xi64>)
    outs(%c, %s : memref<?x4xf32>, memref<?x4xf32>)
  return
}

// CHECK-LABEL: func @sincos_memref_strided(
// CHECK: posenc.sincos <dim = 8, base = 1.000000e+04>
// CHECK-SAME: positions(%arg0 : memref<?xi32, strided<[?], offset: ?>>)
// CHECK-SAME: outs(%arg1, %arg2 : memref<?x4xbf16, strided<[?, 1], offset: ?>, 1>, memref<?x4xbf16, strided<[?, 1], offset: ?>, 1>){{$}}
func.func @sincos_memref_strided(%p: memref<?xi32, strided<[?], offset: ?>>, %c: memref<?x4xbf16, strided<[?, 1], offset: ?>, 1>, %s: memref<?x4xbf16, strided<[?, 1], offset: ?>, 1>) {
  posenc.sincos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : memref<?xi32, strided<[?], offset: ?>>)
    outs(%c, %s : memref<?x4xbf16, strided<[?, 1], offset: ?>, 1>, memref<?x4xbf16, strided<[?, 1], offset: ?>, 1>)
  return
}

// CHECK-LABEL: func @sincos_memref_scalar(
// CHECK: posenc.sincos <dim = 8, base = 1.000000e+04> positions(%arg0 : i64)
// CHECK-SAME: outs(%arg1, %arg2 : memref<16x4xf64>, memref<16x4xf64>){{$}}
func.func @sincos_memref_scalar(%p: i64, %c: memref<16x4xf64>, %s: memref<16x4xf64>) {
  posenc.sincos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : i64)
    outs(%c, %s : memref<16x4xf64>, memref<16x4xf64>)
  return
}

// Bufferization may give the destinations different layouts.
// CHECK-LABEL: func @sincos_memref_layouts(
// CHECK: posenc.sincos <dim = 8, base = 1.000000e+04> positions(%arg0 : i64)
// CHECK-SAME: outs(%arg1, %arg2 : memref<?x4xf32>, memref<?x4xf32, strided<[8, 1], offset: 4>>){{$}}
func.func @sincos_memref_layouts(%p: i64, %c: memref<?x4xf32>, %s: memref<?x4xf32, strided<[8, 1], offset: 4>>) {
  posenc.sincos #posenc.frequencies<dim = 8> positions(%p : i64)
    outs(%c, %s : memref<?x4xf32>, memref<?x4xf32, strided<[8, 1], offset: 4>>)
  return
}

// Canonicalization may make only one destination more static.
// CHECK-LABEL: func @sincos_half_static(
// CHECK: outs(%arg1, %arg2 : tensor<0x10xf32>, tensor<?x10xf32>)
func.func @sincos_half_static(%p: tensor<?xi64>, %c: tensor<0x10xf32>, %s: tensor<?x10xf32>) {
  %r:2 = posenc.sincos #posenc.frequencies<dim = 20> positions(%p : tensor<?xi64>)
    outs(%c, %s : tensor<0x10xf32>, tensor<?x10xf32>)
  return
}
