//===- attention-few-tokens.mlir - attention with any number of tokens ----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --convert-posenc-attention-to-vector --posenc-lower-tile-products --canonicalize --cse --split-input-file | FileCheck %s

// With a dynamic number of queries, one loop has the tasks of decode and
// prefill; decode uses the scratch memory of prefill. Eight heads fill half of
// 16 lanes for one token as for several, so one decode kernel serves 1 to 8
// tokens. The queries of a token are two blocks of 4 heads.
// CHECK-LABEL: func.func @any
// CHECK-SAME: (%[[Q:.*]]: memref<?x16x?x128xf32>, %[[K:.*]]: memref<?x2x?x128xf32>, %[[O:.*]]: memref<?x16x?x128xf32>)
// CHECK: memref.reinterpret_cast %alloca{{.*}} : memref<20x128x16xf32> to memref<64x144xf32>
// CHECK: %[[TOKENS:.*]] = memref.dim %[[Q]]
// CHECK: %[[LESS:.*]] = arith.subi %[[TOKENS]], %c1
// CHECK: %[[FEW:.*]] = arith.cmpi ule, %[[LESS]], %c7
// CHECK: arith.select %[[FEW]], %c2, %c4
// CHECK: scf.forall
// CHECK: scf.if %[[FEW]] {
// CHECK: %[[MINE:.*]] = arith.minsi %[[TOKENS]], %c8
// CHECK: %[[QUERIES:.*]] = arith.muli %[[MINE]], %c8
// CHECK: %[[BLOCKS:.*]] = arith.ceildivui %[[QUERIES]], %c4
// CHECK: %[[FACTOR:.*]] = arith.ceildivui %c4294967296, %[[BLOCKS]]
// CHECK: scf.for %{{.*}} = %c0 to %[[QUERIES]]
// CHECK: vector.load %[[Q]]
// CHECK: scf.for %{{.*}} = %c0 to %[[BLOCKS]]
// CHECK: arith.muli %{{.*}}, %[[FACTOR]]
// CHECK-NEXT: arith.shrui %{{.*}}, %c32
// CHECK: memref.prefetch
// CHECK: vector.load %[[K]]
// CHECK: vector.store %{{.*}}, %[[O]]
// CHECK: } else {
// CHECK-NOT: scf.if %[[FEW]]
// CHECK: scf.for {{.*}} step %c48
// CHECK: vector.store %{{.*}}, %[[O]]
// CHECK: return
func.func @any(%q: memref<?x16x?x128xf32>, %k: memref<?x2x?x128xf32>, %o: memref<?x16x?x128xf32>) {
  posenc.attention causal query_layout = head_major key_layout = head_major
    ins(%q, %k, %k : memref<?x16x?x128xf32>, memref<?x2x?x128xf32>, memref<?x2x?x128xf32>) outs(%o : memref<?x16x?x128xf32>)
  return
}

// -----

// One token has its own decode kernel where the kernel for several tokens would
// leave lanes empty. Both kernels have KV splits, and merge them one after the
// other.
// CHECK-LABEL: func.func @one
// CHECK: memref.alloca() {alignment = 64 : i64, posenc.shared_buffer} : memref<16384xf32>
// CHECK: %[[ONE:.*]] = arith.cmpi {{.*}}, %c0 : index
// CHECK: %[[FEW:.*]] = arith.cmpi ule, %{{.*}}, %c30 : index
// CHECK: scf.forall
// CHECK: scf.if %[[ONE]] {
// CHECK: } else {
// CHECK: scf.if %[[FEW]] {
// CHECK: {posenc.tasks_by = #posenc.tasks_by<inputs>}
// CHECK: arith.select %[[ONE]], %{{.*}}, %c0
// CHECK: arith.select %[[FEW]], %{{.*}}, %c0
// CHECK: scf.execute_region no_inline {
func.func @one(%q: memref<?x?x1x64xf32>, %k: memref<?x?x1x64xf32>, %o: memref<?x?x1x64xf32>) {
  posenc.attention ins(%q, %k, %k : memref<?x?x1x64xf32>, memref<?x?x1x64xf32>, memref<?x?x1x64xf32>) outs(%o : memref<?x?x1x64xf32>)
  return
}

// -----

// Keys with as many positions as queries are as few as the queries, so there
// are no KV splits.
// CHECK-LABEL: func.func @same
// CHECK-NOT: memref.prefetch %arg1{{.*}}locality<3>
// CHECK-NOT: shared
// CHECK: return
func.func @same(%q: memref<?x?x2x64xf32>, %k: memref<?x?x2x64xf32>, %p: memref<?x?xi64>, %o: memref<?x?x2x64xf32>) {
  posenc.attention causal query_rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 64, base = 10000>> key_rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 64, base = 10000>>
    ins(%q, %k, %k : memref<?x?x2x64xf32>, memref<?x?x2x64xf32>, memref<?x?x2x64xf32>)
    query_positions(%p : memref<?x?xi64>) key_positions(%p : memref<?x?xi64>) outs(%o : memref<?x?x2x64xf32>)
  return
}

// -----

// Each sequence of a ragged batch selects the kernel for its number of tokens.
// If the heads of a token are contiguous, one of the tasks of a head group does
// the whole decode.
// CHECK-LABEL: func.func @packed
// CHECK: scf.forall (%[[HEADS:.*]], %[[TILE:.*]]) in (2, %{{.*}}) {
// CHECK: scf.while
// CHECK: %[[HASTOKENS:.*]] = arith.cmpi sgt, %{{.*}}, %c0
// CHECK: scf.if %[[HASTOKENS]] {
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK: %[[LESS:.*]] = arith.addi %[[ALL:.*]], %c-1
// CHECK: %[[ONE:.*]] = arith.cmpi ule, %[[LESS]], %c0
// CHECK: scf.if %[[ONE]] {
// CHECK: %[[NUMBER:.*]] = arith.remui %[[HEADS]], %c2
// CHECK: %[[TURN:.*]] = arith.remui %[[TILE]], %c2
// CHECK: %[[ISTURN:.*]] = arith.cmpi eq, %[[NUMBER]], %[[TURN]]
// CHECK: %[[MINE:.*]] = arith.andi %[[FIRST]], %[[ISTURN]]
// CHECK: scf.if %[[MINE]] {
// CHECK: } else {
// CHECK: %[[MORE:.*]] = arith.addi %[[ALL]], %c-2
// CHECK: arith.cmpi ule, %[[MORE]], %c30
// CHECK: } else {
// CHECK: scf.for {{.*}} step %c96
func.func @packed(%q: memref<?x2x64xf32>, %k: memref<?x2x64xf32>, %c: memref<?xi32>, %d: memref<?xi32>, %o: memref<?x2x64xf32>) {
  posenc.attention causal ins(%q, %k, %k : memref<?x2x64xf32>, memref<?x2x64xf32>, memref<?x2x64xf32>)
    cu_seqlens(%c, %d : memref<?xi32>, memref<?xi32>) outs(%o : memref<?x2x64xf32>)
  return
}

// -----

// Regions are computed on vectors of (query, key) pairs: each lane has its own
// head and indices. With masks, all tiles skip values whose weight is 0.
// CHECK-LABEL: func.func @pairs
// CHECK-SAME: %[[MASK:[a-z0-9]+]]: memref<1x1x3x?xi1>
// CHECK: vector.load %{{.*}}, vector<8xf32>
// CHECK-COUNT-8: memref.load %[[MASK]][%c0, %c0,
// CHECK: vector.from_elements {{.*}} : vector<8xi1>
// CHECK: math.absi
// CHECK: arith.select {{.*}} : vector<8xi1>, vector<8xf32>
// CHECK: arith.cmpf oeq
// CHECK: return
func.func @pairs(%q: memref<?x4x3x128xf32>, %k: memref<?x1x?x128xf32>, %mask: memref<1x1x3x?xi1>, %o: memref<?x4x3x128xf32>) {
  posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %k, %k : memref<?x4x3x128xf32>, memref<?x1x?x128xf32>, memref<?x1x?x128xf32>)
    mask(%mask : memref<1x1x3x?xi1>) outs(%o : memref<?x4x3x128xf32>)
    score(%s, %b, %h, %i, %j) {
      %x = posenc.alibi(%h, %i, %j) heads = 4 : f32
      %y = arith.addf %s, %x : f32
      posenc.yield %y : f32
    }
  return
}
