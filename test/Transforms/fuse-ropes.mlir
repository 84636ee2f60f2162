//===- fuse-ropes.mlir - sincos and rotate become ropes -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-fuse-ropes --split-input-file \
// RUN:   --mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: func.func @rotate_of_sincos(
// CHECK-SAME:    %[[X:.*]]: tensor<?x8x64xbf16>, %[[P:.*]]: tensor<?xi64>, %[[C:.*]]: tensor<?x16xf32>
// CHECK-NEXT:    %[[R:.*]] = posenc.rope interleaved inverse <dim = 32, base = 1.000000e+04> ins(%[[X]] : tensor<?x8x64xbf16>) positions(%[[P]] : tensor<?xi64>) dims = [0] offset = 8 outs(%[[X]] : tensor<?x8x64xbf16>)
// CHECK-NEXT:    return %[[R]]
func.func @rotate_of_sincos(%x: tensor<?x8x64xbf16>, %p: tensor<?xi64>, %c: tensor<?x16xf32>) -> tensor<?x8x64xbf16> {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 32, base = 1.000000e+04>
    positions(%p : tensor<?xi64>) outs(%c, %c : tensor<?x16xf32>, tensor<?x16xf32>)
  %r = posenc.rotate interleaved inverse ins(%x : tensor<?x8x64xbf16>) tables(%cos, %sin : tensor<?x16xf32>)
    dims = [0] offset = 8 outs(%x : tensor<?x8x64xbf16>)
  return %r : tensor<?x8x64xbf16>
}

// -----

// Axes are supported, and dimensions in another order.
// CHECK-LABEL: func.func @axes(
// CHECK-NOT:     posenc.sincos
// CHECK:         posenc.rope half <dim = 16, base = 1.000000e+04> axes <contiguous, [3, 5]>
// CHECK-SAME:    positions(%{{.*}} : tensor<2x?x?xi32>) dims = [2, 0]
func.func @axes(%x: tensor<?x4x?x16xf64>, %p: tensor<2x?x?xi32>, %c: tensor<?x?x8xf64>) -> tensor<?x4x?x16xf64> {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 16, base = 1.000000e+04> axes #posenc.axes<contiguous, [3, 5]>
    positions(%p : tensor<2x?x?xi32>) outs(%c, %c : tensor<?x?x8xf64>, tensor<?x?x8xf64>)
  %r = posenc.rotate half ins(%x : tensor<?x4x?x16xf64>) tables(%cos, %sin : tensor<?x?x8xf64>)
    dims = [2, 0] outs(%x : tensor<?x4x?x16xf64>)
  return %r : tensor<?x4x?x16xf64>
}

// -----

// CHECK-LABEL: func.func @scalar_position(
// CHECK:         posenc.rope half <{{.*}}> ins(%{{.*}}) positions(%{{.*}} : i64) dims = [1]
func.func @scalar_position(%x: tensor<4x?x16xf32>, %p: i64, %c: tensor<?x8xf32>) -> tensor<4x?x16xf32> {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 16, base = 1.000000e+04>
    positions(%p : i64) outs(%c, %c : tensor<?x8xf32>, tensor<?x8xf32>)
  %r = posenc.rotate half ins(%x : tensor<4x?x16xf32>) tables(%cos, %sin : tensor<?x8xf32>)
    dims = [1] outs(%x : tensor<4x?x16xf32>)
  return %r : tensor<4x?x16xf32>
}

// -----

// Two rotations by one table become one rope, and the table is removed.
// CHECK-LABEL: func.func @queries_and_keys(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x32x128xf32>, %[[K:.*]]: tensor<?x8x128xf32>, %[[P:[^:]*]]: tensor<?xi64>
// CHECK-NEXT:    %[[R:.*]]:2 = posenc.rope half <dim = 128, base = 1.000000e+04> ins(%[[Q]], %[[K]] : tensor<?x32x128xf32>, tensor<?x8x128xf32>) positions(%[[P]] : tensor<?xi64>) dims = [0] outs(%[[Q]], %[[K]] :
// CHECK-NEXT:    return %[[R]]#0, %[[R]]#1
func.func @queries_and_keys(%q: tensor<?x32x128xf32>, %k: tensor<?x8x128xf32>, %p: tensor<?xi64>, %c: tensor<?x64xf32>)
    -> (tensor<?x32x128xf32>, tensor<?x8x128xf32>) {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 128, base = 1.000000e+04>
    positions(%p : tensor<?xi64>) outs(%c, %c : tensor<?x64xf32>, tensor<?x64xf32>)
  %0 = posenc.rotate half ins(%q : tensor<?x32x128xf32>) tables(%cos, %sin : tensor<?x64xf32>)
    dims = [0] outs(%q : tensor<?x32x128xf32>)
  %1 = posenc.rotate half ins(%k : tensor<?x8x128xf32>) tables(%cos, %sin : tensor<?x64xf32>)
    dims = [0] outs(%k : tensor<?x8x128xf32>)
  return %0, %1 : tensor<?x32x128xf32>, tensor<?x8x128xf32>
}

// -----

// Not fused: a rope of f32 tensors computes f32 tables, without the rounding of
// these tables to bf16.
// CHECK-LABEL: func.func @not_narrow_tables(
// CHECK:         posenc.rotate
// CHECK-NOT:     posenc.rope
func.func @not_narrow_tables(%x: tensor<?x16xf32>, %p: tensor<?xi64>, %c: tensor<?x8xbf16>) -> tensor<?x16xf32> {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 16, base = 1.000000e+04>
    positions(%p : tensor<?xi64>) outs(%c, %c : tensor<?x8xbf16>, tensor<?x8xbf16>)
  %r = posenc.rotate half ins(%x : tensor<?x16xf32>) tables(%cos, %sin : tensor<?x8xbf16>)
    dims = [0] outs(%x : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}

// -----

// CHECK-LABEL: func.func @not_f32_tables_of_f64(
// CHECK:         posenc.rotate
// CHECK-NOT:     posenc.rope
func.func @not_f32_tables_of_f64(%x: tensor<?x16xf64>, %p: tensor<?xi64>, %c: tensor<?x8xf32>) -> tensor<?x16xf64> {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 16, base = 1.000000e+04>
    positions(%p : tensor<?xi64>) outs(%c, %c : tensor<?x8xf32>, tensor<?x8xf32>)
  %r = posenc.rotate half ins(%x : tensor<?x16xf64>) tables(%cos, %sin : tensor<?x8xf32>)
    dims = [0] outs(%x : tensor<?x16xf64>)
  return %r : tensor<?x16xf64>
}

// -----

// Not fused: sine and cosine are swapped.
// CHECK-LABEL: func.func @not_swapped_tables(
// CHECK:         posenc.rotate
// CHECK-NOT:     posenc.rope
func.func @not_swapped_tables(%x: tensor<?x16xf32>, %p: tensor<?xi64>, %c: tensor<?x8xf32>) -> tensor<?x16xf32> {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 16, base = 1.000000e+04>
    positions(%p : tensor<?xi64>) outs(%c, %c : tensor<?x8xf32>, tensor<?x8xf32>)
  %r = posenc.rotate half ins(%x : tensor<?x16xf32>) tables(%sin, %cos : tensor<?x8xf32>)
    dims = [0] outs(%x : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}

// -----

// Not fused: cosines and sines of different positions.
// CHECK-LABEL: func.func @not_two_sincos(
// CHECK:         posenc.rotate
// CHECK-NOT:     posenc.rope
func.func @not_two_sincos(%x: tensor<?x16xf32>, %p: tensor<?xi64>, %q: tensor<?xi64>, %c: tensor<?x8xf32>) -> tensor<?x16xf32> {
  %0:2 = posenc.sincos #posenc.frequencies<dim = 16, base = 1.000000e+04>
    positions(%p : tensor<?xi64>) outs(%c, %c : tensor<?x8xf32>, tensor<?x8xf32>)
  %1:2 = posenc.sincos #posenc.frequencies<dim = 16, base = 1.000000e+04>
    positions(%q : tensor<?xi64>) outs(%c, %c : tensor<?x8xf32>, tensor<?x8xf32>)
  %r = posenc.rotate half ins(%x : tensor<?x16xf32>) tables(%0#0, %1#1 : tensor<?x8xf32>)
    dims = [0] outs(%x : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}

// -----

// Not fused: an inverse rope would divide by the square of the factor.
// CHECK-LABEL: func.func @not_inverse_with_factor(
// CHECK:         posenc.rotate half inverse
// CHECK-NOT:     posenc.rope
func.func @not_inverse_with_factor(%x: tensor<?x16xf32>, %p: tensor<?xi64>, %c: tensor<?x8xf32>) -> tensor<?x16xf32> {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 16, base = 1.000000e+04,
      scaling = #posenc.yarn<factor = 4.000000e+00, original_max_position = 4.096000e+03>>
    positions(%p : tensor<?xi64>) outs(%c, %c : tensor<?x8xf32>, tensor<?x8xf32>)
  %r = posenc.rotate half inverse ins(%x : tensor<?x16xf32>) tables(%cos, %sin : tensor<?x8xf32>)
    dims = [0] outs(%x : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}

// -----

// A forward rope multiplies by the same factor.
// CHECK-LABEL: func.func @forward_with_factor(
// CHECK:         posenc.rope half <dim = 16, base = 1.000000e+04, scaling = #posenc.yarn<
func.func @forward_with_factor(%x: tensor<?x16xf32>, %p: tensor<?xi64>, %c: tensor<?x8xf32>) -> tensor<?x16xf32> {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 16, base = 1.000000e+04,
      scaling = #posenc.yarn<factor = 4.000000e+00, original_max_position = 4.096000e+03>>
    positions(%p : tensor<?xi64>) outs(%c, %c : tensor<?x8xf32>, tensor<?x8xf32>)
  %r = posenc.rotate half ins(%x : tensor<?x16xf32>) tables(%cos, %sin : tensor<?x8xf32>)
    dims = [0] outs(%x : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}

// -----

// CHECK-LABEL: func.func @not_on_memrefs(
// CHECK:         posenc.sincos
// CHECK-COUNT-2: posenc.rotate
// CHECK-COUNT-2: posenc.rope
func.func @not_on_memrefs(%x: memref<4x16xf32>, %p: memref<4xi64>, %c: memref<4x8xf32>, %s: memref<4x8xf32>) {
  posenc.sincos #posenc.frequencies<dim = 16, base = 1.000000e+04>
    positions(%p : memref<4xi64>) outs(%c, %s : memref<4x8xf32>, memref<4x8xf32>)
  posenc.rotate half ins(%x : memref<4x16xf32>) tables(%c, %s : memref<4x8xf32>) dims = [0] outs(%x : memref<4x16xf32>)
  posenc.rotate half ins(%x : memref<4x16xf32>) tables(%c, %s : memref<4x8xf32>) dims = [0] outs(%x : memref<4x16xf32>)
  posenc.rope half #posenc.frequencies<dim = 16, base = 1.000000e+04>
    ins(%x : memref<4x16xf32>) positions(%p : memref<4xi64>) dims = [0] outs(%x : memref<4x16xf32>)
  posenc.rope half #posenc.frequencies<dim = 16, base = 1.000000e+04>
    ins(%x : memref<4x16xf32>) positions(%p : memref<4xi64>) dims = [0] outs(%x : memref<4x16xf32>)
  return
}
