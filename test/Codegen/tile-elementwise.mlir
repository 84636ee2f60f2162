//===- tile-elementwise.mlir - elementwise ops and reductions by vectors --===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{tile} = func.func(posenc-fuse-elementwise,posenc-tile-elementwise{vector-bytes=64},posenc-tile-reductions)
// RUN: posenc-opt %s --split-input-file --mlir-print-local-scope \
// RUN:   --pass-pipeline='builtin.module(%{tile},canonicalize,cse,func.func(posenc-vectorize-linalg),canonicalize)' \
// RUN:   | FileCheck %s

// Rows run in parallel; the remainder of a row stays an operation.
// CHECK-LABEL: func.func @scale(
// CHECK-SAME:    %[[X:.*]]: tensor<?x?xf32>, %[[W:.*]]: tensor<?xf32>
// CHECK:         scf.forall (%[[I:.*]]) in
// CHECK:           scf.for %[[J:.*]] = %c0 to %{{.*}} step %c16
// CHECK-DAG:         %[[V:.*]] = vector.transfer_read %[[X]][%[[I]], %[[J]]]{{.*}} vector<16xf32>
// CHECK-DAG:         %[[U:.*]] = vector.transfer_read %[[W]][%[[J]]]{{.*}} vector<16xf32>
// CHECK:             arith.mulf %[[V]], %[[U]] : vector<16xf32>
// CHECK:           scf.for
// CHECK:             linalg.generic
// CHECK:               arith.mulf %{{.*}} : f32
func.func @scale(%x: tensor<?x?xf32>, %w: tensor<?xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x, %w : tensor<?x?xf32>, tensor<?xf32>) outs(%o : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %y = arith.mulf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

// Rows that are multiples of the vector width have no remainder.
// CHECK-LABEL: func.func @whole(
// CHECK:         scf.forall
// CHECK:           scf.for {{.*}} = %c0 to %c64 step %c16
// CHECK:             arith.addf %{{.*}} : vector<{{(1x)?}}16xf64>
// CHECK-NOT:       linalg.
func.func @whole(%x: tensor<?x64xf64>, %o: tensor<?x64xf64>) -> tensor<?x64xf64> {
  %r = linalg.add ins(%x, %x : tensor<?x64xf64>, tensor<?x64xf64>) outs(%o : tensor<?x64xf64>) -> tensor<?x64xf64>
  return %r : tensor<?x64xf64>
}

// -----

// A row is added to 64 partial sums in iter_args, which are then added
// pairwise.
// CHECK-LABEL: func.func @sum(
// CHECK-SAME:    %[[X:.*]]: tensor<?x?xf32>
// CHECK:         scf.forall (%[[I:.*]]) in
// CHECK:           scf.for %[[J:.*]] = {{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (vector<64xf32>)
// CHECK:             %[[V:.*]] = vector.transfer_read %[[X]][%[[I]], %[[J]]]
// CHECK:             arith.addf {{.*}}%[[V]]{{.*}} : vector<64xf32>
// CHECK:           arith.addf {{.*}} : vector<32xf32>
// CHECK:           arith.addf {{.*}} : vector<16xf32>
// CHECK:           arith.addf {{.*}} : vector<1xf32>
// CHECK-NOT:       vector.reduction
func.func @sum(%x: tensor<?x?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%o : tensor<?xf32>) dimensions = [1]
  return %r : tensor<?xf32>
}

// -----

// Not changed: tensors of i1, rows shorter than a vector, and loops without
// iterations.
// CHECK-LABEL: func.func @others(
// CHECK-NOT:     vector<16
// CHECK:         return
func.func @others(%b: tensor<?x64xi1>, %s: tensor<?x8xf32>, %n: tensor<0x64xf32>) -> (tensor<?x64xi1>, tensor<?x8xf32>, tensor<0x64xf32>) {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%b : tensor<?x64xi1>) {
  ^bb0(%x: i1):
    %y = arith.xori %x, %x : i1
    linalg.yield %y : i1
  } -> tensor<?x64xi1>
  %1 = linalg.exp ins(%s : tensor<?x8xf32>) outs(%s : tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = linalg.exp ins(%n : tensor<0x64xf32>) outs(%n : tensor<0x64xf32>) -> tensor<0x64xf32>
  return %0, %1, %2 : tensor<?x64xi1>, tensor<?x8xf32>, tensor<0x64xf32>
}

// -----

// The row of a table that a position selects is read as vectors; the position is
// read once per row.
// CHECK-LABEL: func.func @table(
// CHECK-SAME:    %[[X:.*]]: tensor<?x64xf32>, %[[T:.*]]: tensor<9x64xf32>, %[[P:.*]]: tensor<?xi64>
// CHECK:         scf.forall (%[[I:.*]]) in
// CHECK:           %[[S:.*]] = tensor.extract_slice %[[P]][%[[I]]] [1] [1]
// CHECK:           %[[N:.*]] = tensor.extract %[[S]][%c0] : tensor<1xi64>
// CHECK:           %[[R:.*]] = arith.index_cast %[[N]] : i64 to index
// CHECK:           scf.for %[[J:.*]] = %c0 to %c64 step %c16
// CHECK-DAG:         %[[V:.*]] = vector.transfer_read %[[X]][%[[I]], %[[J]]]
// CHECK-DAG:         %[[U:.*]] = vector.transfer_read %[[T]][%[[R]], %[[J]]]
// CHECK:             arith.addf %[[V]], %[[U]] : vector<16xf32>
// CHECK-NOT:       linalg.generic
func.func @table(%x: tensor<?x64xf32>, %t: tensor<9x64xf32>, %p: tensor<?xi64>, %o: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x, %p : tensor<?x64xf32>, tensor<?xi64>) outs(%o : tensor<?x64xf32>) {
  ^bb0(%a: f32, %n: i64, %c: f32):
    %i = arith.index_cast %n : i64 to index
    %j = linalg.index 1 : index
    %b = tensor.extract %t[%i, %j] : tensor<9x64xf32>
    %y = arith.addf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// -----

// The row may also depend on the loops over rows: row 2 i of the table.
// CHECK-LABEL: func.func @every_second(
// CHECK-SAME:    %[[T:.*]]: tensor<10x64xf32>
// CHECK:         scf.forall (%[[I:.*]]) in (5)
// CHECK:           %[[R:.*]] = arith.muli %[[I]], %c2
// CHECK:           vector.transfer_read %[[T]][%[[R]], %{{.*}}]{{.*}} vector<16xf32>
func.func @every_second(%t: tensor<10x64xf32>, %o: tensor<5x64xf32>) -> tensor<5x64xf32> {
  %c2 = arith.constant 2 : index
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%o : tensor<5x64xf32>) {
  ^bb0(%c: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %n = arith.muli %i, %c2 : index
    %b = tensor.extract %t[%n, %j] : tensor<10x64xf32>
    linalg.yield %b : f32
  } -> tensor<5x64xf32>
  return %r : tensor<5x64xf32>
}

// -----

// Not changed: rows that depend on the column, columns of a table, and rows that
// are longer than those of the table.
// CHECK-LABEL: func.func @no_rows(
// CHECK-NOT:     scf.
// CHECK:         return
func.func @no_rows(%t: tensor<64x64xf32>, %s: tensor<9x32xf32>, %p: tensor<?x64xi64>, %q: tensor<?xi64>, %o: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<?x64xi64>) outs(%o : tensor<?x64xf32>) {
  ^bb0(%n: i64, %c: f32):
    %i = arith.index_cast %n : i64 to index
    %j = linalg.index 1 : index
    %b = tensor.extract %t[%i, %j] : tensor<64x64xf32>
    linalg.yield %b : f32
  } -> tensor<?x64xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<?xi64>) outs(%o : tensor<?x64xf32>) {
  ^bb0(%n: i64, %c: f32):
    %i = arith.index_cast %n : i64 to index
    %j = linalg.index 1 : index
    %b = tensor.extract %t[%j, %i] : tensor<64x64xf32>
    linalg.yield %b : f32
  } -> tensor<?x64xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<?xi64>) outs(%o : tensor<?x64xf32>) {
  ^bb0(%n: i64, %c: f32):
    %i = arith.index_cast %n : i64 to index
    %j = linalg.index 1 : index
    %b = tensor.extract %s[%i, %j] : tensor<9x32xf32>
    linalg.yield %b : f32
  } -> tensor<?x64xf32>
  return %0, %1, %2 : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// Sums of columns add a vector of the result per row.
// CHECK-LABEL: func.func @columns(
// CHECK-SAME:    %[[X:.*]]: tensor<?x?xf32>
// CHECK:         scf.forall (%[[J:.*]]) = (0) to (%{{.*}}) step (2048)
// CHECK:           scf.for %[[I:.*]] = %c0
// CHECK:             scf.for %{{.*}} = %c0 to %{{.*}} step %c16
// CHECK:               arith.addf {{.*}} : vector<16xf32>
func.func @columns(%x: tensor<?x?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%o : tensor<?xf32>) dimensions = [0]
  return %r : tensor<?xf32>
}

// -----

// Sums of few columns are vectors in iter_args of the loop over rows.
// CHECK-LABEL: func.func @few_columns(
// CHECK:         scf.for
// CHECK:           scf.for %{{.*}} = %c0 to %{{.*}} step %c1 iter_args({{.*}}) -> (vector<32xf32>)
// CHECK-NEXT:        vector.transfer_read
// CHECK:             arith.addf {{.*}} : vector<32xf32>
// CHECK-NEXT:        scf.yield
func.func @few_columns(%x: tensor<5x?x32xf32>, %o: tensor<5x32xf32>) -> tensor<5x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %n = tensor.dim %x, %c1 : tensor<5x?x32xf32>
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %o) -> tensor<5x32xf32> {
    %s = tensor.extract_slice %x[%i, 0, 0] [1, %n, 32] [1, 1, 1] : tensor<5x?x32xf32> to tensor<?x32xf32>
    %d = tensor.extract_slice %a[%i, 0] [1, 32] [1, 1] : tensor<5x32xf32> to tensor<32xf32>
    %t = linalg.reduce { arith.addf } ins(%s : tensor<?x32xf32>) outs(%d : tensor<32xf32>) dimensions = [0]
    %u = tensor.insert_slice %t into %a[%i, 0] [1, 32] [1, 1] : tensor<32xf32> into tensor<5x32xf32>
    scf.yield %u : tensor<5x32xf32>
  }
  return %r : tensor<5x32xf32>
}

// -----

// The operand of a sum is computed in the same loop, even if it has other
// users.
// CHECK-LABEL: func.func @fused_columns(
// CHECK:         scf.for
// CHECK:           scf.for %{{.*}} = %c0 to %c32 step %c16
// CHECK:             scf.for %{{.*}} = %c0 to %{{.*}} step %c1 iter_args({{.*}}) -> ({{.*}}vector<16xf32>
// CHECK:               arith.mulf {{.*}} : vector<16xf32>
// CHECK:               arith.addf {{.*}} : vector<16xf32>
// CHECK-NOT:       arith.mulf
func.func @fused_columns(%x: tensor<?x32xf32>, %o: tensor<32xf32>) -> (tensor<?x32xf32>, tensor<32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %x, %s = %o) -> (tensor<?x32xf32>, tensor<32xf32>) {
    %squares = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%a : tensor<?x32xf32>) {
    ^bb0(%v: f32):
      %w = arith.mulf %v, %v : f32
      linalg.yield %w : f32
    } -> tensor<?x32xf32>
    %t = linalg.reduce { arith.addf } ins(%squares : tensor<?x32xf32>) outs(%s : tensor<32xf32>) dimensions = [0]
    scf.yield %squares, %t : tensor<?x32xf32>, tensor<32xf32>
  }
  return %r#0, %r#1 : tensor<?x32xf32>, tensor<32xf32>
}

// -----

// Input and output rows are vectors: square blocks are transposed.
// CHECK-LABEL: func.func @transpose(
// CHECK:         vector.transfer_read {{.*}} vector<16x16xf32>
// CHECK:         vector.shuffle
// CHECK:         vector.transfer_write {{.*}} : vector<{{.*}}16x16xf32>
func.func @transpose(%x: tensor<?x?xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = linalg.transpose ins(%x : tensor<?x?xf32>) outs(%o : tensor<?x?xf32>) permutation = [1, 0]
  return %r : tensor<?x?xf32>
}

// -----

// With several reduced dimensions, the last one is vectorized.
// CHECK-LABEL: func.func @sum_of_planes(
// CHECK:         scf.forall (%{{.*}}) in
// CHECK:           scf.for
// CHECK:             scf.for {{.*}} -> (vector<64xf32>)
// CHECK-NOT:       linalg.
func.func @sum_of_planes(%x: tensor<?x?x512xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.reduce { arith.addf } ins(%x : tensor<?x?x512xf32>) outs(%o : tensor<?xf32>) dimensions = [1, 2]
  return %r : tensor<?xf32>
}

// -----

// Rows of an input may be selected by a sum of parallel loops, as in a
// convolution.
// CHECK-LABEL: func.func @band(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x64xf32>, %[[K:.*]]: tensor<?x64xf32>
// CHECK:         scf.forall (%[[T:.*]], %[[R:.*]]) in
// CHECK:           scf.for %[[C:.*]] = %c0 to %c64 step %c16 iter_args(%{{.*}}) -> (vector<16xf32>)
// CHECK-DAG:         %[[J:.*]] = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%[[T]], %[[R]])
// CHECK-DAG:         vector.transfer_read %[[Q]][%[[T]], %[[C]]]
// CHECK-DAG:         vector.transfer_read %[[K]][%[[J]], %[[C]]]
// CHECK-NOT:       linalg.
func.func @band(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %o: tensor<?x33xf32>) -> tensor<?x33xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(t, r, c) -> (t, c)>, affine_map<(t, r, c) -> (t + r, c)>, affine_map<(t, r, c) -> (t, r)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<?x64xf32>, tensor<?x64xf32>) outs(%o : tensor<?x33xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %y = arith.addf %s, %m : f32
    linalg.yield %y : f32
  } -> tensor<?x33xf32>
  return %r : tensor<?x33xf32>
}

// -----

// Not changed: elements that are selected by a sum with the reduced loop.
// CHECK-LABEL: func.func @convolution(
// CHECK-NOT:     scf.
// CHECK:         return
func.func @convolution(%x: tensor<?xf32>, %w: tensor<64xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.conv_1d ins(%x, %w : tensor<?xf32>, tensor<64xf32>) outs(%o : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
