//===- rope-ops.mlir - syntax of rope -------------------------------------===//
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

// CHECK-LABEL: func @rope(
// CHECK: posenc.rope half <dim = 128, base = 5.000000e+05>
// CHECK-SAME: ins(%arg0, %arg1 : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>)
// CHECK-SAME: positions(%arg2 : tensor<?x?xi64>) dims = [0, 1]
// CHECK-SAME: outs(%arg3, %arg4 : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>){{$}}
// GENERIC-LABEL: sym_name = "rope"
// GENERIC: "posenc.rope"(
// GENERIC-SAME: <{dims = array<i64: 0, 1>, frequencies = #posenc.frequencies<dim = 128, base = 5.000000e+05>, offset = 0 : i64, operandSegmentSizes = array<i32: 2, 1, 0, 2>, pairing = #posenc<pairing half>}>
// GENERIC-SAME: -> (tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>)
func.func @rope(%x0: tensor<?x?x32x128xf32>, %x1: tensor<?x?x8x128xf32>, %p: tensor<?x?xi64>, %o0: tensor<?x?x32x128xf32>, %o1: tensor<?x?x8x128xf32>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 128, base = 5.000000e+05>
    ins(%x0, %x1 : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>)
    positions(%p : tensor<?x?xi64>)
    dims = [0, 1]
    outs(%o0, %o1 : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>)
  return
}

// CHECK-LABEL: func @rope_interleaved_inverse_offset(
// CHECK: posenc.rope interleaved inverse <dim = 8, base = 1.000000e+04>
// CHECK-SAME: ins(%arg0 : tensor<?x24xf32>) positions(%arg1 : tensor<?xi64>) dims = [0] offset = 16
// CHECK-SAME: outs(%arg2 : tensor<?x24xf32>){{$}}
// GENERIC-LABEL: sym_name = "rope_interleaved_inverse_offset"
// GENERIC: "posenc.rope"
// GENERIC-SAME: inverse, offset = 16 : i64
// GENERIC-SAME: pairing = #posenc<pairing interleaved>
func.func @rope_interleaved_inverse_offset(%x: tensor<?x24xf32>, %p: tensor<?xi64>, %o: tensor<?x24xf32>) {
  %r = posenc.rope interleaved inverse #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x : tensor<?x24xf32>)
    positions(%p : tensor<?xi64>)
    dims = [0] offset = 16
    outs(%o : tensor<?x24xf32>)
  return
}

// CHECK-LABEL: func @rope_f64(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04> ins(%arg0 : tensor<2x3x8xf64>)
// CHECK-SAME: positions(%arg1 : tensor<3xi64>) dims = [1] outs(%arg2 : tensor<2x3x8xf64>){{$}}
func.func @rope_f64(%x: tensor<2x3x8xf64>, %p: tensor<3xi64>, %o: tensor<2x3x8xf64>) {
  %r = posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x : tensor<2x3x8xf64>)
    positions(%p : tensor<3xi64>)
    dims = [1]
    outs(%o : tensor<2x3x8xf64>)
  return
}

// CHECK-LABEL: func @rope_f16_i32(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04> ins(%arg0 : tensor<?x8xf16>)
// CHECK-SAME: positions(%arg1 : tensor<?xi32>) dims = [0] outs(%arg2 : tensor<?x8xf16>){{$}}
func.func @rope_f16_i32(%x: tensor<?x8xf16>, %p: tensor<?xi32>, %o: tensor<?x8xf16>) {
  %r = posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x : tensor<?x8xf16>)
    positions(%p : tensor<?xi32>)
    dims = [0]
    outs(%o : tensor<?x8xf16>)
  return
}

// CHECK-LABEL: func @rope_bf16_index(
// CHECK: posenc.rope interleaved <dim = 8, base = 1.000000e+04> ins(%arg0 : tensor<?x8xbf16>)
// CHECK-SAME: positions(%arg1 : tensor<?xindex>) dims = [0] outs(%arg2 : tensor<?x8xbf16>){{$}}
func.func @rope_bf16_index(%x: tensor<?x8xbf16>, %p: tensor<?xindex>, %o: tensor<?x8xbf16>) {
  %r = posenc.rope interleaved #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x : tensor<?x8xbf16>)
    positions(%p : tensor<?xindex>)
    dims = [0]
    outs(%o : tensor<?x8xbf16>)
  return
}

// CHECK-LABEL: func @rope_scalar_i64(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04> ins(%arg0 : tensor<2x?x8xf32>)
// CHECK-SAME: positions(%arg1 : i64) dims = [1] outs(%arg2 : tensor<2x?x8xf32>){{$}}
func.func @rope_scalar_i64(%x: tensor<2x?x8xf32>, %p: i64, %o: tensor<2x?x8xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x : tensor<2x?x8xf32>)
    positions(%p : i64)
    dims = [1]
    outs(%o : tensor<2x?x8xf32>)
  return
}

// CHECK-LABEL: func @rope_scalar_i32(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04> ins(%arg0 : tensor<2x?x8xf32>)
// CHECK-SAME: positions(%arg1 : i32) dims = [1] outs(%arg2 : tensor<2x?x8xf32>){{$}}
func.func @rope_scalar_i32(%x: tensor<2x?x8xf32>, %p: i32, %o: tensor<2x?x8xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x : tensor<2x?x8xf32>)
    positions(%p : i32)
    dims = [1]
    outs(%o : tensor<2x?x8xf32>)
  return
}

// CHECK-LABEL: func @rope_scalar_index(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04> ins(%arg0 : tensor<2x?x8xf32>)
// CHECK-SAME: positions(%arg1 : index) dims = [1] outs(%arg2 : tensor<2x?x8xf32>){{$}}
func.func @rope_scalar_index(%x: tensor<2x?x8xf32>, %p: index, %o: tensor<2x?x8xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x : tensor<2x?x8xf32>)
    positions(%p : index)
    dims = [1]
    outs(%o : tensor<2x?x8xf32>)
  return
}

// A single position for all rows.
// CHECK-LABEL: func @rope_one_position(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04> ins(%arg0 : tensor<2x3x8xf32>)
// CHECK-SAME: positions(%arg1 : tensor<i64>) dims = [] outs(%arg2 : tensor<2x3x8xf32>){{$}}
func.func @rope_one_position(%x: tensor<2x3x8xf32>, %p: tensor<i64>, %o: tensor<2x3x8xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x : tensor<2x3x8xf32>)
    positions(%p : tensor<i64>)
    dims = []
    outs(%o : tensor<2x3x8xf32>)
  return
}

// CHECK-LABEL: func @rope_heads_first(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04>
// CHECK-SAME: ins(%arg0, %arg1 : tensor<?x32x?x8xf32>, tensor<?x8x?x8xf32>)
// CHECK-SAME: positions(%arg2 : tensor<?x?xi64>) dims = [0, 2]
// CHECK-SAME: outs(%arg3, %arg4 : tensor<?x32x?x8xf32>, tensor<?x8x?x8xf32>){{$}}
func.func @rope_heads_first(%x0: tensor<?x32x?x8xf32>, %x1: tensor<?x8x?x8xf32>, %p: tensor<?x?xi64>, %o0: tensor<?x32x?x8xf32>, %o1: tensor<?x8x?x8xf32>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x0, %x1 : tensor<?x32x?x8xf32>, tensor<?x8x?x8xf32>)
    positions(%p : tensor<?x?xi64>)
    dims = [0, 2]
    outs(%o0, %o1 : tensor<?x32x?x8xf32>, tensor<?x8x?x8xf32>)
  return
}

// CHECK-LABEL: func @rope_dims_swapped(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04> ins(%arg0 : tensor<?x?x8xf32>)
// CHECK-SAME: positions(%arg1 : tensor<?x?xi64>) dims = [1, 0] outs(%arg2 : tensor<?x?x8xf32>){{$}}
func.func @rope_dims_swapped(%x: tensor<?x?x8xf32>, %p: tensor<?x?xi64>, %o: tensor<?x?x8xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x : tensor<?x?x8xf32>)
    positions(%p : tensor<?x?xi64>)
    dims = [1, 0]
    outs(%o : tensor<?x?x8xf32>)
  return
}

// CHECK-LABEL: func @rope_two_ranks(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04>
// CHECK-SAME: ins(%arg0, %arg1 : tensor<?x8xf32>, tensor<?x4x2x16xf32>)
// CHECK-SAME: positions(%arg2 : tensor<?xi64>) dims = [0]
// CHECK-SAME: outs(%arg3, %arg4 : tensor<?x8xf32>, tensor<?x4x2x16xf32>){{$}}
func.func @rope_two_ranks(%x0: tensor<?x8xf32>, %x1: tensor<?x4x2x16xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>, %o1: tensor<?x4x2x16xf32>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x0, %x1 : tensor<?x8xf32>, tensor<?x4x2x16xf32>)
    positions(%p : tensor<?xi64>)
    dims = [0]
    outs(%o0, %o1 : tensor<?x8xf32>, tensor<?x4x2x16xf32>)
  return
}

// CHECK-LABEL: func @rope_mixed_static(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04> ins(%arg0 : tensor<?x3x8xf32>)
// CHECK-SAME: positions(%arg1 : tensor<5xi64>) dims = [0] outs(%arg2 : tensor<5x?x8xf32>){{$}}
func.func @rope_mixed_static(%x: tensor<?x3x8xf32>, %p: tensor<5xi64>, %o: tensor<5x?x8xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x : tensor<?x3x8xf32>)
    positions(%p : tensor<5xi64>)
    dims = [0]
    outs(%o : tensor<5x?x8xf32>)
  return
}

// CHECK-LABEL: func @rope_empty(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04> ins(%arg0 : tensor<0x0x8xf32>)
// CHECK-SAME: positions(%arg1 : tensor<0xi64>) dims = [0] outs(%arg2 : tensor<0x0x8xf32>){{$}}
func.func @rope_empty(%x: tensor<0x0x8xf32>, %p: tensor<0xi64>, %o: tensor<0x0x8xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x : tensor<0x0x8xf32>)
    positions(%p : tensor<0xi64>)
    dims = [0]
    outs(%o : tensor<0x0x8xf32>)
  return
}

// CHECK-LABEL: func @rope_axes_contiguous(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04> axes <contiguous, [2, 1, 1]>
// CHECK-SAME: ins(%arg0 : tensor<?x?x8xf32>) positions(%arg1 : tensor<3x?xi64>) dims = [1]
// CHECK-SAME: outs(%arg2 : tensor<?x?x8xf32>){{$}}
func.func @rope_axes_contiguous(%x: tensor<?x?x8xf32>, %p: tensor<3x?xi64>, %o: tensor<?x?x8xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04> axes #posenc.axes<contiguous, [2, 1, 1]>
    ins(%x : tensor<?x?x8xf32>)
    positions(%p : tensor<3x?xi64>)
    dims = [1]
    outs(%o : tensor<?x?x8xf32>)
  return
}

// CHECK-LABEL: func @rope_axes_interleaved(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04> axes <interleaved, [2, 1, 1]>
// CHECK-SAME: ins(%arg0 : tensor<?x?x8xf32>) positions(%arg1 : tensor<3x?xi64>) dims = [1]
// CHECK-SAME: outs(%arg2 : tensor<?x?x8xf32>){{$}}
func.func @rope_axes_interleaved(%x: tensor<?x?x8xf32>, %p: tensor<3x?xi64>, %o: tensor<?x?x8xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04> axes #posenc.axes<interleaved, [2, 1, 1]>
    ins(%x : tensor<?x?x8xf32>)
    positions(%p : tensor<3x?xi64>)
    dims = [1]
    outs(%o : tensor<?x?x8xf32>)
  return
}

// CHECK-LABEL: func @rope_axes_axial(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04> axes <axial, [1, 1, 2]>
// CHECK-SAME: ins(%arg0 : tensor<?x?x8xf32>) positions(%arg1 : tensor<3x?xi64>) dims = [1]
// CHECK-SAME: outs(%arg2 : tensor<?x?x8xf32>){{$}}
// GENERIC-LABEL: sym_name = "rope_axes_axial"
// GENERIC: <{axes = #posenc.axes<axial, [1, 1, 2]>, dims = array<i64: 1>
func.func @rope_axes_axial(%x: tensor<?x?x8xf32>, %p: tensor<3x?xi64>, %o: tensor<?x?x8xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04> axes #posenc.axes<axial, [1, 1, 2]>
    ins(%x : tensor<?x?x8xf32>)
    positions(%p : tensor<3x?xi64>)
    dims = [1]
    outs(%o : tensor<?x?x8xf32>)
  return
}

// CHECK-LABEL: func @rope_axes_one_position(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04> axes <axial, [2, 2]>
// CHECK-SAME: ins(%arg0 : tensor<?x?x8xf32>) positions(%arg1 : tensor<2xi32>) dims = []
// CHECK-SAME: outs(%arg2 : tensor<?x?x8xf32>){{$}}
func.func @rope_axes_one_position(%x: tensor<?x?x8xf32>, %p: tensor<2xi32>, %o: tensor<?x?x8xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04> axes #posenc.axes<axial, [2, 2]>
    ins(%x : tensor<?x?x8xf32>)
    positions(%p : tensor<2xi32>)
    dims = []
    outs(%o : tensor<?x?x8xf32>)
  return
}

// The maximum number of tensors.
// CHECK-LABEL: func @rope_sixteen(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04>
// CHECK-SAME: ins(%arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
// CHECK-SAME: positions(%arg1 : tensor<?xi64>) dims = [0]
// CHECK-SAME: outs(%arg2, %arg2, %arg2, %arg2, %arg2, %arg2, %arg2, %arg2, %arg2, %arg2, %arg2, %arg2, %arg2, %arg2, %arg2, %arg2 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>){{$}}
func.func @rope_sixteen(%x0: tensor<?x8xf32>, %p: tensor<?xi64>, %o0: tensor<?x8xf32>) {
  %r:16 = posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0, %x0 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
    positions(%p : tensor<?xi64>)
    dims = [0]
    outs(%o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0, %o0 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
  return
}

// CHECK-LABEL: func @rope_greatest_dim(
// CHECK: posenc.rope half <dim = 65536, base = 1.000000e+04> ins(%arg0 : tensor<?x65536xf16>)
// CHECK-SAME: positions(%arg1 : tensor<?xi64>) dims = [0] outs(%arg2 : tensor<?x65536xf16>){{$}}
func.func @rope_greatest_dim(%x: tensor<?x65536xf16>, %p: tensor<?xi64>, %o: tensor<?x65536xf16>) {
  %r = posenc.rope half #posenc.frequencies<dim = 65536, base = 1.000000e+04>
    ins(%x : tensor<?x65536xf16>)
    positions(%p : tensor<?xi64>)
    dims = [0]
    outs(%o : tensor<?x65536xf16>)
  return
}

// CHECK-LABEL: func @rope_memref(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04> ins(%arg0 : memref<?x8x64xf32>)
// CHECK-SAME: positions(%arg1 : memref<?xi64>) dims = [0] outs(%arg2 : memref<?x8x64xf32>){{$}}
// GENERIC-LABEL: sym_name = "rope_memref"
// GENERIC: "posenc.rope"(
// GENERIC-SAME: -> ()
func.func @rope_memref(%x: memref<?x8x64xf32>, %p: memref<?xi64>, %o: memref<?x8x64xf32>) {
  posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x : memref<?x8x64xf32>)
    positions(%p : memref<?xi64>)
    dims = [0]
    outs(%o : memref<?x8x64xf32>)
  return
}

// CHECK-LABEL: func @rope_memref_strided(
// CHECK: posenc.rope half <dim = 8, base = 1.000000e+04>
// CHECK-SAME: ins(%arg0, %arg1 : memref<?x8xbf16, strided<[?, ?], offset: ?>>, memref<?x4x8xbf16, 3>)
// CHECK-SAME: positions(%arg2 : memref<?xi32, strided<[?]>>) dims = [0]
// CHECK-SAME: outs(%arg3, %arg4 : memref<?x8xbf16, strided<[?, ?], offset: ?>>, memref<?x4x8xbf16, 3>){{$}}
func.func @rope_memref_strided(%x0: memref<?x8xbf16, strided<[?, ?], offset: ?>>, %x1: memref<?x4x8xbf16, 3>, %p: memref<?xi32, strided<[?]>>, %o0: memref<?x8xbf16, strided<[?, ?], offset: ?>>, %o1: memref<?x4x8xbf16, 3>) {
  posenc.rope half #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x0, %x1 : memref<?x8xbf16, strided<[?, ?], offset: ?>>, memref<?x4x8xbf16, 3>)
    positions(%p : memref<?xi32, strided<[?]>>)
    dims = [0]
    outs(%o0, %o1 : memref<?x8xbf16, strided<[?, ?], offset: ?>>, memref<?x4x8xbf16, 3>)
  return
}

// CHECK-LABEL: func @rope_memref_scalar(
// CHECK: posenc.rope half inverse <dim = 8, base = 1.000000e+04> ins(%arg0 : memref<?x8xf64>)
// CHECK-SAME: positions(%arg1 : index) dims = [0] outs(%arg2 : memref<?x8xf64>){{$}}
func.func @rope_memref_scalar(%x: memref<?x8xf64>, %p: index, %o: memref<?x8xf64>) {
  posenc.rope half inverse #posenc.frequencies<dim = 8, base = 1.000000e+04>
    ins(%x : memref<?x8xf64>)
    positions(%p : index)
    dims = [0]
    outs(%o : memref<?x8xf64>)
  return
}

// Frequencies and axes as full attributes, without their prefix, or as aliases.
#f = #posenc.frequencies<dim = 8>
#a = #posenc.axes<axial, [2, 2]>
// CHECK-LABEL: func @spellings(
// CHECK-COUNT-3: posenc.rope half <dim = 8, base = 1.000000e+04> axes <axial, [2, 2]> ins
func.func @spellings(%x: memref<?x8xf32>, %p: memref<2x?xi64>) {
  posenc.rope half #posenc.frequencies<dim = 8> axes #posenc.axes<axial, [2, 2]>
    ins(%x : memref<?x8xf32>) positions(%p : memref<2x?xi64>) dims = [0] outs(%x : memref<?x8xf32>)
  posenc.rope half <dim = 8> axes <axial, [2, 2]>
    ins(%x : memref<?x8xf32>) positions(%p : memref<2x?xi64>) dims = [0] outs(%x : memref<?x8xf32>)
  posenc.rope half #f axes #a
    ins(%x : memref<?x8xf32>) positions(%p : memref<2x?xi64>) dims = [0] outs(%x : memref<?x8xf32>)
  return
}

// The generic form, with an implicit and an explicit default offset.
// CHECK-LABEL: func @from_generic(
// CHECK-COUNT-2: posenc.rope interleaved inverse <dim = 8, base = 1.000000e+04> ins(%arg0 : tensor<?x8xf32>) positions(%arg1 : tensor<?xi64>) dims = [0] outs(%arg0 : tensor<?x8xf32>){{$}}
// CHECK: posenc.rotate half ins(%arg0 : tensor<?x8xf32>) tables(%arg2, %arg2 : tensor<?x2xf32>) dims = [0] offset = 4 outs(%arg0 : tensor<?x8xf32>){{$}}
func.func @from_generic(%x: tensor<?x8xf32>, %p: tensor<?xi64>, %t: tensor<?x2xf32>) {
  %0 = "posenc.rope"(%x, %p, %x) <{
    dims = array<i64: 0>, frequencies = #posenc.frequencies<dim = 8>, inverse,
    operandSegmentSizes = array<i32: 1, 1, 0, 1>, pairing = #posenc<pairing interleaved>
  }> : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = "posenc.rope"(%x, %p, %x) <{
    dims = array<i64: 0>, frequencies = #posenc.frequencies<dim = 8>, inverse, offset = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 1>, pairing = #posenc<pairing interleaved>
  }> : (tensor<?x8xf32>, tensor<?xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = "posenc.rotate"(%x, %t, %t, %x) <{
    dims = array<i64: 0>, offset = 4 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1>, pairing = #posenc<pairing half>
  }> : (tensor<?x8xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}
