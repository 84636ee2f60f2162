//===- simplify-reductions.mlir - kept dimensions, unused results ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --pass-pipeline="builtin.module(func.func(posenc-simplify-reductions, canonicalize))" | FileCheck %s

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#rows = affine_map<(d0, d1, d2) -> (d0, d1)>
#kept = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#first = affine_map<(d0, d1, d2) -> (0, d1, d2)>
#one = affine_map<(d0, d1, d2) -> (d0, d1, 1)>
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-DAG: #[[$ID:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[$ROWS:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[$ID2:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$ROW:.*]] = affine_map<(d0, d1) -> (d0)>

// The dimension is dropped from the sum, from the operations on the sum, and from
// the operation that reads it.
// CHECK-LABEL: func @norm
//  CHECK-SAME: (%[[X:.*]]: tensor<2x?x64xf32>)
//       CHECK: %[[Z:.*]] = linalg.fill {{.*}} -> tensor<2x?xf32>
//       CHECK: %[[S:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$ROWS]]], iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[X]] : tensor<2x?x64xf32>) outs(%[[Z]] : tensor<2x?xf32>)
//       CHECK: %[[R:.*]] = linalg.generic {indexing_maps = [#[[$ID2]], #[[$ID2]]], iterator_types = ["parallel", "parallel"]} ins(%[[S]] : tensor<2x?xf32>)
//       CHECK:   math.rsqrt
//       CHECK: %[[Y:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$ROWS]], #[[$ID]]], {{.*}} ins(%[[X]], %[[R]] :
//       CHECK: return %[[Y]]
func.func @norm(%x: tensor<2x?x64xf32>) -> tensor<2x?x64xf32> {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<2x?x64xf32>
  %e = tensor.empty(%n) : tensor<2x?x1xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x?x1xf32>) -> tensor<2x?x1xf32>
  %s = linalg.generic {indexing_maps = [#id, #kept], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<2x?x64xf32>) outs(%z : tensor<2x?x1xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %p = arith.mulf %a, %a : f32
    %t = arith.addf %p, %acc : f32
    linalg.yield %t : f32
  } -> tensor<2x?x1xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<2x?x1xf32>) outs(%e : tensor<2x?x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.rsqrt %a : f32
    linalg.yield %t : f32
  } -> tensor<2x?x1xf32>
  %f = tensor.empty(%n) : tensor<2x?x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #kept, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %r : tensor<2x?x64xf32>, tensor<2x?x1xf32>) outs(%f : tensor<2x?x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<2x?x64xf32>
  return %y : tensor<2x?x64xf32>
}

// The result keeps its type.
// CHECK-LABEL: func @all
//       CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<f32>)
//       CHECK: %[[R:.*]] = tensor.expand_shape %{{.*}} [] output_shape [1, 1] : tensor<f32> into tensor<1x1xf32>
//       CHECK: return %[[R]]
func.func @all(%x: tensor<8x64xf32>, %z: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %s = linalg.generic {indexing_maps = [#id2, affine_map<(d0, d1) -> (0, 0)>], iterator_types = ["reduction", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%z : tensor<1x1xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %t = arith.addf %a, %acc : f32
    linalg.yield %t : f32
  } -> tensor<1x1xf32>
  return %s : tensor<1x1xf32>
}

// An importer expands the sum; the elementwise operation is on the sum itself.
// CHECK-LABEL: func @expanded
//       CHECK: linalg.generic {{.*}}"reduction"
//       CHECK: linalg.generic {indexing_maps = [#[[$ID2]], #[[$ID2]]]
//       CHECK: tensor.expand_shape
func.func @expanded(%x: tensor<2x9x64xf32>, %z: tensor<2x9xf32>, %o: tensor<2x9x1xf32>) -> tensor<2x9x1xf32> {
  %s = linalg.generic {indexing_maps = [#id, #rows], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<2x9x64xf32>) outs(%z : tensor<2x9xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %t = arith.addf %a, %acc : f32
    linalg.yield %t : f32
  } -> tensor<2x9xf32>
  %k = tensor.expand_shape %s [[0], [1, 2]] output_shape [2, 9, 1] : tensor<2x9xf32> into tensor<2x9x1xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%k : tensor<2x9x1xf32>) outs(%o : tensor<2x9x1xf32>) {
  ^bb0(%a: f32, %b: f32):
    %t = math.sqrt %a : f32
    linalg.yield %t : f32
  } -> tensor<2x9x1xf32>
  return %r : tensor<2x9x1xf32>
}

// A batch of one is not a kept dimension, also not behind a reduction.
// CHECK-LABEL: func @batch_of_one
//       CHECK: linalg.generic {indexing_maps = [#[[$ID]], #[[$ROWS]]], {{.*}} outs(%{{.*}} : tensor<1x9xf32>)
//       CHECK: linalg.generic {indexing_maps = [#[[$ID]], #[[$ROWS]], #[[$ID]]], {{.*}} outs(%{{.*}} : tensor<1x9x64xf32>)
//   CHECK-NOT: shape
//       CHECK: return
func.func @batch_of_one(%x: tensor<1x9x64xf32>, %z: tensor<1x9xf32>, %o: tensor<1x9x64xf32>) -> tensor<1x9x64xf32> {
  %s = linalg.generic {indexing_maps = [#id, #rows], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<1x9x64xf32>) outs(%z : tensor<1x9xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %t = arith.addf %a, %acc : f32
    linalg.yield %t : f32
  } -> tensor<1x9xf32>
  %r = linalg.generic {indexing_maps = [#id, #rows, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %s : tensor<1x9x64xf32>, tensor<1x9xf32>) outs(%o : tensor<1x9x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<1x9x64xf32>
  return %r : tensor<1x9x64xf32>
}

// A bias of one row, and an index that is another constant or into a size that
// is not 1.
// CHECK-LABEL: func @bias
//       CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]] : tensor<1x9x64xf32> into tensor<9x64xf32>
// CHECK-LABEL: func @not_of_size_one
//   CHECK-NOT: shape
//       CHECK: return
func.func @bias(%x: tensor<2x9x64xf32>, %b: tensor<1x9x64xf32>, %o: tensor<2x9x64xf32>) -> tensor<2x9x64xf32> {
  %r = linalg.generic {indexing_maps = [#id, #first, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %b : tensor<2x9x64xf32>, tensor<1x9x64xf32>) outs(%o : tensor<2x9x64xf32>) {
  ^bb0(%a: f32, %c: f32, %d: f32):
    %t = arith.addf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<2x9x64xf32>
  return %r : tensor<2x9x64xf32>
}
func.func @not_of_size_one(%x: tensor<2x9x64xf32>, %b: tensor<2x9x5xf32>, %c: tensor<?x9x64xf32>, %o: tensor<2x9x64xf32>) -> tensor<2x9x64xf32> {
  %r = linalg.generic {indexing_maps = [#id, #kept, #one, #first, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %b, %b, %c : tensor<2x9x64xf32>, tensor<2x9x5xf32>, tensor<2x9x5xf32>, tensor<?x9x64xf32>) outs(%o : tensor<2x9x64xf32>) {
  ^bb0(%a: f32, %d: f32, %e: f32, %f: f32, %g: f32):
    %t = arith.addf %a, %d : f32
    %u = arith.addf %t, %e : f32
    %v = arith.addf %u, %f : f32
    linalg.yield %v : f32
  } -> tensor<2x9x64xf32>
  return %r : tensor<2x9x64xf32>
}

// CHECK-LABEL: func @maximum
//       CHECK: %[[R:.*]] = linalg.generic {indexing_maps = [#[[$ID2]], #[[$ROW]]]
//  CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[M:.*]]: f32):
//  CHECK-NEXT:   %[[T:.*]] = arith.maximumf %[[A]], %[[M]] : f32
//  CHECK-NEXT:   linalg.yield %[[T]] : f32
//       CHECK: return %[[R]]
func.func @maximum(%x: tensor<8x64xf32>, %z: tensor<8xf32>, %i: tensor<8xi64>) -> tensor<8xf32> {
  %r:2 = linalg.generic {indexing_maps = [#id2, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%z, %i : tensor<8xf32>, tensor<8xi64>) {
  ^bb0(%a: f32, %m: f32, %k: i64):
    %j = linalg.index 1 : index
    %l = arith.index_cast %j : index to i64
    %t = arith.maximumf %a, %m : f32
    %g = arith.cmpf ogt, %a, %m : f32
    %n = arith.select %g, %l, %k : i64
    linalg.yield %t, %n : f32, i64
  } -> (tensor<8xf32>, tensor<8xi64>)
  return %r#0 : tensor<8xf32>
}

// The smaller of equal indices, which takes the index so far twice.
// CHECK-LABEL: func @ties
//       CHECK: linalg.generic {indexing_maps = [#[[$ID2]], #[[$ROW]]]
//  CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32):
//  CHECK-NEXT:   arith.minimumf
//  CHECK-NEXT:   linalg.yield
func.func @ties(%x: tensor<8x64xf32>, %z: tensor<8xf32>, %i: tensor<8xi64>) -> tensor<8xf32> {
  %r:2 = linalg.generic {indexing_maps = [#id2, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%z, %i : tensor<8xf32>, tensor<8xi64>) {
  ^bb0(%a: f32, %m: f32, %k: i64):
    %j = linalg.index 1 : index
    %l = arith.index_cast %j : index to i64
    %t = arith.minimumf %a, %m : f32
    %g = arith.cmpf olt, %a, %m : f32
    %e = arith.cmpf oeq, %a, %m : f32
    %s = arith.cmpi slt, %l, %k : i64
    %both = arith.andi %e, %s : i1
    %either = arith.ori %g, %both : i1
    %n = arith.select %either, %l, %k : i64
    linalg.yield %t, %n : f32, i64
  } -> (tensor<8xf32>, tensor<8xi64>)
  return %r#0 : tensor<8xf32>
}

// The index is used, or the maximum depends on it.
// CHECK-LABEL: func @used
//       CHECK: linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<8xf32>, tensor<8xi64>)
// CHECK-LABEL: func @needed
//       CHECK: linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<8xf32>, tensor<8xi64>)
//       CHECK:   arith.cmpi slt
//       CHECK:   linalg.yield %{{.*}}, %{{[a-z0-9_]*}} : f32, i64
func.func @used(%x: tensor<8x64xf32>, %z: tensor<8xf32>, %i: tensor<8xi64>) -> tensor<8xi64> {
  %r:2 = linalg.generic {indexing_maps = [#id2, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%z, %i : tensor<8xf32>, tensor<8xi64>) {
  ^bb0(%a: f32, %m: f32, %k: i64):
    %j = linalg.index 1 : index
    %l = arith.index_cast %j : index to i64
    %t = arith.maximumf %a, %m : f32
    %g = arith.cmpf ogt, %a, %m : f32
    %n = arith.select %g, %l, %k : i64
    linalg.yield %t, %n : f32, i64
  } -> (tensor<8xf32>, tensor<8xi64>)
  return %r#1 : tensor<8xi64>
}
func.func @needed(%x: tensor<8x64xf32>, %z: tensor<8xf32>, %i: tensor<8xi64>) -> tensor<8xf32> {
  %r:2 = linalg.generic {indexing_maps = [#id2, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%z, %i : tensor<8xf32>, tensor<8xi64>) {
  ^bb0(%a: f32, %m: f32, %k: i64):
    %j = linalg.index 1 : index
    %l = arith.index_cast %j : index to i64
    %s = arith.cmpi slt, %k, %l : i64
    %t = arith.maximumf %a, %m : f32
    %v = arith.select %s, %t, %m : f32
    %g = arith.cmpf ogt, %a, %m : f32
    %n = arith.select %g, %l, %k : i64
    linalg.yield %v, %n : f32, i64
  } -> (tensor<8xf32>, tensor<8xi64>)
  return %r#0 : tensor<8xf32>
}

// A NaN of %a is not greater, so it is skipped.
// CHECK-LABEL: func @skips_nan
//       CHECK: arith.maxnumf
//   CHECK-NOT: arith.select
// CHECK-LABEL: func @smaller_or_equal
//       CHECK: arith.minnumf
//   CHECK-NOT: arith.select
// A NaN is kept, in the order of JAX's comparison.
// CHECK-LABEL: func @keeps_nan
//       CHECK: arith.maximumf
//   CHECK-NOT: arith.select
func.func @skips_nan(%x: tensor<8x64xf32>, %e: tensor<8xf32>) -> tensor<8xf32> {
  %low = arith.constant 0xFF800000 : f32
  %z = linalg.fill ins(%low : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %m: f32):
    %g = arith.cmpf ogt, %a, %m : f32
    %t = arith.select %g, %a, %m : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @smaller_or_equal(%x: tensor<8x64xf32>) -> tensor<8xf32> {
  %z = arith.constant dense<3.0e38> : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %m: f32):
    %g = arith.cmpf ult, %m, %a : f32
    %t = arith.select %g, %m, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @keeps_nan(%x: tensor<8x64xf32>, %z: tensor<8xf32>, %i: tensor<8xi32>) -> tensor<8xf32> {
  %r:2 = linalg.generic {indexing_maps = [#id2, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%z, %i : tensor<8xf32>, tensor<8xi32>) {
  ^bb0(%a: f32, %m: f32, %k: i32):
    %j = linalg.index 1 : index
    %l = arith.index_cast %j : index to i32
    %g = arith.cmpf ogt, %m, %a : f32
    %u = arith.cmpf une, %m, %m : f32
    %c = arith.ori %g, %u : i1
    %t = arith.select %c, %m, %a : f32
    %n = arith.select %c, %k, %l : i32
    linalg.yield %t, %n : f32, i32
  } -> (tensor<8xf32>, tensor<8xi32>)
  return %r#0 : tensor<8xf32>
}

// The result depends on where the NaN is, or on a first value that may be NaN.
// CHECK-LABEL: func @last_nan
//       CHECK: arith.select
// CHECK-LABEL: func @forgets_nan
//       CHECK: arith.select
// CHECK-LABEL: func @nan_first
//       CHECK: arith.select
// CHECK-LABEL: func @unknown_first
//       CHECK: arith.select
func.func @last_nan(%x: tensor<8x64xf32>) -> tensor<8xf32> {
  %z = arith.constant dense<0.0> : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %m: f32):
    %g = arith.cmpf ugt, %a, %m : f32
    %t = arith.select %g, %a, %m : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @forgets_nan(%x: tensor<8x64xf32>) -> tensor<8xf32> {
  %z = arith.constant dense<0.0> : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %m: f32):
    %g = arith.cmpf ogt, %m, %a : f32
    %t = arith.select %g, %m, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @nan_first(%x: tensor<8x64xf32>) -> tensor<8xf32> {
  %z = arith.constant dense<0x7FC00000> : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %m: f32):
    %g = arith.cmpf ogt, %a, %m : f32
    %t = arith.select %g, %a, %m : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @unknown_first(%x: tensor<8x64xf32>, %z: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %m: f32):
    %g = arith.cmpf ogt, %a, %m : f32
    %t = arith.select %g, %a, %m : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// CHECK-LABEL: func @contraction
//   CHECK-NOT: shape
//       CHECK: linalg.matmul
//       CHECK: %[[E:.*]] = tensor.expand_shape
//       CHECK: linalg.generic {{.*}} ins(%[[E]] : tensor<1x9x7xf32>)
func.func @contraction(%a: tensor<9x8xf32>, %b: tensor<8x7xf32>, %c: tensor<9x7xf32>, %o: tensor<1x9x7xf32>) -> tensor<1x9x7xf32> {
  %p = linalg.matmul ins(%a, %b : tensor<9x8xf32>, tensor<8x7xf32>) outs(%c : tensor<9x7xf32>) -> tensor<9x7xf32>
  %e = tensor.expand_shape %p [[0, 1], [2]] output_shape [1, 9, 7] : tensor<9x7xf32> into tensor<1x9x7xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%e : tensor<1x9x7xf32>) outs(%o : tensor<1x9x7xf32>) {
  ^bb0(%x: f32, %y: f32):
    %t = math.exp %x : f32
    linalg.yield %t : f32
  } -> tensor<1x9x7xf32>
  return %r : tensor<1x9x7xf32>
}
