//===- merge-ropes.mlir - ropes at the same positions become one ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-fuse-ropes --split-input-file \
// RUN:   --mlir-print-local-scope | FileCheck %s

#f = #posenc.frequencies<dim = 16, base = 1.000000e+04>

// Heads and ranks may differ. Operands are in the order of the ropes.
// CHECK-LABEL: func.func @three(
// CHECK-SAME:    %[[A:[^:]*]]: tensor<?x4x16xf32>, %[[B:[^:]*]]: tensor<?x16xf32>, %[[C:[^:]*]]: tensor<5x2x32xf32>
// CHECK-NEXT:    %[[R:.*]]:3 = posenc.rope half <{{.*}}> ins(%[[A]], %[[B]], %[[C]] :
// CHECK-NEXT:    return %[[R]]#0, %[[R]]#1, %[[R]]#2
func.func @three(%a: tensor<?x4x16xf32>, %b: tensor<?x16xf32>, %c: tensor<5x2x32xf32>, %p: tensor<?xi64>)
    -> (tensor<?x4x16xf32>, tensor<?x16xf32>, tensor<5x2x32xf32>) {
  %0 = posenc.rope half #f ins(%a : tensor<?x4x16xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%a : tensor<?x4x16xf32>)
  %1 = posenc.rope half #f ins(%b : tensor<?x16xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%b : tensor<?x16xf32>)
  %2 = posenc.rope half #f ins(%c : tensor<5x2x32xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%c : tensor<5x2x32xf32>)
  return %0, %1, %2 : tensor<?x4x16xf32>, tensor<?x16xf32>, tensor<5x2x32xf32>
}

// -----

#f = #posenc.frequencies<dim = 16, base = 1.000000e+04>

// The keys are defined between the ropes, so the merged rope is at the last
// one.
// CHECK-LABEL: func.func @at_the_last(
// CHECK:         %[[K:.*]] = linalg.mul
// CHECK-NEXT:    %[[R:.*]]:2 = posenc.rope half <{{.*}}> ins(%{{.*}}, %[[K]] :
// CHECK-NEXT:    return %[[R]]#0, %[[R]]#1
func.func @at_the_last(%q: tensor<4x16xf32>, %k: tensor<4x16xf32>, %p: tensor<4xi64>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %0 = posenc.rope half #f ins(%q : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%q : tensor<4x16xf32>)
  %1 = linalg.mul ins(%k, %k : tensor<4x16xf32>, tensor<4x16xf32>) outs(%k : tensor<4x16xf32>) -> tensor<4x16xf32>
  %2 = posenc.rope half #f ins(%1 : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%1 : tensor<4x16xf32>)
  return %0, %2 : tensor<4x16xf32>, tensor<4x16xf32>
}

// -----

#f = #posenc.frequencies<dim = 16, base = 1.000000e+04>

// The queries are used between the ropes, so the merged rope is at the first
// one.
// CHECK-LABEL: func.func @at_the_first(
// CHECK-NEXT:    %[[R:.*]]:2 = posenc.rope half
// CHECK-NEXT:    %[[M:.*]] = linalg.mul ins(%[[R]]#0, %[[R]]#0 :
// CHECK-NEXT:    return %[[M]], %[[R]]#1
func.func @at_the_first(%q: tensor<4x16xf32>, %k: tensor<4x16xf32>, %p: tensor<4xi64>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %0 = posenc.rope half #f ins(%q : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%q : tensor<4x16xf32>)
  %1 = linalg.mul ins(%0, %0 : tensor<4x16xf32>, tensor<4x16xf32>) outs(%q : tensor<4x16xf32>) -> tensor<4x16xf32>
  %2 = posenc.rope half #f ins(%k : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%k : tensor<4x16xf32>)
  return %1, %2 : tensor<4x16xf32>, tensor<4x16xf32>
}

// -----

#f = #posenc.frequencies<dim = 16, base = 1.000000e+04>

// Not merged: the second rope depends on the first one through a region.
// CHECK-LABEL: func.func @not_dependent(
// CHECK-COUNT-2: = posenc.rope half
func.func @not_dependent(%q: tensor<4x16xf32>, %p: tensor<4xi64>, %b: i1) -> tensor<4x16xf32> {
  %0 = posenc.rope half #f ins(%q : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%q : tensor<4x16xf32>)
  %1 = scf.if %b -> tensor<4x16xf32> {
    %3 = linalg.exp ins(%0 : tensor<4x16xf32>) outs(%q : tensor<4x16xf32>) -> tensor<4x16xf32>
    scf.yield %3 : tensor<4x16xf32>
  } else {
    scf.yield %q : tensor<4x16xf32>
  }
  %2 = posenc.rope half #f ins(%1 : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%1 : tensor<4x16xf32>)
  return %2 : tensor<4x16xf32>
}

// -----

#y = #posenc.frequencies<dim = 16, base = 1.000000e+04,
  scaling = #posenc.yarn<factor = 4.000000e+00, original_max_position = 4.096000e+03>>

// Not merged: the second rope rotates the result of the first one. (With a
// factor of 1, the two would be folded by adding their positions.)
// CHECK-LABEL: func.func @not_of_each_other(
// CHECK-COUNT-2: = posenc.rope half
func.func @not_of_each_other(%q: tensor<4x16xf32>, %p: tensor<4xi64>) -> tensor<4x16xf32> {
  %0 = posenc.rope half #y ins(%q : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%q : tensor<4x16xf32>)
  %1 = posenc.rope half #y ins(%0 : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%0 : tensor<4x16xf32>)
  return %1 : tensor<4x16xf32>
}

// -----

#f = #posenc.frequencies<dim = 16, base = 1.000000e+04>
#g = #posenc.frequencies<dim = 16, base = 5.000000e+05>

// CHECK-LABEL: func.func @not_unlike(
// CHECK-COUNT-7: = posenc.rope
func.func @not_unlike(%q: tensor<4x4x18xf32>, %h: tensor<4x4x18xf16>, %p: tensor<4xi64>, %r: tensor<4xi64>)
    -> (tensor<4x4x18xf32>, tensor<4x4x18xf32>, tensor<4x4x18xf32>, tensor<4x4x18xf32>, tensor<4x4x18xf32>, tensor<4x4x18xf32>, tensor<4x4x18xf16>) {
  %0 = posenc.rope half #f ins(%q : tensor<4x4x18xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%q : tensor<4x4x18xf32>)
  %1 = posenc.rope interleaved #f ins(%q : tensor<4x4x18xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%q : tensor<4x4x18xf32>)
  %2 = posenc.rope half inverse #f ins(%q : tensor<4x4x18xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%q : tensor<4x4x18xf32>)
  %3 = posenc.rope half #g ins(%q : tensor<4x4x18xf32>) positions(%p : tensor<4xi64>) dims = [0] offset = 2 outs(%q : tensor<4x4x18xf32>)
  %4 = posenc.rope half #f ins(%q : tensor<4x4x18xf32>) positions(%p : tensor<4xi64>) dims = [1] outs(%q : tensor<4x4x18xf32>)
  %5 = posenc.rope half #f ins(%q : tensor<4x4x18xf32>) positions(%r : tensor<4xi64>) dims = [0] outs(%q : tensor<4x4x18xf32>)
  %6 = posenc.rope half #f ins(%h : tensor<4x4x18xf16>) positions(%p : tensor<4xi64>) dims = [0] outs(%h : tensor<4x4x18xf16>)
  return %0, %1, %2, %3, %4, %5, %6 : tensor<4x4x18xf32>, tensor<4x4x18xf32>, tensor<4x4x18xf32>, tensor<4x4x18xf32>, tensor<4x4x18xf32>, tensor<4x4x18xf32>, tensor<4x4x18xf16>
}

// -----

#f = #posenc.frequencies<dim = 16, base = 1.000000e+04>

// With a scalar position, tensors of equal length have the same positions.
// CHECK-LABEL: func.func @scalar_position(
// CHECK:         posenc.rope half <{{.*}}> ins(%{{.*}}, %{{.*}} : tensor<4x16xf32>, tensor<4x2x16xf32>) positions(%{{.*}} : i64)
// CHECK-NOT:     posenc.rope
func.func @scalar_position(%q: tensor<4x16xf32>, %k: tensor<4x2x16xf32>, %p: i64) -> (tensor<4x16xf32>, tensor<4x2x16xf32>) {
  %0 = posenc.rope half #f ins(%q : tensor<4x16xf32>) positions(%p : i64) dims = [0] outs(%q : tensor<4x16xf32>)
  %1 = posenc.rope half #f ins(%k : tensor<4x2x16xf32>) positions(%p : i64) dims = [0] outs(%k : tensor<4x2x16xf32>)
  return %0, %1 : tensor<4x16xf32>, tensor<4x2x16xf32>
}

// -----

#f = #posenc.frequencies<dim = 16, base = 1.000000e+04>

// Two dynamic lengths may differ.
// CHECK-LABEL: func.func @not_scalar_position_of_unknown_length(
// CHECK-COUNT-2: = posenc.rope half
func.func @not_scalar_position_of_unknown_length(%q: tensor<?x16xf32>, %k: tensor<?x2x16xf32>, %p: i64) -> (tensor<?x16xf32>, tensor<?x2x16xf32>) {
  %0 = posenc.rope half #f ins(%q : tensor<?x16xf32>) positions(%p : i64) dims = [0] outs(%q : tensor<?x16xf32>)
  %1 = posenc.rope half #f ins(%k : tensor<?x2x16xf32>) positions(%p : i64) dims = [0] outs(%k : tensor<?x2x16xf32>)
  return %0, %1 : tensor<?x16xf32>, tensor<?x2x16xf32>
}

// -----

#f = #posenc.frequencies<dim = 16, base = 1.000000e+04>

// A common table implies that the lengths are equal.
// CHECK-LABEL: func.func @scalar_position_of_one_table(
// CHECK-NOT:     posenc.sincos
// CHECK:         posenc.rope half <{{.*}}> ins(%{{.*}}, %{{.*}} : tensor<?x16xf32>, tensor<?x2x16xf32>) positions(%{{.*}} : i64)
// CHECK-NOT:     posenc.rope
func.func @scalar_position_of_one_table(%q: tensor<?x16xf32>, %k: tensor<?x2x16xf32>, %p: i64, %c: tensor<?x8xf32>) -> (tensor<?x16xf32>, tensor<?x2x16xf32>) {
  %cos, %sin = posenc.sincos #f positions(%p : i64) outs(%c, %c : tensor<?x8xf32>, tensor<?x8xf32>)
  %0 = posenc.rotate half ins(%q : tensor<?x16xf32>) tables(%cos, %sin : tensor<?x8xf32>) dims = [0] outs(%q : tensor<?x16xf32>)
  %1 = posenc.rotate half ins(%k : tensor<?x2x16xf32>) tables(%cos, %sin : tensor<?x8xf32>) dims = [0] outs(%k : tensor<?x2x16xf32>)
  return %0, %1 : tensor<?x16xf32>, tensor<?x2x16xf32>
}

// -----

// Tables in memory cost nothing to share.
// CHECK-LABEL: func.func @not_of_given_tables(
// CHECK-COUNT-2: = posenc.rotate half
func.func @not_of_given_tables(%q: tensor<4x16xf32>, %k: tensor<4x2x16xf32>, %cos: tensor<4x8xf32>, %sin: tensor<4x8xf32>) -> (tensor<4x16xf32>, tensor<4x2x16xf32>) {
  %0 = posenc.rotate half ins(%q : tensor<4x16xf32>) tables(%cos, %sin : tensor<4x8xf32>) dims = [0] outs(%q : tensor<4x16xf32>)
  %1 = posenc.rotate half ins(%k : tensor<4x2x16xf32>) tables(%cos, %sin : tensor<4x8xf32>) dims = [0] outs(%k : tensor<4x2x16xf32>)
  return %0, %1 : tensor<4x16xf32>, tensor<4x2x16xf32>
}

// -----

#f = #posenc.frequencies<dim = 16, base = 1.000000e+04>

// Another block may not run, or may run more often.
// CHECK-LABEL: func.func @not_of_other_blocks(
// CHECK:         posenc.rope half
// CHECK:         scf.if
// CHECK:         posenc.rope half
func.func @not_of_other_blocks(%q: tensor<4x16xf32>, %k: tensor<4x16xf32>, %p: tensor<4xi64>, %b: i1) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %0 = posenc.rope half #f ins(%q : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%q : tensor<4x16xf32>)
  %1 = scf.if %b -> tensor<4x16xf32> {
    %2 = posenc.rope half #f ins(%k : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%k : tensor<4x16xf32>)
    scf.yield %2 : tensor<4x16xf32>
  } else {
    scf.yield %k : tensor<4x16xf32>
  }
  return %0, %1 : tensor<4x16xf32>, tensor<4x16xf32>
}

// -----

#f = #posenc.frequencies<dim = 2, base = 1.000000e+04>

// A rope has at most 16 tensors.
// CHECK-LABEL: func.func @not_more_than_16(
// CHECK:         posenc.rope half <{{.*}}> ins(%{{.*}} : tensor<1x2xf32>)
// CHECK:         %{{.*}}:16 = posenc.rope half
func.func @not_more_than_16(%a: tensor<1x2xf32>, %p: tensor<1xi64>)
    -> (tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>) {
  %0 = posenc.rope half #f ins(%a : tensor<1x2xf32>) positions(%p : tensor<1xi64>) dims = [0] outs(%a : tensor<1x2xf32>)
  %1:16 = posenc.rope half #f ins(%a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a
      : tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>,
        tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>)
    positions(%p : tensor<1xi64>) dims = [0]
    outs(%a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a
      : tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>,
        tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>)
  return %0, %1#0, %1#15 : tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>
}
