//===- merge-equal-operations.mlir - one operation for equal ones ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s \
// RUN:   --pass-pipeline='builtin.module(func.func(posenc-merge-equal-operations))' \
// RUN:   | FileCheck %s
// Upstream's pass has the same output.
// RUN: posenc-opt %s --cse | FileCheck %s

// Loops with equal operands are merged if they use the same tensors. The operands
// of the second sum are merged before it.

// CHECK-LABEL: func.func @loops
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>, %[[V:.*]]: tensor<4xf32>, %[[W:.*]]: tensor<4xf32>
// CHECK: %[[A:.*]] = scf.for
// CHECK: arith.addf %{{.*}}, %[[V]]
// CHECK: %[[B:.*]] = scf.for
// CHECK: arith.addf %{{.*}}, %[[W]]
// CHECK-NOT: scf.for
// CHECK: %[[SUM:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT: return %[[A]], %[[B]], %[[A]], %[[SUM]], %[[SUM]]
func.func @loops(%x: tensor<4xf32>, %v: tensor<4xf32>, %w: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> tensor<4xf32> {
    %3 = arith.addf %a, %v : tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  }
  %1 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> tensor<4xf32> {
    %3 = arith.addf %a, %w : tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  }
  %2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> tensor<4xf32> {
    %3 = arith.addf %a, %v : tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  }
  %first = arith.addf %0, %1 : tensor<4xf32>
  %second = arith.addf %2, %1 : tensor<4xf32>
  return %0, %1, %2, %first, %second
    : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// The order of operands in a region counts.

// CHECK-LABEL: func.func @regions
// CHECK: linalg.generic
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return %[[FIRST:.*]], %{{.*}}, %[[FIRST]] :
func.func @regions(%x: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]}
    ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %3 = arith.subf %a, %b : f32
    linalg.yield %3 : f32
  } -> tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]}
    ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %3 = arith.subf %b, %a : f32
    linalg.yield %3 : f32
  } -> tensor<4xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]}
    ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %3 = arith.subf %a, %b : f32
    linalg.yield %3 : f32
  } -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What precedes an operation is known in its regions, but the operations of one
// region are not known after it, nor in another one.

// CHECK-LABEL: func.func @scopes
// CHECK-NEXT: %[[NEGATED:.*]] = arith.negf
// CHECK-NEXT: %[[IF:.*]] = scf.if
// CHECK-NEXT: %[[ABS:.*]] = math.absf
// CHECK-NEXT: arith.addf %[[NEGATED]], %[[ABS]]
// CHECK-NEXT: scf.yield
// CHECK-NEXT: } else {
// CHECK-NEXT: math.absf
// CHECK-NEXT: scf.yield
// CHECK: %[[LAST:.*]] = math.absf
// CHECK-NEXT: arith.addf %[[IF]], %[[LAST]]
func.func @scopes(%x: f32, %cond: i1) -> f32 {
  %0 = arith.negf %x : f32
  %1 = scf.if %cond -> f32 {
    %4 = arith.negf %x : f32
    %5 = math.absf %x : f32
    %6 = arith.addf %4, %5 : f32
    scf.yield %6 : f32
  } else {
    %4 = math.absf %x : f32
    scf.yield %4 : f32
  }
  %2 = math.absf %x : f32
  %3 = arith.addf %1, %2 : f32
  %7 = arith.addf %3, %0 : f32
  return %7 : f32
}

// Operations with effects stay, and so do the loops around them.

// CHECK-LABEL: func.func @effects
// CHECK-COUNT-2: scf.for
// CHECK-COUNT-2: memref.alloc
// CHECK: return
func.func @effects(%m: memref<4xf32>, %x: f32) -> (memref<4xf32>, memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    memref.store %x, %m[%i] : memref<4xf32>
  }
  scf.for %i = %c0 to %c4 step %c1 {
    memref.store %x, %m[%i] : memref<4xf32>
  }
  %0 = memref.alloc() : memref<4xf32>
  %1 = memref.alloc() : memref<4xf32>
  return %0, %1 : memref<4xf32>, memref<4xf32>
}

// The blocks of a region do not share operations. An operation without uses is
// erased.

// CHECK-LABEL: func.func @blocks
// CHECK-NOT: arith.mulf
// CHECK-COUNT-2: arith.negf
// CHECK: return
func.func @blocks(%x: f32, %cond: i1) -> f32 {
  %unused = arith.mulf %x, %x : f32
  cf.cond_br %cond, ^a, ^b
^a:
  %0 = arith.negf %x : f32
  cf.br ^c(%0 : f32)
^b:
  %1 = arith.negf %x : f32
  cf.br ^c(%1 : f32)
^c(%r: f32):
  return %r : f32
}
