//===- rope-streams.mlir - ropes with several memory streams --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-decompose-rotations="block-positions=32 block-below=65536" --posenc-vectorize-tiles="block-positions=32 block-below=65536" --convert-posenc-tables-to-vector="block-positions=32 block-below=65536" | FileCheck %s

// Blocks of 32 positions of 16 KiB. For tensors in memory, the rows of the four
// quarters of a block are processed in turn, each with a prefetch of its next
// row; for tensors in the cache, rows are processed in order.
// CHECK-LABEL: func.func @large
// CHECK: arith.minui
// CHECK: %[[COUNT:.*]] = arith.maxui
// CHECK: scf.if
// CHECK: %[[STREAMS:.*]] = arith.constant 4 : index
// CHECK: %[[LENGTH:.*]] = arith.ceildivui %[[COUNT]], %[[STREAMS]]
// CHECK: scf.for %[[FIRST:.*]] = %{{.*}} to %[[LENGTH]]
// CHECK: %[[REST:.*]] = arith.subi %[[COUNT]], %[[FIRST]]
// CHECK: %[[PLACES:.*]] = arith.ceildivui %[[REST]], %[[LENGTH]]
// CHECK: scf.for %[[HEAD:.*]] = %{{.*}} to %{{.*}}
// CHECK: scf.for %[[PLACE:.*]] = %{{.*}} to %[[PLACES]]
// CHECK: %[[BEFORE:.*]] = arith.muli %[[PLACE]], %[[LENGTH]]
// CHECK: %[[SLOT:.*]] = arith.addi %[[BEFORE]], %[[FIRST]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[HEAD]], %c1
// CHECK: memref.prefetch %{{.*}}[%{{.*}}, %[[NEXT]], %{{.*}}]
// CHECK: } else {
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[COUNT]]
func.func @large(%x: memref<?x32x128xf32>, %p: memref<?xi64>) {
  posenc.rope half #posenc.frequencies<dim = 128> ins(%x : memref<?x32x128xf32>) positions(%p : memref<?xi64>) dims = [0] outs(%x : memref<?x32x128xf32>)
  return
}

// If heads precede positions, the rows of four heads at a position are
// processed in turn, each with a prefetch of the next position's row.
// CHECK-LABEL: func.func @apart
// CHECK: scf.if
// CHECK: %[[LENGTH:.*]] = arith.ceildivui %{{.*}}, %c4
// CHECK: scf.for %[[FIRST:.*]] = %{{.*}} to %[[LENGTH]]
// CHECK: scf.for %[[SLOT:.*]] = %{{.*}} to %{{.*}}
// CHECK: scf.for %[[PLACE:.*]] = %{{.*}} to %{{.*}}
// CHECK: %[[BEFORE:.*]] = arith.muli %[[PLACE]], %[[LENGTH]]
// CHECK: %[[HEAD:.*]] = arith.addi %[[BEFORE]], %[[FIRST]]
// CHECK: %[[POSITION:.*]] = arith.addi %{{.*}}, %[[SLOT]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[POSITION]], %c1
// CHECK: memref.prefetch %{{.*}}[%[[HEAD]], %[[NEXT]], %{{.*}}]
func.func @apart(%x: memref<32x?x128xf32>, %p: memref<?xi64>) {
  posenc.rope half #posenc.frequencies<dim = 128> ins(%x : memref<32x?x128xf32>) positions(%p : memref<?xi64>) dims = [1] outs(%x : memref<32x?x128xf32>)
  return
}

// Rows of 16-bit elements with non-temporal stores are read from two streams,
// with one prefetch per cache line, 12 rows ahead. In place there are four
// streams.
// CHECK-LABEL: func.func @narrow
// CHECK: scf.if
// CHECK: arith.ceildivui %{{.*}}, %c2
// CHECK: %[[AHEAD:.*]] = arith.addi %{{.*}}, %c12
// CHECK: memref.prefetch %{{.*}}[%{{.*}}, %[[AHEAD]], %{{.*}}]
// CHECK: memref.prefetch
// CHECK-NOT: memref.prefetch
// CHECK: vector.store {{.*}}nontemporal = true
// CHECK: arith.ceildivui %{{.*}}, %c4
func.func @narrow(%x: memref<?x32x128xbf16>, %y: memref<?x32x128xbf16>, %p: memref<?xi64>) {
  posenc.rope half #posenc.frequencies<dim = 128> ins(%x : memref<?x32x128xbf16>) positions(%p : memref<?xi64>) dims = [0] outs(%y : memref<?x32x128xbf16>)
  return
}

// 32 positions of 1 KiB are too close together for several streams.
// CHECK-LABEL: func.func @small
// CHECK-NOT: arith.ceildivui %{{.*}}, %c4
// CHECK: memref.prefetch
func.func @small(%x: memref<?x2x128xf32>, %p: memref<?xi64>) {
  posenc.rope half #posenc.frequencies<dim = 128> ins(%x : memref<?x2x128xf32>) positions(%p : memref<?xi64>) dims = [0] outs(%x : memref<?x2x128xf32>)
  return
}

// A single position has no quarters, whatever its size.
// CHECK-LABEL: func.func @one
// CHECK-NOT: arith.ceildivui
// CHECK: memref.prefetch
func.func @one(%x: memref<?x1x65536xf32>, %p: memref<?xi64>) {
  posenc.rope half #posenc.frequencies<dim = 65536> ins(%x : memref<?x1x65536xf32>) positions(%p : memref<?xi64>) dims = [0] outs(%x : memref<?x1x65536xf32>)
  return
}

// Windows of wider rows have none either.
// CHECK-LABEL: func.func @window
// CHECK-NOT: arith.ceildivui
// CHECK: memref.prefetch
func.func @window(%x: memref<?x32x128xf32>, %p: memref<?xi64>) {
  posenc.rope half #posenc.frequencies<dim = 64> ins(%x : memref<?x32x128xf32>) positions(%p : memref<?xi64>) dims = [0] outs(%x : memref<?x32x128xf32>)
  return
}
