//===- canonicalize-kernels.mlir - canonical forms of large kernels -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Values that a loop or branch carries stay, which takes long to change in kernels with
// hundreds of them. Other patterns of upstream's canonicalizer apply, those of loops and
// branches included.

// RUN: posenc-opt %s --posenc-canonicalize-kernels | FileCheck %s
// RUN: posenc-opt %s --canonicalize | FileCheck %s --check-prefix=UPSTREAM

// CHECK-LABEL: func.func @carried
// CHECK-NOT: arith.addi
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}})
// CHECK: %[[C:.*]] = arith.muli %[[A]], %[[B]]
// CHECK: scf.yield %[[C]], %[[C]]
// CHECK: return %[[R]]#0, %[[R]]#1
// UPSTREAM-LABEL: func.func @carried
// UPSTREAM: %[[R:.*]] = scf.for {{.*}} iter_args(%[[A:.*]] = %{{[^,]*}})
// UPSTREAM: return %[[R]], %[[R]]
func.func @carried(%n: index, %x: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %x) -> (i32, i32) {
    %sum = arith.addi %a, %zero : i32
    %c = arith.muli %sum, %b : i32
    scf.yield %c, %c : i32, i32
  }
  return %r#0, %r#1 : i32, i32
}

// CHECK-LABEL: func.func @trivial
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: i32, %[[Y:.*]]: i32)
// CHECK-NEXT: %[[R:.*]] = arith.select %[[C]], %[[X]], %[[Y]] : i32
// CHECK-NEXT: return %[[R]], %[[X]]
func.func @trivial(%condition: i1, %x: i32, %y: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.if %condition -> (i32) {
    scf.yield %x : i32
  } else {
    scf.yield %y : i32
  }
  %once = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %x) -> (i32) {
    scf.yield %a : i32
  }
  return %r, %once : i32, i32
}
