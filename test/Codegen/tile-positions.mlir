//===- tile-positions.mlir - tiles of positions ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --pass-pipeline='builtin.module(func.func(posenc-tile-positions))' | FileCheck %s

// Both tensors are in one loop, so that one table serves them.
// CHECK-LABEL: func.func @rope
// CHECK: scf.forall (%[[B:.*]], %[[S:.*]]) in (%{{.*}}, %{{.*}}) shared_outs
// CHECK-DAG: tensor.extract_slice %{{.*}}[%[[B]], %[[S]], 0, 0] [1, 1, 32, 64]
// CHECK-DAG: tensor.extract_slice %{{.*}}[%[[B]], %[[S]], 0, 0] [1, 1, 8, 64]
// CHECK: posenc.rope {{.*}} ins(%{{.*}}, %{{.*}} : tensor<1x1x32x64xf32>, tensor<1x1x8x64xf32>) positions(%{{.*}} : tensor<1x1xi64>)
// CHECK-NOT: posenc.rope
func.func @rope(%q: tensor<?x?x32x64xf32>, %k: tensor<?x?x8x64xf32>, %p: tensor<?x?xi64>) -> (tensor<?x?x32x64xf32>, tensor<?x?x8x64xf32>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 64> ins(%q, %k : tensor<?x?x32x64xf32>, tensor<?x?x8x64xf32>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%q, %k : tensor<?x?x32x64xf32>, tensor<?x?x8x64xf32>)
  return %r#0, %r#1 : tensor<?x?x32x64xf32>, tensor<?x?x8x64xf32>
}

// With few bytes per position, a tile of the innermost loop has eight
// positions.
// CHECK-LABEL: func.func @few
// CHECK: scf.forall {{.*}} step (1, 8)
// CHECK: posenc.rope {{.*}} : tensor<1x?x8x64xf32>) positions(%{{.*}} : tensor<1x?xi64>)
func.func @few(%q: tensor<?x?x8x64xf32>, %p: tensor<?x?xi64>) -> tensor<?x?x8x64xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 64> ins(%q : tensor<?x?x8x64xf32>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%q : tensor<?x?x8x64xf32>)
  return %r : tensor<?x?x8x64xf32>
}

// A scalar position increases with the loop index. A tile of a table has many
// rows, here 1024 rows of 64 bytes.
// CHECK-LABEL: func.func @scalar
// CHECK: scf.forall (%[[S:.*]]) = (0) to (%{{.*}}) step (1024)
// CHECK: %[[I:.*]] = arith.index_cast %[[S]] : index to i64
// CHECK: %[[P:.*]] = arith.addi %{{.*}}, %[[I]] : i64
// CHECK: posenc.sinusoidal {{.*}} positions(%[[P]] : i64)
func.func @scalar(%first: i64, %t: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 16> positions(%first : i64) outs(%t : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}

// -----

// Statically empty tensors give no tasks.
// CHECK-LABEL: func.func @empty
// CHECK-NOT: scf.forall
// CHECK: posenc.rope
func.func @empty(%x: tensor<?x0x8xf32>, %p: tensor<?xi64>) -> tensor<?x0x8xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<?x0x8xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x0x8xf32>)
  return %r : tensor<?x0x8xf32>
}
