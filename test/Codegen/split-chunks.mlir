//===- split-chunks.mlir - one of several parts of a kernel's work ===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --pass-pipeline='builtin.module(func.func(posenc-split-chunks))' | FileCheck %s

#abi = #posenc.abi<inputs = [], outputs = [#posenc.arg<"o", tensor<?x?xf32>, [0, 1]>], sizes = [-1, -1], in_place = [-1]>

// CHECK-LABEL: func.func @split
// CHECK-SAME: (%[[O:.*]]: memref<?x?xf32>, %[[I:.*]]: index, %[[N:.*]]: index)
// CHECK-SAME: posenc.chunked
// CHECK: %[[TOTAL:.*]] = arith.muli
// CHECK: arith.muli %[[TOTAL]], %[[I]]
// CHECK: %[[FIRST:.*]] = arith.divui %{{.*}}, %[[N]]
// CHECK: %[[LAST:.*]] = arith.divui %{{.*}}, %[[N]]
// CHECK: scf.for %[[T:.*]] = %[[FIRST]] to %[[LAST]]
// CHECK: arith.remui %[[T]]
// CHECK: arith.divui %[[T]]
// CHECK-NOT: scf.forall
func.func @split(%o: memref<?x?xf32>) attributes {posenc.abi = #abi} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 1.0 : f32
  %m = memref.dim %o, %c0 : memref<?x?xf32>
  %n = memref.dim %o, %c1 : memref<?x?xf32>
  scf.forall (%i, %j) in (%m, %n) {
    memref.store %f, %o[%i, %j] : memref<?x?xf32>
  }
  return
}

// Where that is its work, what is read counts.
// CHECK-LABEL: func.func @by_inputs
// CHECK-SAME: posenc.chunked = "inputs"
func.func @by_inputs(%o: memref<?x?xf32>) attributes {posenc.abi = #abi} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 1.0 : f32
  %m = memref.dim %o, %c0 : memref<?x?xf32>
  scf.forall (%i) in (%m) {
    memref.store %f, %o[%i, %c0] : memref<?x?xf32>
  } {by_inputs}
  return
}

// What one loop leaves in memory that all chunks share is finished by one more
// chunk, which has no iterations of the first.
// CHECK-LABEL: func.func @shared
// CHECK-SAME: (%[[O:.*]]: memref<?x?xf32>, %[[S:.*]]: memref<16xf32>, %[[I:.*]]: index, %[[N:.*]]: index)
// CHECK-SAME: posenc.shared = 64 : i64
// CHECK-NOT: memref.alloca
// CHECK: %[[FIRST:.*]] = arith.divui %{{.*}}, %[[N]]
// CHECK: %[[END:.*]] = arith.divui %{{.*}}, %[[N]]
// CHECK: %[[LAST:.*]] = arith.minsi %[[END]]
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[LAST]]
// CHECK: memref.store %{{.*}}, %[[S]]
// CHECK: %[[IS_LAST:.*]] = arith.cmpi eq, %[[I]], %[[N]]
// CHECK: scf.if %[[IS_LAST]] {
// CHECK-NEXT: memref.load %[[S]]
// CHECK-NOT: scf.execute_region
func.func @shared(%o: memref<?x?xf32>) attributes {posenc.abi = #abi} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 1.0 : f32
  %s = memref.alloca() {shared} : memref<16xf32>
  scf.forall (%i) in (16) {
    memref.store %f, %s[%i] : memref<16xf32>
  }
  scf.execute_region no_inline {
    %x = memref.load %s[%c0] : memref<16xf32>
    memref.store %x, %o[%c0, %c0] : memref<?x?xf32>
    scf.yield
  } {after_all}
  return
}

// Two loops may depend on each other: the work is not split.
// CHECK-LABEL: func.func @two
// CHECK-NOT: posenc.chunked
// CHECK-COUNT-2: scf.forall
func.func @two(%o: memref<?x?xf32>) attributes {posenc.abi = #abi} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 1.0 : f32
  %m = memref.dim %o, %c0 : memref<?x?xf32>
  scf.forall (%i) in (%m) {
    memref.store %f, %o[%i, %c0] : memref<?x?xf32>
  }
  scf.forall (%i) in (%m) {
    memref.store %f, %o[%i, %c0] : memref<?x?xf32>
  }
  return
}

// What comes before the loop is done by the first chunk, and then so is all.
// CHECK-LABEL: func.func @before
// CHECK-SAME: (%[[O:.*]]: memref<?x?xf32>, %[[D:.*]]: i1, %[[I:.*]]: index, %[[N:.*]]: index)
// CHECK-SAME: posenc.chunked = "inputs"
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[I]], %c0
// CHECK: %[[BOTH:.*]] = arith.andi %[[D]], %[[FIRST]]
// CHECK: scf.if %[[BOTH]]
// CHECK: %[[MINE:.*]] = arith.select %{{.*}}, %c0{{.*}}, %[[TOTAL:.*]] : index
// CHECK: %[[BEGIN:.*]] = arith.select %[[D]], %[[MINE]], %{{.*}} : index
// CHECK: %[[END:.*]] = arith.select %[[D]], %[[TOTAL]], %{{.*}} : index
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
func.func @before(%o: memref<?x?xf32>, %differ: i1) attributes {posenc.abi = #abi} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 1.0 : f32
  %m = memref.dim %o, %c0 : memref<?x?xf32>
  scf.if %differ {
    memref.store %f, %o[%c0, %c0] : memref<?x?xf32>
  }
  scf.forall (%i) in (%m) {
    memref.store %f, %o[%i, %c0] : memref<?x?xf32>
  }
  return
}

// What comes after it would have to wait.
// CHECK-LABEL: func.func @after
// CHECK-NOT: posenc.chunked
func.func @after(%o: memref<?x?xf32>, %differ: i1) attributes {posenc.abi = #abi} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 1.0 : f32
  %m = memref.dim %o, %c0 : memref<?x?xf32>
  scf.forall (%i) in (%m) {
    memref.store %f, %o[%i, %c0] : memref<?x?xf32>
  }
  scf.if %differ {
    memref.store %f, %o[%c0, %c0] : memref<?x?xf32>
  }
  return
}
