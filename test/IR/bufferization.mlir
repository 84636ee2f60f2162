//===- bufferization.mlir - in-place bufferization of rotations -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   | FileCheck %s

#f = #posenc.frequencies<dim = 16, base = 1.000000e+04>

// Each tensor can be rotated in place, even if all have the same type.
// CHECK-LABEL: func.func @in_place(
// CHECK-SAME:    %[[Q:.*]]: memref<4x16xf32>, %[[K:.*]]: memref<4x2x16xf32>, %[[P:.*]]: memref<4xi64>)
// CHECK-NEXT:    posenc.rope {{.*}} ins(%[[Q]], %[[K]] : {{.*}} outs(%[[Q]], %[[K]] :
// CHECK-NEXT:    return %[[Q]], %[[K]]
func.func @in_place(%q: tensor<4x16xf32>, %k: tensor<4x2x16xf32>, %p: tensor<4xi64>) -> (tensor<4x16xf32>, tensor<4x2x16xf32>) {
  %r:2 = posenc.rope half #f ins(%q, %k : tensor<4x16xf32>, tensor<4x2x16xf32>) positions(%p : tensor<4xi64>) dims = [0]
    outs(%q, %k : tensor<4x16xf32>, tensor<4x2x16xf32>)
  return %r#0, %r#1 : tensor<4x16xf32>, tensor<4x2x16xf32>
}

// CHECK-LABEL: func.func @rotate_in_place(
// CHECK-SAME:    %[[X:.*]]: memref<?x16xf32>
// CHECK-NEXT:    posenc.rotate {{.*}} ins(%[[X]] : {{.*}} outs(%[[X]] :
// CHECK-NEXT:    return %[[X]]
func.func @rotate_in_place(%x: tensor<?x16xf32>, %c: tensor<?x8xf32>, %s: tensor<?x8xf32>) -> tensor<?x16xf32> {
  %r = posenc.rotate half ins(%x : tensor<?x16xf32>) tables(%c, %s : tensor<?x8xf32>) dims = [0] outs(%x : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}

// Swapped destinations: the first would be written before the second is read.
// CHECK-LABEL: func.func @not_swapped(
// CHECK-SAME:    %[[Q:.*]]: memref<4x16xf32>, %[[K:.*]]: memref<4x16xf32>, %[[P:.*]]: memref<4xi64>)
// CHECK-DAG:     %[[A:.*]] = memref.alloc()
// CHECK-DAG:     %[[B:.*]] = memref.alloc()
// CHECK:         posenc.rope {{.*}} ins(%[[Q]], %[[K]] : {{.*}} outs(%[[A]], %[[B]] :
func.func @not_swapped(%q: tensor<4x16xf32>, %k: tensor<4x16xf32>, %p: tensor<4xi64>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %r:2 = posenc.rope half #f ins(%q, %k : tensor<4x16xf32>, tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0]
    outs(%k, %q : tensor<4x16xf32>, tensor<4x16xf32>)
  return %r#0, %r#1 : tensor<4x16xf32>, tensor<4x16xf32>
}

// Two results are two buffers.
// CHECK-LABEL: func.func @not_one_table_for_both(
// CHECK-SAME:    %[[P:.*]]: memref<4xi64>, %[[C:.*]]: memref<4x8xf32>)
// CHECK:         %[[A:.*]] = memref.alloc()
// CHECK-NOT:     memref.copy
// CHECK:         posenc.sincos {{.*}} outs(%[[C]], %[[A]] :
func.func @not_one_table_for_both(%p: tensor<4xi64>, %c: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %cos, %sin = posenc.sincos #f positions(%p : tensor<4xi64>) outs(%c, %c : tensor<4x8xf32>, tensor<4x8xf32>)
  return %cos, %sin : tensor<4x8xf32>, tensor<4x8xf32>
}

// The input has later uses.
// CHECK-LABEL: func.func @not_while_used(
// CHECK-SAME:    %[[X:.*]]: memref<4x16xf32>
// CHECK:         %[[A:.*]] = memref.alloc()
// CHECK:         posenc.rope {{.*}} ins(%[[X]] : {{.*}} outs(%[[A]] :
// CHECK:         return %[[A]], %[[X]]
func.func @not_while_used(%x: tensor<4x16xf32>, %p: tensor<4xi64>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %r = posenc.rope half #f ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  return %r, %x : tensor<4x16xf32>, tensor<4x16xf32>
}
