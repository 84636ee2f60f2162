//===- forall-to-tasks.mlir - parallel loops as tasks of a kernel ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --pass-pipeline='builtin.module(func.func(posenc-forall-to-tasks))' | FileCheck %s

#abi = #posenc.abi<inputs = [], outputs = [#posenc.arg<"o", tensor<?x?xf32>, [0, 1]>], sizes = [-1, -1], in_place = [-1]>

// CHECK-LABEL: func.func @split
// CHECK-SAME: (%[[O:.*]]: memref<?x?xf32>, %[[I:.*]]: index, %[[N:.*]]: index)
// CHECK-SAME: posenc.kernel = #posenc.kernel<tasks = true>
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

// With `by_inputs`, the number of tasks follows from the input bytes.
// CHECK-LABEL: func.func @by_inputs
// CHECK-SAME: #posenc.kernel<tasks_by = inputs, tasks = true>
func.func @by_inputs(%o: memref<?x?xf32>) attributes {posenc.abi = #abi} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 1.0 : f32
  %m = memref.dim %o, %c0 : memref<?x?xf32>
  scf.forall (%i) in (%m) {
    memref.store %f, %o[%i, %c0] : memref<?x?xf32>
  } {posenc.tasks_by = #posenc.tasks_by<inputs>}
  return
}

// Memory that passes data from one loop to another is shared by all tasks; ops
// between loops are a phase of one task.
// CHECK-LABEL: func.func @shared
// CHECK-SAME: (%[[O:.*]]: memref<?x?xf32>, %[[S:.*]]: memref<64xi8>, %[[P:.*]]: memref<1xi64>, %[[I:.*]]: index, %[[N:.*]]: index)
// CHECK-SAME: posenc.kernel = #posenc.kernel<tasks = true, phases = [true, false], shared_bytes = 64>
// CHECK: %[[PHASE:.*]] = memref.load %[[P]]
// CHECK: %[[OWN:.*]] = memref.alloca() : memref<4xf32>
// CHECK: %[[BUFFER:.*]] = memref.view %[[S]][%c0{{.*}}][] : memref<64xi8> to memref<16xf32>
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[PHASE]], %c0
// CHECK: scf.if %[[FIRST]] {
// CHECK: scf.for
// CHECK: memref.store %{{.*}}, %[[BUFFER]]
// CHECK: %[[SECOND:.*]] = arith.cmpi eq, %[[PHASE]], %c1
// CHECK: scf.if %[[SECOND]] {
// CHECK-NEXT: memref.load %[[BUFFER]]
func.func @shared(%o: memref<?x?xf32>) attributes {posenc.abi = #abi} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 1.0 : f32
  %own = memref.alloca() : memref<4xf32>
  %s = memref.alloca() {posenc.shared_buffer} : memref<16xf32>
  scf.forall (%i) in (16) {
    memref.store %f, %own[%c0] : memref<4xf32>
    memref.store %f, %s[%i] : memref<16xf32>
  }
  %x = memref.load %s[%c0] : memref<16xf32>
  memref.store %f, %own[%c0] : memref<4xf32>
  memref.store %x, %o[%c0, %c0] : memref<?x?xf32>
  return
}

// A store behind an access by a phase belongs to a phase, too: every task would
// execute it before all phases.
// CHECK-LABEL: func.func @overwritten
// CHECK: %[[FIRST:.*]] = memref.alloca() : memref<i64>
// CHECK: memref.store %c0{{.*}}, %[[FIRST]][]
// CHECK: scf.if
// CHECK: memref.store %{{.*}}, %[[FIRST]][]
// CHECK: memref.store %c0{{.*}}, %[[FIRST]][]
// CHECK: memref.load %[[FIRST]][]
func.func @overwritten(%o: memref<?x?xf32>, %p: memref<16xi64>) attributes {posenc.abi = #abi} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1.0 : f32
  %sum = memref.alloca() : memref<i64>
  memref.store %zero, %sum[] : memref<i64>
  scf.for %i = %c0 to %c16 step %c1 {
    %a = memref.load %p[%i] : memref<16xi64>
    %b = memref.load %sum[] : memref<i64>
    %c = arith.addi %a, %b : i64
    memref.store %c, %sum[] : memref<i64>
  }
  memref.store %zero, %sum[] : memref<i64>
  %n = memref.load %sum[] : memref<i64>
  %x = arith.sitofp %n : i64 to f32
  memref.store %x, %o[%c0, %c0] : memref<?x?xf32>
  %m = memref.dim %o, %c0 : memref<?x?xf32>
  scf.forall (%i) in (%m) {
    memref.store %one, %o[%i, %c1] : memref<?x?xf32>
  }
  return
}

// Each loop is a phase.
// CHECK-LABEL: func.func @two
// CHECK-SAME: #posenc.kernel<tasks = true, phases = [true, true]
// CHECK-COUNT-2: scf.if
// CHECK-NOT: scf.forall
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

// A quotient that is not known to exist runs in every task, as its operands do.
// CHECK-LABEL: func.func @quotient
// CHECK-SAME: #posenc.kernel<tasks = true, phases = [true, true]
// CHECK: scf.if
// CHECK: arith.ceildivui
// CHECK: scf.if
func.func @quotient(%o: memref<?x?xf32>) attributes {posenc.abi = #abi} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 1.0 : f32
  %m = memref.dim %o, %c0 : memref<?x?xf32>
  %n = memref.dim %o, %c1 : memref<?x?xf32>
  scf.forall (%i) in (%m) {
    memref.store %f, %o[%i, %c0] : memref<?x?xf32>
  }
  %blocks = arith.ceildivui %m, %n : index
  scf.forall (%i) in (%blocks) {
    memref.store %f, %o[%i, %c1] : memref<?x?xf32>
  }
  return
}

// Ops before and after loops are phases, too. Copies of caches do not count as
// work.
// CHECK-LABEL: func.func @around
// CHECK-SAME: #posenc.kernel<tasks_by = inputs, tasks = true, phases = [false, true, false]>
func.func @around(%o: memref<?x?xf32>, %differ: i1) attributes {posenc.abi = #abi} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 1.0 : f32
  %m = memref.dim %o, %c0 : memref<?x?xf32>
  scf.if %differ {
    memref.store %f, %o[%c0, %c0] : memref<?x?xf32>
  }
  scf.forall (%i) in (%m) {
    memref.store %f, %o[%i, %c0] : memref<?x?xf32>
  }
  scf.if %differ {
    memref.store %f, %o[%c0, %c0] : memref<?x?xf32>
  }
  return
}

// A value that is not in memory cannot cross a barrier, so everything is one
// phase, which is not worth several tasks.
// CHECK-LABEL: func.func @value
// CHECK-NOT: posenc.kernel
// CHECK: scf.forall
func.func @value(%o: memref<?x?xf32>) attributes {posenc.abi = #abi} {
  %c0 = arith.constant 0 : index
  %f = memref.load %o[%c0, %c0] : memref<?x?xf32>
  %m = memref.dim %o, %c0 : memref<?x?xf32>
  scf.forall (%i) in (%m) {
    memref.store %f, %o[%i, %c0] : memref<?x?xf32>
  }
  return
}
