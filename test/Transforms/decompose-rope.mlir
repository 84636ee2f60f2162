//===- decompose-rope.mlir - ropes become sincos and rotate ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-decompose-rope --split-input-file \
// RUN:   --mlir-print-local-scope | FileCheck %s

// One table serves all tensors; its sizes are those of the positions.
// CHECK-LABEL: func.func @two_tensors(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x?x32x128xbf16>, %[[K:.*]]: tensor<?x?x8x128xbf16>, %[[P:.*]]: tensor<?x?xi64>)
// CHECK-DAG:     %[[B:.*]] = tensor.dim %[[P]], %c0
// CHECK-DAG:     %[[S:.*]] = tensor.dim %[[P]], %c1
// CHECK:         %[[E0:.*]] = tensor.empty(%[[B]], %[[S]]) : tensor<?x?x64xf32>
// CHECK:         %[[E1:.*]] = tensor.empty(%[[B]], %[[S]]) : tensor<?x?x64xf32>
// CHECK:         %[[T:.*]]:2 = posenc.sincos <dim = 128, base = 5.000000e+05> positions(%[[P]] : tensor<?x?xi64>) outs(%[[E0]], %[[E1]] :
// CHECK-NEXT:    %[[R:.*]]:2 = posenc.rotate half ins(%[[Q]], %[[K]] : {{.*}}) tables(%[[T]]#0, %[[T]]#1 : tensor<?x?x64xf32>) dims = [0, 1] outs(%[[Q]], %[[K]] :
// CHECK-NEXT:    return %[[R]]#0, %[[R]]#1
func.func @two_tensors(%q: tensor<?x?x32x128xbf16>, %k: tensor<?x?x8x128xbf16>, %p: tensor<?x?xi64>)
    -> (tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 128, base = 5.000000e+05>
    ins(%q, %k : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>) positions(%p : tensor<?x?xi64>) dims = [0, 1]
    outs(%q, %k : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>)
  return %r#0, %r#1 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>
}

// -----

// CHECK-LABEL: func.func @f64(
// CHECK:         posenc.sincos <{{.*}}> positions({{.*}}) outs({{.*}} : tensor<4x8xf64>, tensor<4x8xf64>)
// CHECK:         posenc.rotate interleaved inverse ins(%{{.*}}) tables({{.*}} : tensor<4x8xf64>) dims = [1] offset = 3
func.func @f64(%x: tensor<2x4x20xf64>, %p: tensor<4xi32>) -> tensor<2x4x20xf64> {
  %r = posenc.rope interleaved inverse #posenc.frequencies<dim = 16, base = 1.000000e+04>
    ins(%x : tensor<2x4x20xf64>) positions(%p : tensor<4xi32>) dims = [1] offset = 3 outs(%x : tensor<2x4x20xf64>)
  return %r : tensor<2x4x20xf64>
}

// -----

// A scalar position increases along the dimension of the first tensor.
// CHECK-LABEL: func.func @scalar_position(
// CHECK-SAME:    %[[X:.*]]: tensor<3x?x16xf32>, %[[P:.*]]: index)
// CHECK:         %[[N:.*]] = tensor.dim %[[X]], %c1
// CHECK:         tensor.empty(%[[N]]) : tensor<?x8xf32>
// CHECK:         posenc.sincos <{{.*}}> positions(%[[P]] : index)
func.func @scalar_position(%x: tensor<3x?x16xf32>, %p: index) -> tensor<3x?x16xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 16, base = 1.000000e+04>
    ins(%x : tensor<3x?x16xf32>) positions(%p : index) dims = [1] outs(%x : tensor<3x?x16xf32>)
  return %r : tensor<3x?x16xf32>
}

// -----

// Tables have no dimension for axes.
// CHECK-LABEL: func.func @axes(
// CHECK:         posenc.sincos <{{.*}}> axes <axial, [4, 4]> positions({{.*}} : tensor<2x5x?xi64>) outs({{.*}} : tensor<5x?x8xf32>, tensor<5x?x8xf32>)
// CHECK:         posenc.rotate half
func.func @axes(%x: tensor<5x?x16xf32>, %p: tensor<2x5x?xi64>) -> tensor<5x?x16xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 16, base = 1.000000e+04> axes #posenc.axes<axial, [4, 4]>
    ins(%x : tensor<5x?x16xf32>) positions(%p : tensor<2x5x?xi64>) dims = [0, 1] outs(%x : tensor<5x?x16xf32>)
  return %r : tensor<5x?x16xf32>
}

// -----

// CHECK-LABEL: func.func @no_loops(
// CHECK:         posenc.sincos <{{.*}}> positions({{.*}} : tensor<i64>) outs({{.*}} : tensor<8xf32>, tensor<8xf32>)
// CHECK:         posenc.rotate half ins({{.*}}) tables({{.*}} : tensor<8xf32>) dims = []
func.func @no_loops(%x: tensor<5x16xf32>, %p: tensor<i64>) -> tensor<5x16xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 16, base = 1.000000e+04>
    ins(%x : tensor<5x16xf32>) positions(%p : tensor<i64>) dims = [] outs(%x : tensor<5x16xf32>)
  return %r : tensor<5x16xf32>
}

// -----

#y = #posenc.frequencies<dim = 16, base = 1.000000e+04,
  scaling = #posenc.yarn<factor = 4.000000e+00, original_max_position = 4.096000e+03, attention_factor = 2.000000e+00>>

// Tables with the factor 2 times 1/4 are tables with the factor 1/2.
// CHECK-LABEL: func.func @inverse_with_factor(
// CHECK:         %[[T:.*]]:2 = posenc.sincos
// CHECK:         %[[G:.*]]:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%[[T]]#0, %[[T]]#1 :
// CHECK-NEXT:    ^bb0(%[[C:.*]]: f32, %[[S:.*]]: f32):
// CHECK-NEXT:      %[[F:.*]] = arith.constant 2.500000e-01 : f32
// CHECK-NEXT:      %[[FC:.*]] = arith.mulf %[[C]], %[[F]]
// CHECK-NEXT:      %[[FS:.*]] = arith.mulf %[[S]], %[[F]]
// CHECK-NEXT:      linalg.yield %[[FC]], %[[FS]]
// CHECK:         posenc.rotate half inverse ins({{.*}}) tables(%[[G]]#0, %[[G]]#1 :
func.func @inverse_with_factor(%x: tensor<4x16xf32>, %p: tensor<4xi64>) -> tensor<4x16xf32> {
  %r = posenc.rope half inverse #y ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  return %r : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @forward_with_factor(
// CHECK-NOT:     linalg.generic
func.func @forward_with_factor(%x: tensor<4x16xf32>, %p: tensor<4xi64>) -> tensor<4x16xf32> {
  %r = posenc.rope half #y ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  return %r : tensor<4x16xf32>
}

// -----

// CHECK-LABEL: func.func @not_on_memrefs(
// CHECK-NEXT:    posenc.rope
func.func @not_on_memrefs(%x: memref<4x16xf32>, %p: memref<4xi64>) {
  posenc.rope half #posenc.frequencies<dim = 16, base = 1.000000e+04>
    ins(%x : memref<4x16xf32>) positions(%p : memref<4xi64>) dims = [0] outs(%x : memref<4x16xf32>)
  return
}

// Other ops are not changed.
// CHECK-LABEL: func.func @unrelated(
// CHECK:         arith.addi
func.func @unrelated() -> i64 {
  %c1 = arith.constant 1 : i64
  %r = arith.addi %c1, %c1 : i64
  return %r : i64
}
