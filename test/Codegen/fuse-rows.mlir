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

// -----

// Iterations have at most 256 operations, so the first of the three producers
// has a loop of its own.
// CHECK-LABEL: func.func @long(
// CHECK:         linalg.generic
// CHECK:         scf.forall
// CHECK-COUNT-2:   linalg.generic
// CHECK-NOT:       linalg.generic
// CHECK:           scf.forall.in_parallel
// CHECK:         return
func.func @long(%x: tensor<64x8xf32>, %e: tensor<64x8xf32>) -> tensor<64x8xf32> {
  %p = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x8xf32>) outs(%e : tensor<64x8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %p1 = arith.addf %a, %a : f32  %p2 = arith.addf %p1, %a : f32  %p3 = arith.addf %p2, %a : f32  %p4 = arith.addf %p3, %a : f32  %p5 = arith.addf %p4, %a : f32  %p6 = arith.addf %p5, %a : f32  %p7 = arith.addf %p6, %a : f32  %p8 = arith.addf %p7, %a : f32  %p9 = arith.addf %p8, %a : f32  %p10 = arith.addf %p9, %a : f32
    %p11 = arith.addf %p10, %a : f32  %p12 = arith.addf %p11, %a : f32  %p13 = arith.addf %p12, %a : f32  %p14 = arith.addf %p13, %a : f32  %p15 = arith.addf %p14, %a : f32  %p16 = arith.addf %p15, %a : f32  %p17 = arith.addf %p16, %a : f32  %p18 = arith.addf %p17, %a : f32  %p19 = arith.addf %p18, %a : f32  %p20 = arith.addf %p19, %a : f32
    %p21 = arith.addf %p20, %a : f32  %p22 = arith.addf %p21, %a : f32  %p23 = arith.addf %p22, %a : f32  %p24 = arith.addf %p23, %a : f32  %p25 = arith.addf %p24, %a : f32  %p26 = arith.addf %p25, %a : f32  %p27 = arith.addf %p26, %a : f32  %p28 = arith.addf %p27, %a : f32  %p29 = arith.addf %p28, %a : f32  %p30 = arith.addf %p29, %a : f32
    %p31 = arith.addf %p30, %a : f32  %p32 = arith.addf %p31, %a : f32  %p33 = arith.addf %p32, %a : f32  %p34 = arith.addf %p33, %a : f32  %p35 = arith.addf %p34, %a : f32  %p36 = arith.addf %p35, %a : f32  %p37 = arith.addf %p36, %a : f32  %p38 = arith.addf %p37, %a : f32  %p39 = arith.addf %p38, %a : f32  %p40 = arith.addf %p39, %a : f32
    %p41 = arith.addf %p40, %a : f32  %p42 = arith.addf %p41, %a : f32  %p43 = arith.addf %p42, %a : f32  %p44 = arith.addf %p43, %a : f32  %p45 = arith.addf %p44, %a : f32  %p46 = arith.addf %p45, %a : f32  %p47 = arith.addf %p46, %a : f32  %p48 = arith.addf %p47, %a : f32  %p49 = arith.addf %p48, %a : f32  %p50 = arith.addf %p49, %a : f32
    %p51 = arith.addf %p50, %a : f32  %p52 = arith.addf %p51, %a : f32  %p53 = arith.addf %p52, %a : f32  %p54 = arith.addf %p53, %a : f32  %p55 = arith.addf %p54, %a : f32  %p56 = arith.addf %p55, %a : f32  %p57 = arith.addf %p56, %a : f32  %p58 = arith.addf %p57, %a : f32  %p59 = arith.addf %p58, %a : f32  %p60 = arith.addf %p59, %a : f32
    %p61 = arith.addf %p60, %a : f32  %p62 = arith.addf %p61, %a : f32  %p63 = arith.addf %p62, %a : f32  %p64 = arith.addf %p63, %a : f32  %p65 = arith.addf %p64, %a : f32  %p66 = arith.addf %p65, %a : f32  %p67 = arith.addf %p66, %a : f32  %p68 = arith.addf %p67, %a : f32  %p69 = arith.addf %p68, %a : f32  %p70 = arith.addf %p69, %a : f32
    %p71 = arith.addf %p70, %a : f32  %p72 = arith.addf %p71, %a : f32  %p73 = arith.addf %p72, %a : f32  %p74 = arith.addf %p73, %a : f32  %p75 = arith.addf %p74, %a : f32  %p76 = arith.addf %p75, %a : f32  %p77 = arith.addf %p76, %a : f32  %p78 = arith.addf %p77, %a : f32  %p79 = arith.addf %p78, %a : f32  %p80 = arith.addf %p79, %a : f32
    %p81 = arith.addf %p80, %a : f32  %p82 = arith.addf %p81, %a : f32  %p83 = arith.addf %p82, %a : f32  %p84 = arith.addf %p83, %a : f32  %p85 = arith.addf %p84, %a : f32  %p86 = arith.addf %p85, %a : f32  %p87 = arith.addf %p86, %a : f32  %p88 = arith.addf %p87, %a : f32  %p89 = arith.addf %p88, %a : f32  %p90 = arith.addf %p89, %a : f32
    %p91 = arith.addf %p90, %a : f32  %p92 = arith.addf %p91, %a : f32  %p93 = arith.addf %p92, %a : f32  %p94 = arith.addf %p93, %a : f32  %p95 = arith.addf %p94, %a : f32  %p96 = arith.addf %p95, %a : f32  %p97 = arith.addf %p96, %a : f32  %p98 = arith.addf %p97, %a : f32  %p99 = arith.addf %p98, %a : f32  %p100 = arith.addf %p99, %a : f32
    linalg.yield %p100 : f32
  } -> tensor<64x8xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%p : tensor<64x8xf32>) outs(%e : tensor<64x8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %q1 = arith.addf %a, %a : f32  %q2 = arith.addf %q1, %a : f32  %q3 = arith.addf %q2, %a : f32  %q4 = arith.addf %q3, %a : f32  %q5 = arith.addf %q4, %a : f32  %q6 = arith.addf %q5, %a : f32  %q7 = arith.addf %q6, %a : f32  %q8 = arith.addf %q7, %a : f32  %q9 = arith.addf %q8, %a : f32  %q10 = arith.addf %q9, %a : f32
    %q11 = arith.addf %q10, %a : f32  %q12 = arith.addf %q11, %a : f32  %q13 = arith.addf %q12, %a : f32  %q14 = arith.addf %q13, %a : f32  %q15 = arith.addf %q14, %a : f32  %q16 = arith.addf %q15, %a : f32  %q17 = arith.addf %q16, %a : f32  %q18 = arith.addf %q17, %a : f32  %q19 = arith.addf %q18, %a : f32  %q20 = arith.addf %q19, %a : f32
    %q21 = arith.addf %q20, %a : f32  %q22 = arith.addf %q21, %a : f32  %q23 = arith.addf %q22, %a : f32  %q24 = arith.addf %q23, %a : f32  %q25 = arith.addf %q24, %a : f32  %q26 = arith.addf %q25, %a : f32  %q27 = arith.addf %q26, %a : f32  %q28 = arith.addf %q27, %a : f32  %q29 = arith.addf %q28, %a : f32  %q30 = arith.addf %q29, %a : f32
    %q31 = arith.addf %q30, %a : f32  %q32 = arith.addf %q31, %a : f32  %q33 = arith.addf %q32, %a : f32  %q34 = arith.addf %q33, %a : f32  %q35 = arith.addf %q34, %a : f32  %q36 = arith.addf %q35, %a : f32  %q37 = arith.addf %q36, %a : f32  %q38 = arith.addf %q37, %a : f32  %q39 = arith.addf %q38, %a : f32  %q40 = arith.addf %q39, %a : f32
    %q41 = arith.addf %q40, %a : f32  %q42 = arith.addf %q41, %a : f32  %q43 = arith.addf %q42, %a : f32  %q44 = arith.addf %q43, %a : f32  %q45 = arith.addf %q44, %a : f32  %q46 = arith.addf %q45, %a : f32  %q47 = arith.addf %q46, %a : f32  %q48 = arith.addf %q47, %a : f32  %q49 = arith.addf %q48, %a : f32  %q50 = arith.addf %q49, %a : f32
    %q51 = arith.addf %q50, %a : f32  %q52 = arith.addf %q51, %a : f32  %q53 = arith.addf %q52, %a : f32  %q54 = arith.addf %q53, %a : f32  %q55 = arith.addf %q54, %a : f32  %q56 = arith.addf %q55, %a : f32  %q57 = arith.addf %q56, %a : f32  %q58 = arith.addf %q57, %a : f32  %q59 = arith.addf %q58, %a : f32  %q60 = arith.addf %q59, %a : f32
    %q61 = arith.addf %q60, %a : f32  %q62 = arith.addf %q61, %a : f32  %q63 = arith.addf %q62, %a : f32  %q64 = arith.addf %q63, %a : f32  %q65 = arith.addf %q64, %a : f32  %q66 = arith.addf %q65, %a : f32  %q67 = arith.addf %q66, %a : f32  %q68 = arith.addf %q67, %a : f32  %q69 = arith.addf %q68, %a : f32  %q70 = arith.addf %q69, %a : f32
    %q71 = arith.addf %q70, %a : f32  %q72 = arith.addf %q71, %a : f32  %q73 = arith.addf %q72, %a : f32  %q74 = arith.addf %q73, %a : f32  %q75 = arith.addf %q74, %a : f32  %q76 = arith.addf %q75, %a : f32  %q77 = arith.addf %q76, %a : f32  %q78 = arith.addf %q77, %a : f32  %q79 = arith.addf %q78, %a : f32  %q80 = arith.addf %q79, %a : f32
    %q81 = arith.addf %q80, %a : f32  %q82 = arith.addf %q81, %a : f32  %q83 = arith.addf %q82, %a : f32  %q84 = arith.addf %q83, %a : f32  %q85 = arith.addf %q84, %a : f32  %q86 = arith.addf %q85, %a : f32  %q87 = arith.addf %q86, %a : f32  %q88 = arith.addf %q87, %a : f32  %q89 = arith.addf %q88, %a : f32  %q90 = arith.addf %q89, %a : f32
    %q91 = arith.addf %q90, %a : f32  %q92 = arith.addf %q91, %a : f32  %q93 = arith.addf %q92, %a : f32  %q94 = arith.addf %q93, %a : f32  %q95 = arith.addf %q94, %a : f32  %q96 = arith.addf %q95, %a : f32  %q97 = arith.addf %q96, %a : f32  %q98 = arith.addf %q97, %a : f32  %q99 = arith.addf %q98, %a : f32  %q100 = arith.addf %q99, %a : f32
    linalg.yield %q100 : f32
  } -> tensor<64x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%q : tensor<64x8xf32>) outs(%e : tensor<64x8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %r1 = arith.addf %a, %a : f32  %r2 = arith.addf %r1, %a : f32  %r3 = arith.addf %r2, %a : f32  %r4 = arith.addf %r3, %a : f32  %r5 = arith.addf %r4, %a : f32  %r6 = arith.addf %r5, %a : f32  %r7 = arith.addf %r6, %a : f32  %r8 = arith.addf %r7, %a : f32  %r9 = arith.addf %r8, %a : f32  %r10 = arith.addf %r9, %a : f32
    %r11 = arith.addf %r10, %a : f32  %r12 = arith.addf %r11, %a : f32  %r13 = arith.addf %r12, %a : f32  %r14 = arith.addf %r13, %a : f32  %r15 = arith.addf %r14, %a : f32  %r16 = arith.addf %r15, %a : f32  %r17 = arith.addf %r16, %a : f32  %r18 = arith.addf %r17, %a : f32  %r19 = arith.addf %r18, %a : f32  %r20 = arith.addf %r19, %a : f32
    %r21 = arith.addf %r20, %a : f32  %r22 = arith.addf %r21, %a : f32  %r23 = arith.addf %r22, %a : f32  %r24 = arith.addf %r23, %a : f32  %r25 = arith.addf %r24, %a : f32  %r26 = arith.addf %r25, %a : f32  %r27 = arith.addf %r26, %a : f32  %r28 = arith.addf %r27, %a : f32  %r29 = arith.addf %r28, %a : f32  %r30 = arith.addf %r29, %a : f32
    %r31 = arith.addf %r30, %a : f32  %r32 = arith.addf %r31, %a : f32  %r33 = arith.addf %r32, %a : f32  %r34 = arith.addf %r33, %a : f32  %r35 = arith.addf %r34, %a : f32  %r36 = arith.addf %r35, %a : f32  %r37 = arith.addf %r36, %a : f32  %r38 = arith.addf %r37, %a : f32  %r39 = arith.addf %r38, %a : f32  %r40 = arith.addf %r39, %a : f32
    %r41 = arith.addf %r40, %a : f32  %r42 = arith.addf %r41, %a : f32  %r43 = arith.addf %r42, %a : f32  %r44 = arith.addf %r43, %a : f32  %r45 = arith.addf %r44, %a : f32  %r46 = arith.addf %r45, %a : f32  %r47 = arith.addf %r46, %a : f32  %r48 = arith.addf %r47, %a : f32  %r49 = arith.addf %r48, %a : f32  %r50 = arith.addf %r49, %a : f32
    %r51 = arith.addf %r50, %a : f32  %r52 = arith.addf %r51, %a : f32  %r53 = arith.addf %r52, %a : f32  %r54 = arith.addf %r53, %a : f32  %r55 = arith.addf %r54, %a : f32  %r56 = arith.addf %r55, %a : f32  %r57 = arith.addf %r56, %a : f32  %r58 = arith.addf %r57, %a : f32  %r59 = arith.addf %r58, %a : f32  %r60 = arith.addf %r59, %a : f32
    %r61 = arith.addf %r60, %a : f32  %r62 = arith.addf %r61, %a : f32  %r63 = arith.addf %r62, %a : f32  %r64 = arith.addf %r63, %a : f32  %r65 = arith.addf %r64, %a : f32  %r66 = arith.addf %r65, %a : f32  %r67 = arith.addf %r66, %a : f32  %r68 = arith.addf %r67, %a : f32  %r69 = arith.addf %r68, %a : f32  %r70 = arith.addf %r69, %a : f32
    %r71 = arith.addf %r70, %a : f32  %r72 = arith.addf %r71, %a : f32  %r73 = arith.addf %r72, %a : f32  %r74 = arith.addf %r73, %a : f32  %r75 = arith.addf %r74, %a : f32  %r76 = arith.addf %r75, %a : f32  %r77 = arith.addf %r76, %a : f32  %r78 = arith.addf %r77, %a : f32  %r79 = arith.addf %r78, %a : f32  %r80 = arith.addf %r79, %a : f32
    %r81 = arith.addf %r80, %a : f32  %r82 = arith.addf %r81, %a : f32  %r83 = arith.addf %r82, %a : f32  %r84 = arith.addf %r83, %a : f32  %r85 = arith.addf %r84, %a : f32  %r86 = arith.addf %r85, %a : f32  %r87 = arith.addf %r86, %a : f32  %r88 = arith.addf %r87, %a : f32  %r89 = arith.addf %r88, %a : f32  %r90 = arith.addf %r89, %a : f32
    %r91 = arith.addf %r90, %a : f32  %r92 = arith.addf %r91, %a : f32  %r93 = arith.addf %r92, %a : f32  %r94 = arith.addf %r93, %a : f32  %r95 = arith.addf %r94, %a : f32  %r96 = arith.addf %r95, %a : f32  %r97 = arith.addf %r96, %a : f32  %r98 = arith.addf %r97, %a : f32  %r99 = arith.addf %r98, %a : f32  %r100 = arith.addf %r99, %a : f32
    linalg.yield %r100 : f32
  } -> tensor<64x8xf32>
  return %r : tensor<64x8xf32>
}
