//===- rope-streams.mlir - rows of large blocks, from four places ===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-decompose-rotations="block-positions=32 block-below=65536" --posenc-vectorize-tiles="block-positions=32 block-below=65536" --convert-posenc-tables-to-vector="block-positions=32 block-below=65536" | FileCheck %s

// Of 32 positions with 16 KiB each, the rows of every quarter are taken in turn
// where tensors come from memory, and the next row of each is asked for; those
// within the cache one after the other.
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

// Where the heads are before the positions, a position's rows of four heads are
// taken in turn, and of each head the row of the next position is asked for.
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

// Rows of 16 bits that go past the cache are taken from two places, each line
// asked for once, 12 rows ahead. Within the same memory it is four.
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

// 32 positions of 1 KiB are not far enough from each other.
// CHECK-LABEL: func.func @small
// CHECK-NOT: arith.ceildivui %{{.*}}, %c4
// CHECK: memref.prefetch
func.func @small(%x: memref<?x2x128xf32>, %p: memref<?xi64>) {
  posenc.rope half #posenc.frequencies<dim = 128> ins(%x : memref<?x2x128xf32>) positions(%p : memref<?xi64>) dims = [0] outs(%x : memref<?x2x128xf32>)
  return
}

// Of one position alone there are no quarters, however large it is.
// CHECK-LABEL: func.func @one
// CHECK-NOT: arith.ceildivui
// CHECK: memref.prefetch
func.func @one(%x: memref<?x1x65536xf32>, %p: memref<?xi64>) {
  posenc.rope half #posenc.frequencies<dim = 65536> ins(%x : memref<?x1x65536xf32>) positions(%p : memref<?xi64>) dims = [0] outs(%x : memref<?x1x65536xf32>)
  return
}

// Of lanes within wider rows there are none either.
// CHECK-LABEL: func.func @window
// CHECK-NOT: arith.ceildivui
// CHECK: memref.prefetch
func.func @window(%x: memref<?x32x128xf32>, %p: memref<?xi64>) {
  posenc.rope half #posenc.frequencies<dim = 64> ins(%x : memref<?x32x128xf32>) positions(%p : memref<?xi64>) dims = [0] outs(%x : memref<?x32x128xf32>)
  return
}
