//===- rotate-op.mlir - syntax of rotate ----------------------------------===//
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

// CHECK-LABEL: func @rotate(
// CHECK: posenc.rotate half ins(%arg0 : tensor<?x8x64xf32>)
// CHECK-SAME: tables(%arg1, %arg2 : tensor<?x32xf32>) dims = [0] outs(%arg3 : tensor<?x8x64xf32>){{$}}
// GENERIC-LABEL: sym_name = "rotate"
// GENERIC: "posenc.rotate"(
// GENERIC-SAME: <{dims = array<i64: 0>, offset = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1>, pairing = #posenc<pairing half>}>
// GENERIC-SAME: -> tensor<?x8x64xf32>
func.func @rotate(%x: tensor<?x8x64xf32>, %c: tensor<?x32xf32>, %s: tensor<?x32xf32>, %o: tensor<?x8x64xf32>) {
  %r = posenc.rotate half
    ins(%x : tensor<?x8x64xf32>)
    tables(%c, %s : tensor<?x32xf32>)
    dims = [0]
    outs(%o : tensor<?x8x64xf32>)
  return
}

// CHECK-LABEL: func @rotate_inverse_offset(
// CHECK: posenc.rotate interleaved inverse ins(%arg0 : tensor<?x8x64xf32>)
// CHECK-SAME: tables(%arg1, %arg2 : tensor<?x16xf32>) dims = [0] offset = 32
// CHECK-SAME: outs(%arg3 : tensor<?x8x64xf32>){{$}}
// GENERIC-LABEL: sym_name = "rotate_inverse_offset"
// GENERIC: <{dims = array<i64: 0>, inverse, offset = 32 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1>, pairing = #posenc<pairing interleaved>}>
func.func @rotate_inverse_offset(%x: tensor<?x8x64xf32>, %c: tensor<?x16xf32>, %s: tensor<?x16xf32>, %o: tensor<?x8x64xf32>) {
  %r = posenc.rotate interleaved inverse
    ins(%x : tensor<?x8x64xf32>)
    tables(%c, %s : tensor<?x16xf32>)
    dims = [0] offset = 32
    outs(%o : tensor<?x8x64xf32>)
  return
}

// CHECK-LABEL: func @rotate_f64(
// CHECK: posenc.rotate interleaved ins(%arg0 : tensor<2x3x4xf64>)
// CHECK-SAME: tables(%arg1, %arg2 : tensor<3x2xf64>) dims = [1] outs(%arg3 : tensor<2x3x4xf64>){{$}}
func.func @rotate_f64(%x: tensor<2x3x4xf64>, %c: tensor<3x2xf64>, %s: tensor<3x2xf64>, %o: tensor<2x3x4xf64>) {
  %r = posenc.rotate interleaved
    ins(%x : tensor<2x3x4xf64>)
    tables(%c, %s : tensor<3x2xf64>)
    dims = [1]
    outs(%o : tensor<2x3x4xf64>)
  return
}

// CHECK-LABEL: func @rotate_f64_narrow_tables(
// CHECK: posenc.rotate half ins(%arg0 : tensor<2x3x4xf64>)
// CHECK-SAME: tables(%arg1, %arg2 : tensor<2x2xf32>) dims = [0] outs(%arg3 : tensor<2x3x4xf64>){{$}}
func.func @rotate_f64_narrow_tables(%x: tensor<2x3x4xf64>, %c: tensor<2x2xf32>, %s: tensor<2x2xf32>, %o: tensor<2x3x4xf64>) {
  %r = posenc.rotate half
    ins(%x : tensor<2x3x4xf64>)
    tables(%c, %s : tensor<2x2xf32>)
    dims = [0]
    outs(%o : tensor<2x3x4xf64>)
  return
}

// CHECK-LABEL: func @rotate_f16(
// CHECK: posenc.rotate half ins(%arg0 : tensor<?x4xf16>)
// CHECK-SAME: tables(%arg1, %arg2 : tensor<?x2xf16>) dims = [0] outs(%arg3 : tensor<?x4xf16>){{$}}
func.func @rotate_f16(%x: tensor<?x4xf16>, %c: tensor<?x2xf16>, %s: tensor<?x2xf16>, %o: tensor<?x4xf16>) {
  %r = posenc.rotate half
    ins(%x : tensor<?x4xf16>)
    tables(%c, %s : tensor<?x2xf16>)
    dims = [0]
    outs(%o : tensor<?x4xf16>)
  return
}

// CHECK-LABEL: func @rotate_bf16_wide_tables(
// CHECK: posenc.rotate half ins(%arg0 : tensor<?x4xbf16>)
// CHECK-SAME: tables(%arg1, %arg2 : tensor<?x2xf32>) dims = [0] outs(%arg3 : tensor<?x4xbf16>){{$}}
func.func @rotate_bf16_wide_tables(%x: tensor<?x4xbf16>, %c: tensor<?x2xf32>, %s: tensor<?x2xf32>, %o: tensor<?x4xbf16>) {
  %r = posenc.rotate half
    ins(%x : tensor<?x4xbf16>)
    tables(%c, %s : tensor<?x2xf32>)
    dims = [0]
    outs(%o : tensor<?x4xbf16>)
  return
}

// CHECK-LABEL: func @rotate_two(
// CHECK: posenc.rotate half ins(%arg0, %arg1 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>)
// CHECK-SAME: tables(%arg2, %arg3 : tensor<?x?x64xf32>) dims = [0, 1]
// CHECK-SAME: outs(%arg4, %arg5 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>){{$}}
func.func @rotate_two(%x0: tensor<?x?x32x128xbf16>, %x1: tensor<?x?x8x128xbf16>, %c: tensor<?x?x64xf32>, %s: tensor<?x?x64xf32>, %o0: tensor<?x?x32x128xbf16>, %o1: tensor<?x?x8x128xbf16>) {
  %r:2 = posenc.rotate half
    ins(%x0, %x1 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>)
    tables(%c, %s : tensor<?x?x64xf32>)
    dims = [0, 1]
    outs(%o0, %o1 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>)
  return
}

// The tensors of a rotate op share only the dimensions of positions.
// CHECK-LABEL: func @rotate_two_ranks(
// CHECK: posenc.rotate half ins(%arg0, %arg1 : tensor<?x64xf32>, tensor<5x?x8x2x96xf32>)
// CHECK-SAME: tables(%arg2, %arg3 : tensor<?x32xf32>) dims = [0]
// CHECK-SAME: outs(%arg4, %arg5 : tensor<?x64xf32>, tensor<5x?x8x2x96xf32>){{$}}
func.func @rotate_two_ranks(%x0: tensor<?x64xf32>, %x1: tensor<5x?x8x2x96xf32>, %c: tensor<?x32xf32>, %s: tensor<?x32xf32>, %o0: tensor<?x64xf32>, %o1: tensor<5x?x8x2x96xf32>) {
  %r:2 = posenc.rotate half
    ins(%x0, %x1 : tensor<?x64xf32>, tensor<5x?x8x2x96xf32>)
    tables(%c, %s : tensor<?x32xf32>)
    dims = [0]
    outs(%o0, %o1 : tensor<?x64xf32>, tensor<5x?x8x2x96xf32>)
  return
}

// CHECK-LABEL: func @rotate_dims_swapped(
// CHECK: posenc.rotate half ins(%arg0 : tensor<?x?x4xf32>)
// CHECK-SAME: tables(%arg1, %arg2 : tensor<?x?x2xf32>) dims = [1, 0] outs(%arg3 : tensor<?x?x4xf32>){{$}}
func.func @rotate_dims_swapped(%x: tensor<?x?x4xf32>, %c: tensor<?x?x2xf32>, %s: tensor<?x?x2xf32>, %o: tensor<?x?x4xf32>) {
  %r = posenc.rotate half
    ins(%x : tensor<?x?x4xf32>)
    tables(%c, %s : tensor<?x?x2xf32>)
    dims = [1, 0]
    outs(%o : tensor<?x?x4xf32>)
  return
}

// A single row of the tables for all rows.
// CHECK-LABEL: func @rotate_one_position(
// CHECK: posenc.rotate half ins(%arg0 : tensor<3x5x4xf32>)
// CHECK-SAME: tables(%arg1, %arg2 : tensor<2xf32>) dims = [] outs(%arg3 : tensor<3x5x4xf32>){{$}}
func.func @rotate_one_position(%x: tensor<3x5x4xf32>, %c: tensor<2xf32>, %s: tensor<2xf32>, %o: tensor<3x5x4xf32>) {
  %r = posenc.rotate half
    ins(%x : tensor<3x5x4xf32>)
    tables(%c, %s : tensor<2xf32>)
    dims = []
    outs(%o : tensor<3x5x4xf32>)
  return
}

// CHECK-LABEL: func @rotate_mixed_static(
// CHECK: posenc.rotate half ins(%arg0 : tensor<?x3x4xf32>)
// CHECK-SAME: tables(%arg1, %arg2 : tensor<5x2xf32>) dims = [0] outs(%arg3 : tensor<5x?x4xf32>){{$}}
func.func @rotate_mixed_static(%x: tensor<?x3x4xf32>, %c: tensor<5x2xf32>, %s: tensor<5x2xf32>, %o: tensor<5x?x4xf32>) {
  %r = posenc.rotate half
    ins(%x : tensor<?x3x4xf32>)
    tables(%c, %s : tensor<5x2xf32>)
    dims = [0]
    outs(%o : tensor<5x?x4xf32>)
  return
}

// CHECK-LABEL: func @rotate_window_at_end(
// CHECK: posenc.rotate half ins(%arg0 : tensor<?x576xf32>)
// CHECK-SAME: tables(%arg1, %arg2 : tensor<?x32xf32>) dims = [0] offset = 512
// CHECK-SAME: outs(%arg3 : tensor<?x576xf32>){{$}}
func.func @rotate_window_at_end(%x: tensor<?x576xf32>, %c: tensor<?x32xf32>, %s: tensor<?x32xf32>, %o: tensor<?x576xf32>) {
  %r = posenc.rotate half
    ins(%x : tensor<?x576xf32>)
    tables(%c, %s : tensor<?x32xf32>)
    dims = [0] offset = 512
    outs(%o : tensor<?x576xf32>)
  return
}

// CHECK-LABEL: func @rotate_memref(
// CHECK: posenc.rotate half ins(%arg0 : memref<?x8x64xf32>)
// CHECK-SAME: tables(%arg1, %arg2 : memref<?x32xf32>) dims = [0] outs(%arg3 : memref<?x8x64xf32>){{$}}
// GENERIC-LABEL: sym_name = "rotate_memref"
// GENERIC: "posenc.rotate"(
// GENERIC-SAME: -> ()
func.func @rotate_memref(%x: memref<?x8x64xf32>, %c: memref<?x32xf32>, %s: memref<?x32xf32>, %o: memref<?x8x64xf32>) {
  posenc.rotate half
    ins(%x : memref<?x8x64xf32>)
    tables(%c, %s : memref<?x32xf32>)
    dims = [0]
    outs(%o : memref<?x8x64xf32>)
  return
}

// CHECK-LABEL: func @rotate_memref_strided(
// CHECK: posenc.rotate half ins(%arg0 : memref<?x64xf16, strided<[?, ?], offset: ?>>)
// CHECK-SAME: tables(%arg1, %arg2 : memref<?x32xf32, strided<[64, 2]>>) dims = [0]
// CHECK-SAME: outs(%arg3 : memref<?x64xf16, strided<[?, ?], offset: ?>>){{$}}
func.func @rotate_memref_strided(%x: memref<?x64xf16, strided<[?, ?], offset: ?>>, %c: memref<?x32xf32, strided<[64, 2]>>, %s: memref<?x32xf32, strided<[64, 2]>>, %o: memref<?x64xf16, strided<[?, ?], offset: ?>>) {
  posenc.rotate half
    ins(%x : memref<?x64xf16, strided<[?, ?], offset: ?>>)
    tables(%c, %s : memref<?x32xf32, strided<[64, 2]>>)
    dims = [0]
    outs(%o : memref<?x64xf16, strided<[?, ?], offset: ?>>)
  return
}

// Two explicit types of tables, and an explicit offset of 0.
// CHECK-LABEL: func @rotate_in_place(
// CHECK: posenc.rotate half ins(%arg0 : tensor<?x4xf32>) tables(%arg1, %arg2 : tensor<?x2xf32>)
// CHECK-SAME: dims = [0] outs(%arg0 : tensor<?x4xf32>) {test.note = "kept"}{{$}}
func.func @rotate_in_place(%x: tensor<?x4xf32>, %c: tensor<?x2xf32>, %s: tensor<?x2xf32>) -> tensor<?x4xf32> {
  %r = posenc.rotate half ins(%x : tensor<?x4xf32>)
    tables(%c, %s : tensor<?x2xf32>, tensor<?x2xf32>) dims = [0] offset = 0
    outs(%x : tensor<?x4xf32>) {test.note = "kept"}
  return %r : tensor<?x4xf32>
}

// CHECK-LABEL: func @rotate_memref_layouts(
// CHECK: posenc.rotate half ins(%arg0 : memref<?x8xf32>)
// CHECK-SAME: tables(%arg1, %arg2 : memref<?x4xf32>, memref<?x4xf32, strided<[8, 1], offset: 4>>)
// CHECK-SAME: dims = [0] outs(%arg0 : memref<?x8xf32>){{$}}
func.func @rotate_memref_layouts(%x: memref<?x8xf32>, %c: memref<?x4xf32>, %s: memref<?x4xf32, strided<[8, 1], offset: 4>>) {
  posenc.rotate half ins(%x : memref<?x8xf32>)
    tables(%c, %s : memref<?x4xf32>, memref<?x4xf32, strided<[8, 1], offset: 4>>) dims = [0]
    outs(%x : memref<?x8xf32>)
  return
}

// Canonicalization may make only one table more static.
// CHECK-LABEL: func @rotate_half_static(
// CHECK: tables(%arg1, %arg2 : tensor<5x4xf32>, tensor<?x4xf32>)
func.func @rotate_half_static(%x: tensor<?x8xf32>, %c: tensor<5x4xf32>, %s: tensor<?x4xf32>) {
  %r = posenc.rotate half ins(%x : tensor<?x8xf32>)
    tables(%c, %s : tensor<5x4xf32>, tensor<?x4xf32>) dims = [0] outs(%x : tensor<?x8xf32>)
  return
}

// CHECK-LABEL: func @rotate_full_tables(
// CHECK: posenc.rotate half inverse full_tables ins(%arg0 : tensor<?x8x64xf32>)
// CHECK-SAME: tables(%arg1, %arg2 : tensor<?x32xf32>) dims = [0] offset = 32
// CHECK-SAME: outs(%arg3 : tensor<?x8x64xf32>){{$}}
// GENERIC-LABEL: sym_name = "rotate_full_tables"
// GENERIC: <{dims = array<i64: 0>, full_tables, inverse, offset = 32 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1>, pairing = #posenc<pairing half>}>
func.func @rotate_full_tables(%x: tensor<?x8x64xf32>, %c: tensor<?x32xf32>, %s: tensor<?x32xf32>, %o: tensor<?x8x64xf32>) {
  %r = posenc.rotate half inverse full_tables
    ins(%x : tensor<?x8x64xf32>)
    tables(%c, %s : tensor<?x32xf32>)
    dims = [0] offset = 32
    outs(%o : tensor<?x8x64xf32>)
  return
}
