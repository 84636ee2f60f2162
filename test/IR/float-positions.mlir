//===- float-positions.mlir - positions and angles of floats --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --mlir-print-local-scope | posenc-opt --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --canonicalize --mlir-print-local-scope | FileCheck %s --check-prefix=FOLDS

#f = #posenc.frequencies<dim = 8>
#h = #posenc.frequencies<dim = 8, precision = hf_f32>
#exact = #posenc.frequencies<dim = 8, precision = exact>

// CHECK-LABEL: func.func @coordinates(
// CHECK:         posenc.rope half <dim = 8, base = 1.000000e+04> axes <axial, [2, 2]>
// CHECK-SAME:      positions(%{{.*}} : tensor<2x?xf32>)
func.func @coordinates(%x: tensor<?x8xf32>, %p: tensor<2x?xf32>) -> tensor<?x8xf32> {
  %r = posenc.rope half #exact axes <axial, [2, 2]> ins(%x : tensor<?x8xf32>) positions(%p : tensor<2x?xf32>) dims = [0] outs(%x : tensor<?x8xf32>)
  return %r : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @rounded(
// CHECK:         posenc.rope half <dim = 8, base = 1.000000e+04, precision = hf_f32>
func.func @rounded(%x: tensor<?x8xf32>, %p: tensor<?xi64>) -> tensor<?x8xf32> {
  %r = posenc.rope half #h ins(%x : tensor<?x8xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x8xf32>)
  return %r : tensor<?x8xf32>
}

// FOLDS-LABEL: func.func @zero(
// FOLDS-NEXT:    return %arg0
func.func @zero(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %p = arith.constant dense<0.0> : tensor<4xf32>
  %r = posenc.rope half #f ins(%x : tensor<4x8xf32>) positions(%p : tensor<4xf32>) dims = [0] outs(%x : tensor<4x8xf32>)
  return %r : tensor<4x8xf32>
}

// A sum of floats would be rounded.
// FOLDS-LABEL: func.func @not_sum_of_floats(
// FOLDS-COUNT-2: posenc.rope
func.func @not_sum_of_floats(%x: tensor<4x8xf32>, %p: tensor<4xf32>, %q: tensor<4xf32>) -> tensor<4x8xf32> {
  %a = posenc.rope half #f ins(%x : tensor<4x8xf32>) positions(%p : tensor<4xf32>) dims = [0] outs(%x : tensor<4x8xf32>)
  %r = posenc.rope half #f ins(%a : tensor<4x8xf32>) positions(%q : tensor<4xf32>) dims = [0] outs(%a : tensor<4x8xf32>)
  return %r : tensor<4x8xf32>
}

// The rounded angle of a sum is not the sum of the rounded angles.
// FOLDS-LABEL: func.func @not_sum_of_rounded(
// FOLDS-COUNT-2: posenc.rope
func.func @not_sum_of_rounded(%x: tensor<4x8xf32>, %p: tensor<4xi64>, %q: tensor<4xi64>) -> tensor<4x8xf32> {
  %a = posenc.rope half #h ins(%x : tensor<4x8xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x8xf32>)
  %r = posenc.rope half #h ins(%a : tensor<4x8xf32>) positions(%q : tensor<4xi64>) dims = [0] outs(%a : tensor<4x8xf32>)
  return %r : tensor<4x8xf32>
}

// FOLDS-LABEL: func.func @not_shifted(
// FOLDS:         posenc.sinusoidal
// FOLDS:         posenc.rope
func.func @not_shifted(%t: tensor<4x8xf32>, %p: tensor<4xi64>, %q: tensor<4xi64>) -> tensor<4x8xf32> {
  %a = posenc.sinusoidal sin_cos #h positions(%p : tensor<4xi64>) outs(%t : tensor<4x8xf32>)
  %r = posenc.rope half #h ins(%a : tensor<4x8xf32>) positions(%q : tensor<4xi64>) dims = [0] outs(%a : tensor<4x8xf32>)
  return %r : tensor<4x8xf32>
}
