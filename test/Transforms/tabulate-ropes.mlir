//===- tabulate-ropes.mlir - ropes that need tables -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-tabulate-ropes --split-input-file \
// RUN:   --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --posenc-tabulate-ropes=min-rows=1 --split-input-file \
// RUN:   --mlir-print-local-scope | FileCheck %s --check-prefix=ALL
// RUN: posenc-opt %s --posenc-tabulate-ropes --split-input-file \
// RUN:   --remarks-filter=posenc -o %t 2>&1 | FileCheck %s --check-prefix=REMARK

#f = #posenc.frequencies<dim = 4>
#g = #posenc.frequencies<dim = 4, base = 2.0>

// The angle is q*g - p*f: only the sines of the inner rope are negated. The
// outer rope writes to the destination of the inner one.
// REMARK: composed with the rope that it rotates
// CHECK-LABEL: func.func @compose(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<?x8x4xf32>, %[[P:[^:]*]]: tensor<?xi64>, %[[Q:[^:]*]]: tensor<?xi64>, %[[O:[^:]*]]:
// CHECK:         %[[F:.*]]:2 = posenc.sincos <dim = 4, base = 1.000000e+04> positions(%[[P]] :
// CHECK:         %[[G:.*]]:2 = posenc.sincos <dim = 4, base = 2.000000e+00> positions(%[[Q]] :
// CHECK:         %[[T:.*]]:2 = linalg.generic {{.*}} ins(%[[F]]#0, %[[F]]#1 : {{.*}}) outs(%[[G]]#0, %[[G]]#1 :
// CHECK:         ^bb0(%[[C1:.*]]: f32, %[[S1:.*]]: f32, %[[C2:.*]]: f32, %[[S2:.*]]: f32):
// CHECK-NEXT:      %[[N:.*]] = arith.negf %[[S1]]
// CHECK-NEXT:      %[[CC:.*]] = arith.mulf %[[C2]], %[[C1]]
// CHECK-NEXT:      %[[SS:.*]] = arith.mulf %[[S2]], %[[N]]
// CHECK-NEXT:      %[[C:.*]] = arith.subf %[[CC]], %[[SS]]
// CHECK-NEXT:      %[[SC:.*]] = arith.mulf %[[S2]], %[[C1]]
// CHECK-NEXT:      %[[CS:.*]] = arith.mulf %[[C2]], %[[N]]
// CHECK-NEXT:      %[[S:.*]] = arith.addf %[[SC]], %[[CS]]
// CHECK-NEXT:      linalg.yield %[[C]], %[[S]]
// CHECK:         %[[R:.*]] = posenc.rotate half ins(%[[X]] : tensor<?x8x4xf32>) tables(%[[T]]#0, %[[T]]#1 : {{.*}}) dims = [0] outs(%[[O]] :
// CHECK-NEXT:    return %[[R]]
func.func @compose(%x: tensor<?x8x4xf32>, %p: tensor<?xi64>, %q: tensor<?xi64>, %o: tensor<?x8x4xf32>) -> tensor<?x8x4xf32> {
  %a = posenc.rope half inverse #f ins(%x : tensor<?x8x4xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%o : tensor<?x8x4xf32>)
  %b = posenc.rope half #g ins(%a : tensor<?x8x4xf32>) positions(%q : tensor<?xi64>) dims = [0] outs(%a : tensor<?x8x4xf32>)
  return %b : tensor<?x8x4xf32>
}

// -----

#f = #posenc.frequencies<dim = 4>
#x = #posenc.xpos<base = 512.0, gamma = 0.4, origin = 7, reciprocal = true>

// REMARK: has tables, as its factors need them
// CHECK-LABEL: func.func @scale(
// CHECK-SAME:    %{{.*}}, %[[P:[^:]*]]: tensor<?xi32>
// CHECK:         %[[E:.*]] = arith.constant dense<[{{.*}}]> : tensor<2xf64>
// CHECK:         %[[T:.*]]:2 = posenc.sincos
// CHECK:         %[[S:.*]]:2 = linalg.generic {{.*}} ins(%[[P]], %[[E]] : tensor<?xi32>, tensor<2xf64>) outs(%[[T]]#0, %[[T]]#1 :
// CHECK:           arith.subf
// CHECK:           math.floor
// CHECK-COUNT-2:   math.exp2 {{.*}} : f32
// CHECK:         posenc.rotate half inverse {{.*}} tables(%[[S]]#0, %[[S]]#1 :
func.func @scale(%x: tensor<?x4xf32>, %p: tensor<?xi32>) -> tensor<?x4xf32> {
  %r = posenc.rope half inverse #f scale #x ins(%x : tensor<?x4xf32>) positions(%p : tensor<?xi32>) dims = [0] outs(%x : tensor<?x4xf32>)
  return %r : tensor<?x4xf32>
}

// -----

#f = #posenc.frequencies<dim = 4>
#g = #posenc.frequencies<dim = 4, base = 2.0>

// Left alone: an inner rope with other users, other pairings, other shapes of
// positions, scalar positions, other tensors of the inner rope.
// CHECK-LABEL: func.func @others(
// CHECK-COUNT-10: posenc.rope
// CHECK-NOT: posenc.rotate
func.func @others(%x: tensor<?x4xf32>, %y: tensor<4x4xf32>, %p: tensor<?xi64>, %q: tensor<4xi64>, %n: i64)
    -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<4x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) {
  %a = posenc.rope half #f ins(%x : tensor<?x4xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x4xf32>)
  %b = posenc.rope half #g ins(%a : tensor<?x4xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x4xf32>)
  %c = posenc.rope interleaved #g ins(%x : tensor<?x4xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x4xf32>)
  %d = posenc.rope half #g ins(%c : tensor<?x4xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x4xf32>)
  %e = posenc.rope half #f ins(%y : tensor<4x4xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%y : tensor<4x4xf32>)
  %f = posenc.rope half #g ins(%e : tensor<4x4xf32>) positions(%q : tensor<4xi64>) dims = [0] outs(%y : tensor<4x4xf32>)
  %g = posenc.rope half #f ins(%x : tensor<?x4xf32>) positions(%n : i64) dims = [0] outs(%x : tensor<?x4xf32>)
  %h = posenc.rope half #g ins(%g : tensor<?x4xf32>) positions(%n : i64) dims = [0] outs(%x : tensor<?x4xf32>)
  %i:2 = posenc.rope half #f ins(%x, %x : tensor<?x4xf32>, tensor<?x4xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x, %x : tensor<?x4xf32>, tensor<?x4xf32>)
  %j = posenc.rope half #g ins(%i#0 : tensor<?x4xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x4xf32>)
  return %a, %b, %d, %f, %h, %i#1, %j : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<4x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

#f = #posenc.frequencies<dim = 4>
#g = #posenc.frequencies<dim = 4, base = 2.0>

// Few rows share a position.
// REMARK: too few rows share the tables that would compose two ropes
// CHECK-LABEL: func.func @few(
// CHECK-COUNT-2: posenc.rope
// ALL-LABEL: func.func @few(
// ALL-NOT:     posenc.rope
// ALL:         posenc.rotate
func.func @few(%x: tensor<?x7x4xf32>, %p: tensor<?xi64>) -> tensor<?x7x4xf32> {
  %a = posenc.rope half #f ins(%x : tensor<?x7x4xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x7x4xf32>)
  %b = posenc.rope half #g ins(%a : tensor<?x7x4xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%a : tensor<?x7x4xf32>)
  return %b : tensor<?x7x4xf32>
}

// -----

#f = #posenc.frequencies<dim = 4>
#g = #posenc.frequencies<dim = 4, base = 2.0>

// The inner rope stays out of the loop. Of two tensors, each result goes to the
// destination of the inner rope that the outer one overwrites.
// CHECK-LABEL: func.func @loop(
// CHECK:         posenc.rope
// CHECK:         scf.for
// CHECK:           posenc.rope
// CHECK-LABEL: func.func @swapped(
// CHECK-SAME:    %{{.*}}, %[[A:[^:]*]]: tensor<?x8x4xf32>, %[[B:[^:]*]]: tensor<?x8x4xf32>)
// CHECK:         posenc.rotate {{.*}} outs(%[[B]], %[[A]] :
func.func @loop(%x: tensor<?x8x4xf32>, %p: tensor<?xi64>, %n: index) -> tensor<?x8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = posenc.rope half #f ins(%x : tensor<?x8x4xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x8x4xf32>)
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%o = %x) -> tensor<?x8x4xf32> {
    %b = posenc.rope half #g ins(%a : tensor<?x8x4xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%o : tensor<?x8x4xf32>)
    scf.yield %b : tensor<?x8x4xf32>
  }
  return %r : tensor<?x8x4xf32>
}
func.func @swapped(%x: tensor<?x8x4xf32>, %p: tensor<?xi64>, %o0: tensor<?x8x4xf32>, %o1: tensor<?x8x4xf32>) -> (tensor<?x8x4xf32>, tensor<?x8x4xf32>) {
  %a:2 = posenc.rope half #f ins(%x, %x : tensor<?x8x4xf32>, tensor<?x8x4xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%o0, %o1 : tensor<?x8x4xf32>, tensor<?x8x4xf32>)
  %b:2 = posenc.rope half #g ins(%a#0, %a#1 : tensor<?x8x4xf32>, tensor<?x8x4xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%a#1, %a#0 : tensor<?x8x4xf32>, tensor<?x8x4xf32>)
  return %b#0, %b#1 : tensor<?x8x4xf32>, tensor<?x8x4xf32>
}
