//===- attention-to-linalg.mlir - attention tiles become generics ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --convert-posenc-attention-to-linalg --split-input-file \
// RUN:   --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --pass-pipeline='builtin.module(convert-posenc-attention-to-linalg{bf16-weights=true})' \
// RUN:   --split-input-file --mlir-print-local-scope \
// RUN:   | FileCheck %s --check-prefix=ROUND

// Heads and queries form the rows; scores are (keys, rows).
// CHECK-LABEL: func.func @plain(
// CHECK-SAME:    %[[Q:.*]]: tensor<4x?x16xf16>, %[[K:.*]]: tensor<?x16xf16>, %[[V:.*]]: tensor<?x8xf16>, %[[I:.*]]: index, %[[ACC:.*]]: tensor<4x?x8xf32>, %[[MAX:.*]]: tensor<4x?xf32>, %[[SUM:.*]]: tensor<4x?xf32>)
// CHECK-DAG:     %[[ROWACC:.*]] = tensor.collapse_shape %[[ACC]] {{\[\[}}0, 1], [2]]
// CHECK-DAG:     %[[ROWMAX:.*]] = tensor.collapse_shape %[[MAX]] {{\[\[}}0, 1]]
// CHECK-DAG:     %[[ROWSUM:.*]] = tensor.collapse_shape %[[SUM]] {{\[\[}}0, 1]]
// Products, summed in f32:
// CHECK:         %[[ROWS:.*]] = tensor.collapse_shape %[[Q]] {{\[\[}}0, 1], [2]]
// CHECK:         %[[DOTS:.*]] = linalg.generic
// CHECK-SAME:      affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[K]], %[[ROWS]] :
// CHECK-COUNT-2:   arith.extf %{{.*}} : f16 to f32
// Without scale and masks, the scores are the products.
// CHECK:         %[[MAXIMA:.*]] = linalg.generic
// CHECK-SAME:      iterator_types = ["reduction", "parallel"]} ins(%[[DOTS]] :
// CHECK:           %[[GREATER:.*]] = arith.cmpf ogt, %[[X:.*]], %[[Y:.*]] : f32
// CHECK:           arith.select %[[GREATER]], %[[X]], %[[Y]]
// CHECK:         %[[NEXT:.*]]:3 = linalg.generic
// CHECK-SAME:      ins(%[[MAXIMA]] : {{.*}}) outs(%{{.*}}, %{{.*}}, %[[ROWMAX]] :
// CHECK:           %[[M:.*]] = arith.select
// CHECK:           %[[NONE:.*]] = arith.cmpf oeq, %[[M]]
// CHECK:           %[[BASE:.*]] = arith.select %[[NONE]], %{{.*}}, %[[M]]
// CHECK:           arith.subf %{{.*}}, %[[BASE]]
// CHECK:           math.exp
// CHECK:           arith.select %[[NONE]]
// CHECK:         %[[P:.*]] = linalg.generic
// CHECK-SAME:      ins(%[[NEXT]]#1 : {{.*}}) outs(%[[DOTS]] :
// CHECK:           math.exp
// CHECK:         %[[PSUM:.*]] = linalg.generic
// CHECK-SAME:      ins(%[[P]] :
// CHECK:           arith.addf
// CHECK:         %[[NEWSUM:.*]] = linalg.generic
// CHECK-SAME:      ins(%[[NEXT]]#0, %[[PSUM]] : {{.*}}) outs(%[[ROWSUM]] :
// All keys are visible, so the result is a matrix product.
// CHECK:         %[[VALUES:.*]] = linalg.generic
// CHECK-SAME:      affine_map<(d0, d1, d2) -> (d1, d0)>, affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-SAME:      iterator_types = ["parallel", "reduction", "parallel"]} ins(%[[P]], %[[V]] :
// CHECK:           arith.mulf
// CHECK-NEXT:      arith.addf
// CHECK:         %[[NEWACC:.*]] = linalg.generic
// CHECK-SAME:      ins(%[[NEXT]]#0, %[[VALUES]] : {{.*}}) outs(%[[ROWACC]] :
// CHECK:           math.fma
// CHECK:         %[[R0:.*]] = tensor.expand_shape %[[NEWACC]]
// CHECK:         %[[R1:.*]] = tensor.expand_shape %[[NEXT]]#2
// CHECK:         %[[R2:.*]] = tensor.expand_shape %[[NEWSUM]]
// CHECK:         return %[[R0]], %[[R1]], %[[R2]]
func.func @plain(%q: tensor<4x?x16xf16>, %k: tensor<?x16xf16>, %v: tensor<?x8xf16>, %i: index, %acc: tensor<4x?x8xf32>, %max: tensor<4x?xf32>, %sum: tensor<4x?xf32>) -> (tensor<4x?x8xf32>, tensor<4x?xf32>, tensor<4x?xf32>) {
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x?x16xf16>, tensor<?x16xf16>, tensor<?x8xf16>)
    outs(%acc, %max, %sum : tensor<4x?x8xf32>, tensor<4x?xf32>, tensor<4x?xf32>)
  return %r#0, %r#1, %r#2 : tensor<4x?x8xf32>, tensor<4x?xf32>, tensor<4x?xf32>
}

// -----

// Scale, score region and mask are one generic, in which heads and queries are
// separate loops; a mask dimension of size 1 is not indexed by a loop. Keys
// that no query sees are cut off in steps of 8, and regions are not evaluated
// for keys that do not exist. Causal and window masks follow where they can
// mask a key.
// CHECK-LABEL: func.func @masked(
// CHECK-SAME:    %[[Q:.*]]: tensor<2x3x16xf64>, %[[K:.*]]: tensor<16x16xf64>, %[[MASK:.*]]: tensor<1x3x16xf64>, %[[B:.*]]: index, %[[H:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index, %[[N:.*]]: index,
// CHECK:         %[[AFTER:.*]] = arith.addi %[[I]], %c3
// CHECK:         %[[CAUSAL:.*]] = arith.subi %[[AFTER]], %[[J]]
// CHECK:         %[[VALID:.*]] = arith.subi %[[N]], %[[J]]
// CHECK:         %[[BEGIN:.*]] = affine.apply affine_map<()[s0] -> (s0 floordiv 8)>
// CHECK:         %[[END:.*]] = affine.apply affine_map<()[s0] -> (s0 ceildiv 8)>
// CHECK:         %[[STEPS:.*]] = affine.min affine_map<()[s0] -> (s0, 2)>
// CHECK:         %[[FIRST:.*]] = affine.apply affine_map<()[s0] -> (s0 * 8)>
// CHECK:         %[[COUNT:.*]] = affine.apply affine_map<()[s0] -> (s0 * 8)>()[%[[STEPS]]]
// CHECK:         %[[KEYS:.*]] = tensor.extract_slice %[[K]][%[[FIRST]], 0] [%[[COUNT]], 16]
// CHECK:         tensor.extract_slice %[[MASK]][0, 0, %[[FIRST]]] [1, 3, %[[COUNT]]]
// CHECK:         %[[J1:.*]] = arith.addi %[[J]], %[[FIRST]]
// CHECK:         %[[CUT:.*]] = tensor.extract_slice %{{.*}} : tensor<1x3x?xf64> to tensor<3x?xf64>
// CHECK:         %[[SPLIT:.*]] = tensor.expand_shape %{{.*}} : tensor<?x6xf64> into tensor<?x2x3xf64>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]
// CHECK-SAME:      ins(%[[CUT]], %[[SPLIT]] :
// CHECK:         ^bb0(%[[ADDED:.*]]: f64, %[[DOT:.*]]: f64, %{{.*}}: f64):
// CHECK-DAG:       %[[HEAD:.*]] = arith.addi %[[H]], %{{.*}}
// CHECK-DAG:       %[[QUERY:.*]] = arith.addi %[[I]], %{{.*}}
// CHECK-DAG:       %[[KEY:.*]] = arith.addi %[[J1]], %{{.*}}
// CHECK:           %[[LAST:.*]] = arith.subi %[[N]], %c1
// CHECK:           arith.minsi %[[KEY]], %[[LAST]]
// CHECK:           %[[SCALED:.*]] = arith.mulf %[[DOT]], %cst{{.*}}
// CHECK:           tensor.extract %{{.*}}[%[[HEAD]]] : tensor<2xf64>
// CHECK:           %[[BIASED:.*]] = arith.addf %[[SCALED]],
// CHECK:           arith.addf %[[BIASED]], %[[ADDED]]
// CHECK:           arith.cmpi ne, %[[QUERY]], %[[B]]
// CHECK:           arith.select
// CHECK:         scf.if
// CHECK:           linalg.generic
// CHECK:             %[[TO:.*]] = arith.addi %[[I]],
// CHECK:             %[[FROM:.*]] = arith.addi %[[J1]],
// CHECK:             %[[LATER:.*]] = arith.subi %[[FROM]], %[[TO]]
// CHECK:             arith.cmpi sle, %[[LATER]], %c0
// CHECK:             %[[EARLIER:.*]] = arith.subi %[[TO]], %[[FROM]]
// CHECK:             arith.cmpi sle, %[[EARLIER]], %c5
// CHECK:             arith.cmpi slt, %[[FROM]], %[[N]]
// CHECK:             arith.select
func.func @masked(%q: tensor<2x3x16xf64>, %k: tensor<16x16xf64>, %mask: tensor<1x3x16xf64>, %b: index, %h: index, %i: index, %j: index, %n: index, %acc: tensor<2x3x16xf64>, %max: tensor<2x3xf64>, %sum: tensor<2x3xf64>) -> (tensor<2x3x16xf64>, tensor<2x3xf64>, tensor<2x3xf64>) {
  %r:3 = posenc.online_attention causal window_left = 5 scale = 0.5 at(%b, %h, %i, %j) keys(%n)
    ins(%q, %k, %k : tensor<2x3x16xf64>, tensor<16x16xf64>, tensor<16x16xf64>) mask(%mask : tensor<1x3x16xf64>)
    outs(%acc, %max, %sum : tensor<2x3x16xf64>, tensor<2x3xf64>, tensor<2x3xf64>)
    score(%s, %b0, %h0, %i0, %j0) {
      %bias = posenc.alibi(%h0, %i0, %j0) heads = 2 : f64
      %x = arith.addf %s, %bias : f64
      posenc.yield %x : f64
    }
    where(%b0, %h0, %i0, %j0) {
      %x = arith.cmpi ne, %i0, %b0 : index
      posenc.yield %x : i1
    }
  return %r#0, %r#1, %r#2 : tensor<2x3x16xf64>, tensor<2x3xf64>, tensor<2x3xf64>
}

// -----

// ALiBi slopes are constants; adjacent T5 thresholds become one minimum.
// CHECK-LABEL: func.func @biases(
// CHECK-SAME:    %[[H:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index, %[[R:.*]]: i32)
// CHECK:         %[[SLOPES:.*]] = arith.constant dense<[6.250000e-02, 3.906250e-03, 2.500000e-01]> : tensor<3xf32>
// CHECK:         %[[SLOPE:.*]] = tensor.extract %[[SLOPES]][%[[H]]]
// CHECK:         arith.subi %[[I]], %[[J]]
// CHECK:         math.absi
// CHECK:         %[[D:.*]] = arith.sitofp %{{.*}} : i64 to f32
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %[[SLOPE]], %[[D]]
// CHECK:         arith.negf %[[PRODUCT]]
// CHECK:         arith.maxsi %[[R]], %{{.*}} : i32
// CHECK:         arith.minsi %{{.*}}, %{{.*}} : i32
// CHECK-COUNT-7: arith.cmpi sge
// CHECK-NOT:     arith.cmpi sge
// CHECK:         arith.cmpi sgt
// CHECK:         return
func.func @biases(%h: index, %i: index, %j: index, %r: i32) -> (f32, i32) {
  %a = posenc.alibi(%h, %i, %j) heads = 3 : f32
  %b = posenc.t5_bucket bidirectional %r : i32
  return %a, %b : f32, i32
}

// -----

// Regions of attention contain no tables.
// CHECK-LABEL: func.func @kept(
// CHECK:         posenc.alibi
func.func @kept(%q: tensor<?x?x2x16xf32>) -> tensor<?x?x2x16xf32> {
  %r = posenc.attention ins(%q, %q, %q : tensor<?x?x2x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x16xf32>) outs(%q : tensor<?x?x2x16xf32>)
    score(%s, %b, %h, %i, %j) {
      %bias = posenc.alibi(%h, %i, %j) heads = 2 : f32
      posenc.yield %bias : f32
    }
  return %r : tensor<?x?x2x16xf32>
}

// -----

// Without keys, the state does not change, and no slice begins among them.
// CHECK-LABEL: func.func @no_keys
// CHECK-SAME:    %[[A:[^:]*]]: tensor<1x4x8xf32>, %[[M:[^:]*]]: tensor<1x4xf32>, %[[S:[^:]*]]: tensor<1x4xf32>)
// CHECK-NEXT:    return %[[A]], %[[M]], %[[S]]
func.func @no_keys(%q: tensor<1x4x8xf32>, %k: tensor<0x8xf32>, %i: index, %n: index, %acc: tensor<1x4x8xf32>, %max: tensor<1x4xf32>, %sum: tensor<1x4xf32>) -> (tensor<1x4x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>) {
  %r:3 = posenc.online_attention at(%i, %i, %i, %i) keys(%n)
    ins(%q, %k, %k : tensor<1x4x8xf32>, tensor<0x8xf32>, tensor<0x8xf32>)
    outs(%acc, %max, %sum : tensor<1x4x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x4x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
}

// -----

// If all values are finite, which is checked outside of the loops over tiles,
// they are used in a matrix product. Otherwise weights of 0 are skipped.
// CHECK-LABEL: func.func @causal(
// CHECK-SAME:    %[[K:[a-z0-9]*]]: tensor<8x16xf64>
// CHECK:         %[[COLUMNS:.*]] = linalg.generic
// CHECK-SAME:      iterator_types = ["reduction", "parallel"]} ins(%[[K]] :
// CHECK:           arith.mulf %{{.*}}, %[[ZERO:.*]] : f64
// CHECK:         linalg.generic {{.*}}iterator_types = ["reduction"]} ins(%[[COLUMNS]] :
// CHECK:         %[[FINITE:.*]] = arith.cmpf oeq
// CHECK:         scf.for
// CHECK:           scf.if %[[FINITE]]
// CHECK:             linalg.generic
// CHECK-NOT:           arith.cmpf
// CHECK:           } else {
// CHECK:             linalg.generic
// CHECK:               arith.cmpf oeq
func.func @causal(%q: tensor<2x3x16xf64>, %k: tensor<8x16xf64>, %j: index, %acc: tensor<2x3x16xf64>, %max: tensor<2x3xf64>, %sum: tensor<2x3xf64>) -> tensor<2x3x16xf64> {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c12 = arith.constant 12 : index
  %r:3 = scf.for %i = %c0 to %c12 step %c3 iter_args(%a = %acc, %m = %max, %s = %sum) -> (tensor<2x3x16xf64>, tensor<2x3xf64>, tensor<2x3xf64>) {
    %n:3 = posenc.online_attention causal at(%c0, %c0, %i, %j)
      ins(%q, %k, %k : tensor<2x3x16xf64>, tensor<8x16xf64>, tensor<8x16xf64>)
      outs(%a, %m, %s : tensor<2x3x16xf64>, tensor<2x3xf64>, tensor<2x3xf64>)
    scf.yield %n#0, %n#1, %n#2 : tensor<2x3x16xf64>, tensor<2x3xf64>, tensor<2x3xf64>
  }
  return %r#0 : tensor<2x3x16xf64>
}

// -----

// ROUND-LABEL: func.func @rounded(
// ROUND:         %[[P:.*]] = linalg.generic
// ROUND:           math.exp
// ROUND:         %[[ROUNDED:.*]] = linalg.generic {{.*}} ins(%[[P2:.*]] : tensor<?x4xf32>) outs(%{{.*}} : tensor<?x4xbf16>)
// ROUND:           arith.truncf
// ROUND:         linalg.generic {{.*}} ins(%[[ROUNDED]], %{{.*}} : tensor<?x4xbf16>, tensor<?x8xbf16>)
// CHECK-LABEL: func.func @rounded(
// CHECK-NOT:     arith.truncf
// CHECK:         return
func.func @rounded(%q: tensor<1x4x8xbf16>, %k: tensor<?x8xbf16>, %i: index, %acc: tensor<1x4x8xf32>, %max: tensor<1x4xf32>, %sum: tensor<1x4xf32>) -> tensor<1x4x8xf32> {
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %k : tensor<1x4x8xbf16>, tensor<?x8xbf16>, tensor<?x8xbf16>)
    outs(%acc, %max, %sum : tensor<1x4x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
  return %r#0 : tensor<1x4x8xf32>
}
