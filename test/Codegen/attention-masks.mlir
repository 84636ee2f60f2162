//===- attention-masks.mlir - tiles that mask_mod masks -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --convert-posenc-attention-to-vector --posenc-lower-tile-products --split-input-file --canonicalize --cse \
// RUN:   | FileCheck %s
// RUN: posenc-opt %s --convert-posenc-attention-to-vector --split-input-file --remarks-filter=posenc -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

!q = memref<2x?x4x16xf32>

// A tile of keys is empty for a task if all its keys are after the last query and
// the prefix, and full for a register tile of queries if all are before the first
// query or in the prefix.
// REMARK: Function=prefix | Remark="skips tiles that 'where' masks, and evaluates it in partial tiles only"
// CHECK-LABEL: func.func @prefix(
// CHECK-SAME:  %{{.*}}: memref<2x?x4x16xf32>, %[[N:.*]]: memref<2xindex>)
// CHECK:       scf.for %[[J:.*]] = %c0 to %{{.*}} step %c96 {
// CHECK:         %[[COUNT:.*]] = arith.minsi %{{.*}}, %c96
// CHECK:         %[[J0:.*]] = arith.index_cast %[[J]] : index to i64
// CHECK:         %[[P:.*]] = memref.load %[[N]]
// CHECK:         %[[P64:.*]] = arith.index_cast %[[P]]
// CHECK:         %[[LATER:.*]] = arith.cmpi sgt, %[[J0]], %{{.*}} : i64
// CHECK:         %[[AFTER:.*]] = arith.cmpi sge, %[[J0]], %[[P64]] : i64
// CHECK:         %[[NONE:.*]] = arith.andi %[[LATER]], %[[AFTER]]
// CHECK:         %[[ANY:.*]] = arith.xori %[[NONE]], %true
// CHECK:         scf.if %[[ANY]] {
// CHECK:           arith.cmpi sgt, %[[J1:.*]], %{{.*}} : i64
// CHECK-NEXT:      arith.cmpi sgt, %[[J0]], %{{.*}} : i64
// CHECK-NEXT:      arith.cmpi sge, %[[J1]], %[[P64]] : i64
// CHECK:           scf.if
// CHECK:             %[[PARTIAL:.*]] = arith.cmpi eq, %{{.*}}, %false
// CHECK-NEXT:        %[[MASKED:.*]] = arith.ori %{{.*}}, %[[PARTIAL]]
// CHECK-NEXT:        %{{.*}} = scf.if %[[MASKED]] -> (vector<8xf32>, vector<8xf32>) {
// CHECK:               memref.load %[[N]]
// CHECK:             } else {
// CHECK-NOT:           memref.load %[[N]]
// CHECK-LABEL: func.func @documents(
func.func @prefix(%q: !q, %n: memref<2xindex>) {
  posenc.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    where(%b, %h, %i, %j) {
      %p = memref.load %n[%b] : memref<2xindex>
      %c = arith.cmpi sle, %j, %i : index
      %e = arith.cmpi slt, %j, %p : index
      %y = arith.ori %c, %e : i1
      posenc.yield %y : i1
    }
  return
}

// -----

!q = memref<2x?x4x16xf32>

// The documents of a tile are bounded by their minimum and maximum: those of the
// queries of a task and of the keys once per tile of keys, and those of a register
// tile of queries again.
// REMARK: Function=documents | Remark="skips tiles that 'where' masks, and evaluates it in partial tiles only"
// CHECK-SAME:  %{{.*}}: memref<2x?x4x16xf32>, %[[T:.*]]: memref<2x?xi32>)
// CHECK:       scf.for %[[J:.*]] = %c0 to %{{.*}} step %c96 {
// CHECK:         %[[D:.*]] = memref.load %[[T]][%[[B:.*]], %[[I0:.*]]] : memref<2x?xi32>
// CHECK:         scf.for %[[I:.*]] = %[[I0]] to %{{.*}} step %c1 iter_args(%[[MIN:.*]] = %[[D]], %[[MAX:.*]] = %[[D]]) -> (i32, i32) {
// CHECK-NEXT:      %[[E:.*]] = memref.load %[[T]][%[[B]], %[[I]]]
// CHECK-NEXT:      arith.minsi %[[MIN]], %[[E]]
// CHECK-NEXT:      arith.maxsi %[[MAX]], %[[E]]
// CHECK:         memref.load %[[T]][%[[B]], %[[J]]]
// CHECK:         scf.for
// CHECK:         arith.cmpi sle
// CHECK-NEXT:    arith.cmpi sle
// CHECK-NEXT:    %[[ANY:.*]] = arith.andi
// CHECK-NEXT:    scf.if %[[ANY]] {
// CHECK:           scf.for %{{.*}} iter_args({{.*}}) -> (i32, i32) {
// CHECK-NEXT:        memref.load %[[T]]
// CHECK-NOT:       -> (i32, i32)
// CHECK:           scf.if %{{.*}} -> (vector<8xf32>, vector<8xf32>) {
// CHECK:             memref.load %[[T]]
// CHECK:           } else {
// CHECK-NOT:         memref.load %[[T]]
func.func @documents(%q: !q, %t: memref<2x?xi32>) {
  posenc.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    where(%b, %h, %i, %j) {
      %d = memref.load %t[%b, %i] : memref<2x?xi32>
      %e = memref.load %t[%b, %j] : memref<2x?xi32>
      %y = arith.cmpi eq, %d, %e : i32
      posenc.yield %y : i1
    }
  return
}

// -----

!q = memref<2x?x4x16xf32>

// An element for each pair has no bounds: no tile is skipped.
// REMARK: Function=table | Reason="'where' is evaluated for all pairs: tiles have no bounds of memref.load"
// CHECK-LABEL: func.func @table(
// CHECK-SAME:  %{{.*}}: memref<2x?x4x16xf32>, %[[T:.*]]: memref<?x?xi1>)
// CHECK:       scf.for %{{.*}} = %c0 to %{{.*}} step %c96 {
// CHECK-NOT:     scf.if
// CHECK:         memref.prefetch
func.func @table(%q: !q, %t: memref<?x?xi1>) {
  posenc.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    where(%b, %h, %i, %j) {
      %y = memref.load %t[%i, %j] : memref<?x?xi1>
      posenc.yield %y : i1
    }
  return
}

// -----

!q = memref<2x?x4x16xf32>

// A table with one element for a block of queries and keys has bounds: the code
// loads the elements of all blocks of a tile.
// REMARK: Function=blocks | Remark="skips tiles that 'where' masks, and evaluates it in partial tiles only"
// CHECK-LABEL: func.func @blocks(
// CHECK-SAME:  %{{.*}}: memref<2x?x4x16xf32>, %[[T:.*]]: memref<?x?xi8>)
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %c1 iter_args(
// CHECK-NEXT:      scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step %c1 iter_args(
// CHECK-NEXT:        memref.load %[[T]][%[[I]], %[[J]]]
// CHECK-NEXT:        arith.minsi
// CHECK-NEXT:        arith.maxsi
// CHECK:         scf.if
func.func @blocks(%q: !q, %t: memref<?x?xi8>) {
  posenc.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    where(%b, %h, %i, %j) {
      %size = arith.constant 128 : index
      %one = arith.constant 1 : i8
      %m = arith.divsi %i, %size : index
      %n = arith.divsi %j, %size : index
      %x = memref.load %t[%m, %n] : memref<?x?xi8>
      %y = arith.cmpi eq, %x, %one : i8
      posenc.yield %y : i1
    }
  return
}
