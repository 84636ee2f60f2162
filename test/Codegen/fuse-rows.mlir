//===- fuse-rows.mlir - fusion of operations on the same rows -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{fuse} = func.func(posenc-fuse-elementwise,posenc-fuse-rows),cse
// RUN: posenc-opt %s --split-input-file --mlir-print-local-scope \
// RUN:   --pass-pipeline='builtin.module(%{fuse},canonicalize)' | FileCheck %s
// RUN: posenc-opt %s --split-input-file --mlir-print-local-scope \
// RUN:   --pass-pipeline='builtin.module(%{fuse},func.func(posenc-reuse-operands),canonicalize)' \
// RUN:   | FileCheck %s --check-prefix=REUSE

// The sum of a row is needed for that row alone, so both loops are fused.
// CHECK-LABEL: func.func @norm(
// CHECK:         scf.forall (%[[I:.*]]) in
// CHECK:           linalg.fill {{.*}} -> tensor<1xf32>
// CHECK:           linalg.generic {{.*}}"reduction"{{.*}} outs(%{{.*}} : tensor<1xf32>)
// CHECK:           math.rsqrt
// CHECK:           scf.forall.in_parallel
// CHECK-NOT:     linalg.
// CHECK:         return
func.func @norm(%x: tensor<?x?xf32>, %e: tensor<?xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%a: f32, %c: f32):
    %p = arith.mulf %a, %a : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%o : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %k = math.rsqrt %b : f32
    %p = arith.mulf %a, %k : f32
    linalg.yield %p : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

// A row of the table serves the whole batch, so the batch is not a loop of the
// rows.
// CHECK-LABEL: func.func @table(
// CHECK:         scf.forall (%[[S:.*]]) in
// CHECK-DAG:       posenc.sinusoidal {{.*}} : tensor<1x64xf32>
// CHECK-DAG:       tensor.extract_slice %{{.*}}[0, %[[S]], 0] [%{{.*}}, 1, 64]
// CHECK:           linalg.generic {{.*}}"parallel", "parallel", "parallel"
func.func @table(%x: tensor<?x?x64xf32>, %p: tensor<?xi64>, %e: tensor<?x64xf32>, %o: tensor<?x?x64xf32>) -> tensor<?x?x64xf32> {
  %t = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 64> positions(%p : tensor<?xi64>) outs(%e : tensor<?x64xf32>)
  %r = linalg.generic {indexing_maps = [affine_map<(b, s, d) -> (b, s, d)>, affine_map<(b, s, d) -> (s, d)>, affine_map<(b, s, d) -> (b, s, d)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %t : tensor<?x?x64xf32>, tensor<?x64xf32>) outs(%o : tensor<?x?x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %y = arith.addf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<?x?x64xf32>
  return %r : tensor<?x?x64xf32>
}

// -----

// A value with two uses is computed once and overwritten at the end: the two
// rows share memory.
// CHECK-LABEL: func.func @twice(
// CHECK-COUNT-1: math.exp
// CHECK-NOT:     math.exp
// REUSE-LABEL: func.func @twice(
// REUSE:         scf.forall {{.*}} shared_outs(%[[O:.*]] = %{{.*}})
// REUSE:           %[[ROW:.*]] = tensor.extract_slice %[[O]]
// REUSE:           %[[E:.*]] = linalg.generic {{.*}} outs(%[[ROW]] :
// REUSE:             math.exp
// REUSE:           linalg.generic {{.*}} ins(%{{.*}} : tensor<1xf32>) outs(%[[E]] :
// REUSE:             arith.divf
func.func @twice(%x: tensor<?x?xf32>, %f: tensor<?xf32>, %e: tensor<?x?xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %v = linalg.exp ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = linalg.reduce { arith.addf } ins(%v : tensor<?x?xf32>) outs(%f : tensor<?xf32>) dimensions = [1]
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%v, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%o : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

// A result that is also used after the loop is returned by it.
// CHECK-LABEL: func.func @both(
// CHECK:         %[[R:[0-9]+]]:2 = scf.forall
// CHECK:         return %[[R]]#1, %[[R]]#0
func.func @both(%x: tensor<?x64xf32>, %f: tensor<?xf32>, %e: tensor<?x64xf32>, %o: tensor<?xf32>) -> (tensor<?x64xf32>, tensor<?xf32>) {
  %v = linalg.exp ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %r = linalg.reduce { arith.addf } ins(%v : tensor<?x64xf32>) outs(%o : tensor<?xf32>) dimensions = [1]
  return %v, %r : tensor<?x64xf32>, tensor<?xf32>
}

// -----

// Sums of columns need all rows, so they are not fused.
// CHECK-LABEL: func.func @columns(
// CHECK-NOT:     scf.forall
func.func @columns(%x: tensor<?x?xf32>, %f: tensor<?xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %s = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) dimensions = [0]
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%o : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %y = arith.addf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

// The producers of a rope are computed for all heads of a position at a time.
// CHECK-LABEL: func.func @before_rope(
// CHECK:         scf.forall (%[[B:.*]], %[[S:.*]]) in
// CHECK:           linalg.generic {{.*}} outs(%{{.*}} : tensor<1x1x4x32xf32>)
// CHECK:           posenc.rope {{.*}} : tensor<1x1x4x32xf32>
// CHECK-NOT:     linalg.
// CHECK:         return
func.func @before_rope(%x: tensor<?x?x4x32xf32>, %b: tensor<32xf32>, %p: tensor<?x?xi64>, %e: tensor<?x?x4x32xf32>, %o: tensor<?x?x4x32xf32>) -> tensor<?x?x4x32xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(b, s, h, d) -> (b, s, h, d)>, affine_map<(b, s, h, d) -> (d)>, affine_map<(b, s, h, d) -> (b, s, h, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %b : tensor<?x?x4x32xf32>, tensor<32xf32>) outs(%e : tensor<?x?x4x32xf32>) {
  ^bb0(%a: f32, %c: f32, %d: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<?x?x4x32xf32>
  %r = posenc.rope half #posenc.frequencies<dim = 32> ins(%y : tensor<?x?x4x32xf32>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%o : tensor<?x?x4x32xf32>)
  return %r : tensor<?x?x4x32xf32>
}

// -----

// The consumers of a rope are, too.
// CHECK-LABEL: func.func @after_rope(
// CHECK:         scf.forall (%[[B:.*]], %[[S:.*]]) in
// CHECK:           posenc.rope {{.*}} : tensor<1x1x4x32xf32>
// CHECK:           linalg.generic {{.*}} outs(%{{.*}} : tensor<1x1x4x32xf32>)
func.func @after_rope(%x: tensor<?x?x4x32xf32>, %p: tensor<?x?xi64>, %e: tensor<?x?x4x32xf32>, %o: tensor<?x?x4x32xf32>) -> tensor<?x?x4x32xf32> {
  %y = posenc.rope half #posenc.frequencies<dim = 32> ins(%x : tensor<?x?x4x32xf32>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%e : tensor<?x?x4x32xf32>)
  %r = linalg.generic {indexing_maps = [affine_map<(b, s, h, d) -> (b, s, h, d)>, affine_map<(b, s, h, d) -> (b, s, h, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%y : tensor<?x?x4x32xf32>) outs(%o : tensor<?x?x4x32xf32>) {
  ^bb0(%a: f32, %d: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<?x?x4x32xf32>
  return %r : tensor<?x?x4x32xf32>
}
