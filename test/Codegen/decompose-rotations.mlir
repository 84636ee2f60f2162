//===- decompose-rotations.mlir - rotate and rope as linalg and vectors ---===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{bytes} = 32
// DEFINE: %{options} = vector-bytes=%{bytes} prefetch-distance=0 prefetch-in-order=0 streams-in-order=1
// DEFINE: %{lower} = posenc-opt %s --split-input-file --verify-diagnostics \
// DEFINE:   --posenc-decompose-rotations="%{options}" \
// DEFINE:   --posenc-vectorize-tiles="%{options}" \
// DEFINE:   --convert-posenc-tables-to-vector="%{options}"
// RUN: %{lower} | FileCheck %s
// REDEFINE: %{bytes} = 64
// RUN: %{lower} | FileCheck %s --check-prefix=WIDE
// RUN: posenc-opt %s --split-input-file --verify-diagnostics \
// RUN:   --posenc-decompose-rotations="prefetch-distance=0 prefetch-in-order=0 streams-in-order=1" \
// RUN:   --canonicalize | FileCheck %s --check-prefix=TILES

// 20 pairs are two vectors of 8 and one of 4, without masks. Half pairing loads
// x and y, and stores only after both loads.
// CHECK: memref.global "private" constant @frequencies_low : memref<20xi64>
// CHECK: memref.global "private" constant @frequencies_high : memref<20xi64>
// CHECK-LABEL: func.func @half
// CHECK-SAME: (%[[X:.*]]: memref<?x2x40xf32>, %{{.*}}: memref<?xi64>, %[[O:.*]]: memref<?x2x40xf32>)
// CHECK-NOT: vector.maskedload
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<8x20xf32>
// The tables of up to eight positions are computed before their rows.
// CHECK: arith.minui
// CHECK: scf.for
// CHECK: memref.load %{{.*}} : memref<?xi64>
// CHECK: scf.if
// CHECK: vector.load %{{.*}} : memref<20xi32>, vector<16xi32>
// CHECK: arith.mulsi_extended
// CHECK: vector.load %{{.*}} : memref<20xi32>, vector<4xi32>
// CHECK: } else {
// CHECK: vector.load %{{.*}} : memref<20xi64>, vector<16xi64>
// CHECK: vector.load %{{.*}} : memref<20xi64>, vector<4xi64>
// CHECK: scf.for
// CHECK: scf.for
// CHECK: vector.load %[[X]]{{.*}} vector<8xf32>
// CHECK: vector.load %[[X]]{{.*}} vector<8xf32>
// CHECK: math.fma
// CHECK: vector.store %{{.*}}, %[[O]]
// CHECK: vector.store %{{.*}}, %[[O]]
// CHECK: vector.load %[[X]]{{.*}} vector<4xf32>
// WIDE-LABEL: func.func @half
// WIDE: vector<16xf32>

// An earlier stage: rows are linalg tiles of one cache line of pairs, and a
// remainder.
// TILES-LABEL: func.func @half
// TILES-SAME: (%[[X:.*]]: memref<?x2x40xf32>, %{{.*}}: memref<?xi64>, %[[O:.*]]: memref<?x2x40xf32>)
// TILES: %[[COS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<8x20xf32>
// TILES: %[[SIN:.*]] = memref.alloca() {alignment = 64 : i64} : memref<8x20xf32>
// TILES: %[[C:.*]] = memref.subview %[[COS]][{{.*}}] [1, 16] [1, 1]
// TILES: %[[S:.*]] = memref.subview %[[SIN]][{{.*}}] [1, 16] [1, 1]
// TILES: %[[A:.*]] = memref.subview %[[X]][%[[T:.*]], %[[H:.*]], 0] [1, 1, 16] [1, 1, 1]
// TILES: %[[B:.*]] = memref.subview %[[X]][%[[T]], %[[H]], 20] [1, 1, 16] [1, 1, 1]
// TILES: linalg.generic {{.*}} iterator_types = ["parallel"]} ins(%[[A]], %[[B]], %[[C]], %[[S]] :
// TILES-NEXT: ^bb0(%[[A0:.*]]: f32, %[[B0:.*]]: f32, %[[C0:.*]]: f32, %[[S0:.*]]: f32, %{{.*}}: f32, %{{.*}}: f32):
// TILES-NEXT: %[[BS:.*]] = arith.mulf %[[B0]], %[[S0]]
// TILES-NEXT: %[[AS:.*]] = arith.mulf %[[A0]], %[[S0]]
// TILES-NEXT: %[[NEG:.*]] = arith.negf %[[BS]]
// TILES-NEXT: %[[NEWA:.*]] = math.fma %[[A0]], %[[C0]], %[[NEG]]
// TILES-NEXT: %[[NEWB:.*]] = math.fma %[[B0]], %[[C0]], %[[AS]]
// TILES-NEXT: linalg.yield %[[NEWA]], %[[NEWB]]
// TILES: memref.subview %[[X]]{{.*}} [1, 1, 4] [1, 1, 1]
func.func @half(%x: memref<?x2x40xf32>, %p: memref<?xi64>, %o: memref<?x2x40xf32>) {
  posenc.rope half #posenc.frequencies<dim = 40> ins(%x : memref<?x2x40xf32>) positions(%p : memref<?xi64>) dims = [0] outs(%o : memref<?x2x40xf32>)
  return
}

// -----

// Where rows of consecutive positions are contiguous, the loop over 32
// positions is inside the loop over heads.
// CHECK-LABEL: func.func @heads_first
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<32x8xf32>
// CHECK: %[[STEP:.*]] = arith.constant 32 : index
// CHECK: %[[LEFT:.*]] = arith.minui %{{.*}}, %[[STEP]]
// CHECK: %[[COUNT:.*]] = arith.maxui %[[LEFT]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[COUNT]]
// CHECK: math.fma
// CHECK: scf.for %[[HEAD:.*]] = %{{.*}} to %{{.*}}
// CHECK: scf.for %[[SLOT:.*]] = %{{.*}} to %[[COUNT]]
// CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[SLOT]]
// CHECK: vector.load %{{.*}}[%[[HEAD]], %[[AT]],
func.func @heads_first(%x: memref<2x?x16xf32>, %p: memref<?xi64>) {
  posenc.rope half #posenc.frequencies<dim = 16> ins(%x : memref<2x?x16xf32>) positions(%p : memref<?xi64>) dims = [1] outs(%x : memref<2x?x16xf32>)
  return
}

// -----

// With large tables, fewer positions are on the stack.
// CHECK-LABEL: func.func @wide
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<4x1024xf32>
func.func @wide(%x: memref<2x?x2048xf32>, %p: memref<?xi64>) {
  posenc.rope half #posenc.frequencies<dim = 2048> ins(%x : memref<2x?x2048xf32>) positions(%p : memref<?xi64>) dims = [1] outs(%x : memref<2x?x2048xf32>)
  return
}

// -----

// Interleaved pairing swaps neighbours instead of splitting rows. f16 has 16
// lanes per vector, with products in f32.
// TILES-LABEL: func.func @interleaved
// TILES: memref.subview %{{.*}}[%{{.*}}, %{{.*}}, 0] [1, 1, 16] [1, 1, 2]
// TILES: memref.subview %{{.*}}[%{{.*}}, %{{.*}}, 1] [1, 1, 16] [1, 1, 2]
// CHECK-LABEL: func.func @interleaved
// CHECK: vector.interleave
// CHECK: arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>
// CHECK: vector.shuffle %[[X:.*]], %[[X]] [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14]
// CHECK: arith.truncf %{{.*}} : vector<16xf32> to vector<16xf16>
func.func @interleaved(%x: memref<4x2x32xf16>, %p: memref<4xi64>) {
  posenc.rope interleaved #posenc.frequencies<dim = 32> ins(%x : memref<4x2x32xf16>) positions(%p : memref<4xi64>) dims = [0] outs(%x : memref<4x2x32xf16>)
  return
}

// -----

// bf16 is the upper half of an f32: a word has an even and an odd element,
// which are the two elements of an interleaved pair.
// CHECK-LABEL: func.func @bf16_interleaved
// CHECK-NOT: vector.interleave
// CHECK: %[[WORDS:.*]] = vector.bitcast %{{.*}} : vector<16xbf16> to vector<8xi32>
// CHECK: arith.shli %[[WORDS]], %{{.*}} : vector<8xi32>
// CHECK: arith.andi %[[WORDS]], %{{.*}} : vector<8xi32>
// CHECK-NOT: arith.truncf
// CHECK: vector.bitcast %{{.*}} : vector<8xi32> to vector<16xi16>
// CHECK: vector.bitcast %{{.*}} : vector<16xi16> to vector<16xbf16>
func.func @bf16_interleaved(%x: memref<4x2x32xbf16>, %p: memref<4xi64>) {
  posenc.rope interleaved #posenc.frequencies<dim = 32> ins(%x : memref<4x2x32xbf16>) positions(%p : memref<4xi64>) dims = [0] outs(%x : memref<4x2x32xbf16>)
  return
}

// -----

// With half pairing, they belong to an even and an odd pair. The table stores
// even and odd pairs separately: 18 pairs are a vector of 16 and one of 2.
// CHECK: memref.global "private" constant @axis_of_pair : memref<18xi32> = dense<[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1]>
// CHECK-LABEL: func.func @bf16_half
// CHECK-COUNT-2: vector.bitcast %{{.*}} : vector<16xbf16> to vector<8xi32>
// CHECK-COUNT-2: vector.bitcast %{{.*}} : vector<16xi16> to vector<16xbf16>
// CHECK-COUNT-2: vector.bitcast %{{.*}} : vector<2xbf16> to vector<1xi32>
func.func @bf16_half(%x: memref<4x2x36xbf16>, %p: memref<2x4xi64>) {
  posenc.rope half #posenc.frequencies<dim = 36> axes #posenc.axes<interleaved, [9, 9]> ins(%x : memref<4x2x36xbf16>) positions(%p : memref<2x4xi64>) dims = [0] outs(%x : memref<4x2x36xbf16>)
  return
}

// -----

// Elements outside of the window are copied, unless the rotation is in place.
// CHECK-LABEL: func.func @window
// CHECK: memref.extract_aligned_pointer_as_index
// CHECK: arith.cmpi ne
// CHECK: scf.if
// CHECK-LABEL: func.func @window_in_place
// CHECK-NOT: memref.extract_aligned_pointer_as_index
// Two different offsets in a buffer are not in place.
// CHECK-LABEL: func.func @window_elsewhere
// CHECK: %[[O:.*]] = memref.reinterpret_cast
// CHECK: %{{[^,]+}}, %[[OFFSET:[^,]+]], {{.*}} = memref.extract_strided_metadata %[[O]]
// CHECK: %[[BYTES:.*]] = arith.muli %[[OFFSET]], %c4
// CHECK: %[[PLACE:.*]] = arith.addi %{{.*}}, %[[BYTES]]
// CHECK: arith.cmpi ne, %{{.*}}, %[[PLACE]]
func.func @window(%x: memref<4x2x32xf32>, %p: memref<4xi64>, %o: memref<4x2x32xf32>) {
  posenc.rope half #posenc.frequencies<dim = 16> ins(%x : memref<4x2x32xf32>) positions(%p : memref<4xi64>) dims = [0] offset = 8 outs(%o : memref<4x2x32xf32>)
  return
}
func.func @window_in_place(%x: memref<4x2x32xf32>, %p: memref<4xi64>) {
  posenc.rope half #posenc.frequencies<dim = 16> ins(%x : memref<4x2x32xf32>) positions(%p : memref<4xi64>) dims = [0] offset = 8 outs(%x : memref<4x2x32xf32>)
  return
}
func.func @window_elsewhere(%x: memref<4x2x32xf32>, %p: memref<4xi64>, %y: memref<?xf32>, %n: index) {
  %o = memref.reinterpret_cast %y to offset: [%n], sizes: [4, 2, 32], strides: [64, 32, 1] : memref<?xf32> to memref<4x2x32xf32, strided<[64, 32, 1], offset: ?>>
  posenc.rope half #posenc.frequencies<dim = 16> ins(%x : memref<4x2x32xf32>) positions(%p : memref<4xi64>) dims = [0] offset = 8 outs(%o : memref<4x2x32xf32, strided<[64, 32, 1], offset: ?>>)
  return
}

// -----

// Each lane uses the position of its axis.
// CHECK: memref.global "private" constant @axis_of_pair : memref<8xi32> = dense<[0, 0, 1, 1, 1, 2, 2, 2]>
// CHECK-LABEL: func.func @axes
// CHECK-COUNT-2: arith.select %{{.*}} : vector<8xi1>, vector<8xi32>
// CHECK-COUNT-2: arith.select %{{.*}} : vector<8xi1>, vector<8xi64>
func.func @axes(%x: memref<4x16xf32>, %p: memref<3x4xi64>) {
  posenc.rope half #posenc.frequencies<dim = 16> axes #posenc.axes<contiguous, [2, 3, 3]> ins(%x : memref<4x16xf32>) positions(%p : memref<3x4xi64>) dims = [0] outs(%x : memref<4x16xf32>)
  return
}

// -----

// CHECK-LABEL: func.func @tables
// CHECK-NOT: math.sin
// CHECK: vector.store %{{.*}} : memref<4x8xf16>, vector<8xf16>
// CHECK: vector.load %{{.*}} : memref<4x8xf16>, vector<8xf16>
func.func @tables(%p: memref<4xi64>, %c: memref<4x8xf16>, %s: memref<4x8xf16>, %x: memref<4x16xf32>) {
  posenc.sincos #posenc.frequencies<dim = 16> positions(%p : memref<4xi64>) outs(%c, %s : memref<4x8xf16>, memref<4x8xf16>)
  posenc.rotate half ins(%x : memref<4x16xf32>) tables(%c, %s : memref<4x8xf16>) dims = [0] outs(%x : memref<4x16xf32>)
  return
}

// -----

func.func @tensors(%x: tensor<4x16xf32>, %p: tensor<4xi64>) -> tensor<4x16xf32> {
  // expected-error @below {{expected memrefs, got tensors: bufferize first}}
  %r = posenc.rope half #posenc.frequencies<dim = 16> ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  return %r : tensor<4x16xf32>
}

// -----

func.func @strided(%x: memref<4x16xf32, strided<[32, 2]>>, %p: memref<4xi64>) {
  // expected-error @below {{expected a contiguous last dimension}}
  posenc.rope half #posenc.frequencies<dim = 16> ins(%x : memref<4x16xf32, strided<[32, 2]>>) positions(%p : memref<4xi64>) dims = [0] outs(%x : memref<4x16xf32, strided<[32, 2]>>)
  return
}
