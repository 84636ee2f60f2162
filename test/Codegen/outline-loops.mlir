//===- outline-loops.mlir - functions of many loops are split -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-outline-loops | FileCheck %s
// RUN: posenc-opt %s --posenc-outline-loops --convert-func-to-llvm \
// RUN:   | FileCheck %s --check-prefix=LLVM

// LLVM would inline a function with a single call.
// LLVM: llvm.func @__part_of_many_0({{.*}}) attributes {passthrough = ["noinline"]

memref.global "private" constant @one : memref<1xf32> = dense<1.0>

// Functions with up to eight loops are not changed.
// CHECK-LABEL: func.func @few
// CHECK-COUNT-8: scf.for
// CHECK-NOT: call
func.func @few(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 1.0 : f32
  scf.for %i = %c0 to %n step %c1 { memref.store %f, %x[%i] : memref<?xf32> }
  scf.for %i = %c0 to %n step %c1 { memref.store %f, %x[%i] : memref<?xf32> }
  scf.for %i = %c0 to %n step %c1 { memref.store %f, %x[%i] : memref<?xf32> }
  scf.for %i = %c0 to %n step %c1 { memref.store %f, %x[%i] : memref<?xf32> }
  scf.for %i = %c0 to %n step %c1 { memref.store %f, %x[%i] : memref<?xf32> }
  scf.for %i = %c0 to %n step %c1 { memref.store %f, %x[%i] : memref<?xf32> }
  scf.for %i = %c0 to %n step %c1 { memref.store %f, %x[%i] : memref<?xf32> }
  scf.for %i = %c0 to %n step %c1 { memref.store %f, %x[%i] : memref<?xf32> }
  return
}

// The name of a private function is taken. The outlined function allocates the
// memory that only its loop uses, with the values stored there first, and
// clones constants.
// CHECK-LABEL: func.func @many
// CHECK-SAME: (%[[X:.*]]: memref<?xf32>, %[[N:.*]]: index, %[[C:.*]]: i1) -> f32
// CHECK: %[[SHARED:.*]] = memref.alloca() : memref<2xf32>
// CHECK-NEXT: %[[LATE:.*]] = memref.alloca() : memref<1xf32>
// CHECK-NEXT: %[[SUM:.*]] = scf.for
// CHECK-NOT: scf.for
// CHECK: call @__part_of_many_0(%[[SHARED]], %[[X]], %[[N]])
// CHECK-NEXT: call @__part_of_many_1(%[[SHARED]], %[[N]])
// CHECK-NEXT: call @__part_of_many_2(%[[LATE]], %[[N]])
// CHECK-NEXT: memref.store %{{.*}}, %[[LATE]]
// CHECK-NEXT: call @__part_of_many_3(%[[X]], %[[N]])
// CHECK-NEXT: call @__part_of_many_4
// CHECK-NEXT: call @__part_of_many_5
// CHECK-NEXT: call @__part_of_many_6
// CHECK-NEXT: call @__part_of_many_7
// CHECK-NEXT: call @__part_of_many_8(%[[X]], %[[N]], %[[C]])
// CHECK-NEXT: return %[[SUM]]
// CHECK: func.func private @__part_of_many_0
// CHECK: func.func private @__part_of_many_3(%[[X:.*]]: memref<?xf32>, %[[N:.*]]: index)
// CHECK-SAME: passthrough = ["noinline"]
// CHECK-DAG: %[[F:.*]] = arith.constant 1.0
// CHECK-DAG: %[[C0:.*]] = arith.constant 0
// CHECK: %[[OWN:.*]] = memref.alloca() : memref<1xf32>
// CHECK-NEXT: memref.store %[[F]], %[[OWN]][%[[C0]]]
// CHECK-NEXT: scf.for
// CHECK-NEXT: memref.load %[[OWN]][%[[C0]]]
// CHECK: return
// CHECK: func.func private @__part_of_many_8
// CHECK: scf.if
// CHECK-NEXT: scf.for
func.func @many(%x: memref<?xf32>, %n: index, %c: i1) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 1.0 : f32
  %own = memref.alloca() : memref<1xf32>
  %shared = memref.alloca() : memref<2xf32>
  %late = memref.alloca() : memref<1xf32>
  memref.store %f, %own[%c0] : memref<1xf32>
  // A loop with a result is not outlined.
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %f) -> f32 {
    %v = memref.load %x[%i] : memref<?xf32>
    %t = arith.addf %a, %v : f32
    scf.yield %t : f32
  }
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %shared[%c1] : memref<2xf32>
    memref.store %v, %x[%i] : memref<?xf32>
  }
  scf.for %i = %c0 to %n step %c1 { memref.store %f, %shared[%c0] : memref<2xf32> }
  // A store after the loop does not belong to it.
  scf.for %i = %c0 to %n step %c1 { memref.store %f, %late[%c0] : memref<1xf32> }
  memref.store %f, %late[%c0] : memref<1xf32>
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %own[%c0] : memref<1xf32>
    %one = memref.get_global @one : memref<1xf32>
    memref.store %v, %x[%i] : memref<?xf32>
  }
  scf.for %i = %c0 to %n step %c1 { memref.store %f, %x[%i] : memref<?xf32> }
  scf.for %i = %c0 to %n step %c1 { memref.store %f, %x[%i] : memref<?xf32> }
  scf.for %i = %c0 to %n step %c1 { memref.store %f, %x[%i] : memref<?xf32> }
  scf.for %i = %c0 to %n step %c1 { memref.store %f, %x[%i] : memref<?xf32> }
  scf.if %c {
    scf.for %i = %c0 to %n step %c1 { memref.store %f, %x[%i] : memref<?xf32> }
  }
  return %s : f32
}

func.func private @__part_of_many()

// Nested loops are outlined, too; memory that is allocated outside of them
// stays in the caller.
// CHECK-LABEL: func.func @nested
// CHECK: %[[OUTER:.*]] = memref.alloca()
// CHECK: scf.for
// CHECK-NEXT: call @__part_of_nested(%[[OUTER]], %{{.*}})
// CHECK: call @__part_of_nested_16
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @nested(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 1.0 : f32
  %x = memref.alloca() : memref<1xf32>
  memref.store %f, %x[%c0] : memref<1xf32>
  scf.for %j = %c0 to %n step %c1 {
    scf.for %i = %c0 to %j step %c1 { memref.store %f, %x[%c0] : memref<1xf32> }
    scf.for %i = %c0 to %j step %c1 { memref.store %f, %x[%c0] : memref<1xf32> }
    scf.for %i = %c0 to %j step %c1 { memref.store %f, %x[%c0] : memref<1xf32> }
    scf.for %i = %c0 to %j step %c1 { memref.store %f, %x[%c0] : memref<1xf32> }
    scf.for %i = %c0 to %j step %c1 { memref.store %f, %x[%c0] : memref<1xf32> }
    scf.for %i = %c0 to %j step %c1 { memref.store %f, %x[%c0] : memref<1xf32> }
    scf.for %i = %c0 to %j step %c1 { memref.store %f, %x[%c0] : memref<1xf32> }
    scf.for %i = %c0 to %j step %c1 { memref.store %f, %x[%c0] : memref<1xf32> }
    scf.for %i = %c0 to %j step %c1 { memref.store %f, %x[%c0] : memref<1xf32> }
  }
  return
}
