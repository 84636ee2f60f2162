//===- attention-to-linalg.mlir - a tile of attention becomes generics ----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --convert-posenc-attention-to-linalg --split-input-file \
// RUN:   --mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: func.func @plain(
// CHECK-SAME:    %[[Q:.*]]: tensor<4x?x16xf16>, %[[K:.*]]: tensor<?x16xf16>, %[[V:.*]]: tensor<?x8xf16>, %[[I:.*]]: index, %[[ACC:.*]]: tensor<4x?x8xf32>, %[[MAX:.*]]: tensor<4x?xf32>, %[[SUM:.*]]: tensor<4x?xf32>)
// Products, summed in f32:
// CHECK:         %[[ROWS:.*]] = tensor.collapse_shape %[[Q]] {{\[\[}}0, 1], [2]]
// CHECK:         %[[PRODUCT:.*]] = linalg.generic
// CHECK-SAME:      affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[ROWS]], %[[K]] :
// CHECK-COUNT-2:   arith.extf %{{.*}} : f16 to f32
// CHECK:         %[[DOTS:.*]] = tensor.expand_shape %[[PRODUCT]] {{\[\[}}0, 1], [2]]
// Neither scale nor masks: the scores are the products.
// CHECK:         %[[MAXIMA:.*]] = linalg.generic
// CHECK-SAME:      ins(%[[DOTS]] :
// CHECK:           arith.maximumf
// CHECK:         %[[NEXT:.*]]:2 = linalg.generic
// CHECK-SAME:      ins(%[[MAXIMA]] : {{.*}}) outs(%{{.*}}, %[[MAX]] :
// CHECK:           %[[M:.*]] = arith.maximumf
// CHECK:           math.exp
// CHECK:           %[[NONE:.*]] = arith.cmpf oeq, %[[M]]
// CHECK:           arith.select %[[NONE]]
// CHECK:         %[[P:.*]] = linalg.generic
// CHECK-SAME:      ins(%[[NEXT]]#1 : {{.*}}) outs(%[[DOTS]] :
// CHECK:           arith.select
// CHECK:           math.exp
// CHECK:         %[[PSUM:.*]] = linalg.generic
// CHECK-SAME:      ins(%[[P]] :
// CHECK:           arith.addf
// All keys take part: a product of matrices.
// CHECK:         %[[PROWS:.*]] = tensor.collapse_shape %[[P]]
// CHECK:         %[[VALUES:.*]] = linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "reduction", "parallel"]} ins(%[[PROWS]], %[[V]] :
// CHECK:           arith.mulf
// CHECK-NEXT:      arith.addf
// CHECK:         %[[PV:.*]] = tensor.expand_shape %[[VALUES]]
// CHECK:         %[[NEWSUM:.*]] = linalg.generic
// CHECK-SAME:      ins(%[[NEXT]]#0, %[[PSUM]] : {{.*}}) outs(%[[SUM]] :
// CHECK:         %[[NEWACC:.*]] = linalg.generic
// CHECK-SAME:      ins(%[[NEXT]]#0, %[[PV]] : {{.*}}) outs(%[[ACC]] :
// CHECK:         return %[[NEWACC]], %[[NEXT]]#1, %[[NEWSUM]]
func.func @plain(%q: tensor<4x?x16xf16>, %k: tensor<?x16xf16>, %v: tensor<?x8xf16>, %i: index, %acc: tensor<4x?x8xf32>, %max: tensor<4x?xf32>, %sum: tensor<4x?xf32>) -> (tensor<4x?x8xf32>, tensor<4x?xf32>, tensor<4x?xf32>) {
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x?x16xf16>, tensor<?x16xf16>, tensor<?x8xf16>)
    outs(%acc, %max, %sum : tensor<4x?x8xf32>, tensor<4x?xf32>, tensor<4x?xf32>)
  return %r#0, %r#1, %r#2 : tensor<4x?x8xf32>, tensor<4x?xf32>, tensor<4x?xf32>
}

// -----

// Scale, region, mask and places in one generic. A tile that exceeds the keys
// is cut. A size of 1 of the mask is no loop.
// CHECK-LABEL: func.func @masked(
// CHECK-SAME:    %[[Q:.*]]: tensor<2x3x16xf64>, %[[K:.*]]: tensor<8x16xf64>, %[[MASK:.*]]: tensor<1x3x8xf64>, %[[B:.*]]: index, %[[H:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index, %[[N:.*]]: index,
// CHECK:         %[[REST:.*]] = arith.subi %[[N]], %[[J]]
// CHECK:         %[[COUNT:.*]] = affine.min
// CHECK:         tensor.extract_slice %[[K]][0, 0] [%[[COUNT]], 16]
// CHECK:         tensor.extract_slice %[[MASK]][0, 0, 0] [1, 3, %[[COUNT]]]
// CHECK:         %[[CUT:.*]] = tensor.extract_slice %{{.*}} : tensor<1x3x?xf64> to tensor<3x?xf64>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]
// CHECK-SAME:      ins(%[[CUT]] : tensor<3x?xf64>)
// CHECK:         ^bb0(%[[ADDED:.*]]: f64, %[[DOT:.*]]: f64):
// CHECK-DAG:       %[[HEAD:.*]] = arith.addi %[[H]], %{{.*}}
// CHECK-DAG:       %[[QUERY:.*]] = arith.addi %[[I]], %{{.*}}
// CHECK-DAG:       %[[KEY:.*]] = arith.addi %[[J]], %{{.*}}
// CHECK:           %[[SCALED:.*]] = arith.mulf %[[DOT]], %cst{{.*}}
// CHECK:           tensor.extract %{{.*}}[%[[HEAD]]] : tensor<2xf64>
// CHECK:           %[[BIASED:.*]] = arith.addf %[[SCALED]],
// CHECK:           arith.addf %[[BIASED]], %[[ADDED]]
// CHECK:           %[[AFTER:.*]] = arith.subi %[[KEY]], %[[QUERY]]
// CHECK:           arith.cmpi sle, %[[AFTER]], %c0
// CHECK:           %[[BEFORE:.*]] = arith.subi %[[QUERY]], %[[KEY]]
// CHECK:           arith.cmpi sle, %[[BEFORE]], %c5
// CHECK:           arith.andi
// CHECK:           arith.cmpi ne, %[[QUERY]], %[[B]]
// CHECK:           arith.select
func.func @masked(%q: tensor<2x3x16xf64>, %k: tensor<8x16xf64>, %mask: tensor<1x3x8xf64>, %b: index, %h: index, %i: index, %j: index, %n: index, %acc: tensor<2x3x16xf64>, %max: tensor<2x3xf64>, %sum: tensor<2x3xf64>) -> (tensor<2x3x16xf64>, tensor<2x3xf64>, tensor<2x3xf64>) {
  %r:3 = posenc.online_attention causal window_left = 5 scale = 0.5 at(%b, %h, %i, %j) keys(%n)
    ins(%q, %k, %k : tensor<2x3x16xf64>, tensor<8x16xf64>, tensor<8x16xf64>) mask(%mask : tensor<1x3x8xf64>)
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

// Slopes are constants; thresholds that follow each other are one minimum.
// CHECK-LABEL: func.func @biases(
// CHECK-SAME:    %[[H:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index, %[[R:.*]]: i32)
// CHECK:         %[[SLOPES:.*]] = arith.constant dense<[6.250000e-02, 3.906250e-03, 2.500000e-01]> : tensor<3xf32>
// CHECK:         %[[SLOPE:.*]] = tensor.extract %[[SLOPES]][%[[H]]]
// CHECK:         arith.subi %[[I]], %[[J]]
// CHECK:         math.absi
// CHECK:         %[[D:.*]] = arith.uitofp %{{.*}} : i64 to f32
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

// A region of attention holds no tables.
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

// No key changes nothing, and no slice would begin among them.
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

// Where all keys of the tile are before the first query, values are a product
// of matrices; else weights of 0 are skipped.
// CHECK-LABEL: func.func @causal(
// CHECK-SAME:    %[[I:[a-z0-9]*]]: index, %[[J:[a-z0-9]*]]: index
// CHECK:         %[[SUM:.*]] = arith.addi %[[J]], %c8
// CHECK:         %[[LAST:.*]] = arith.subi %[[SUM]], %c1
// CHECK:         %[[DISTANCE:.*]] = arith.subi %[[LAST]], %[[I]]
// CHECK:         %[[BEFORE:.*]] = arith.cmpi sle, %[[DISTANCE]], %c0
// CHECK:         %[[ALL:.*]] = arith.andi %true, %[[BEFORE]]
// CHECK:         scf.if %[[ALL]]
// CHECK:           linalg.generic
// CHECK-NOT:         arith.cmpf
// CHECK:         } else {
// CHECK:           linalg.generic
// CHECK:             arith.cmpf oeq
func.func @causal(%q: tensor<2x3x16xf64>, %k: tensor<8x16xf64>, %i: index, %j: index, %acc: tensor<2x3x16xf64>, %max: tensor<2x3xf64>, %sum: tensor<2x3xf64>) -> tensor<2x3x16xf64> {
  %c0 = arith.constant 0 : index
  %r:3 = posenc.online_attention causal at(%c0, %c0, %i, %j)
    ins(%q, %k, %k : tensor<2x3x16xf64>, tensor<8x16xf64>, tensor<8x16xf64>)
    outs(%acc, %max, %sum : tensor<2x3x16xf64>, tensor<2x3xf64>, tensor<2x3xf64>)
  return %r#0 : tensor<2x3x16xf64>
}
