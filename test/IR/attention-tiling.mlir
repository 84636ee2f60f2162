//===- attention-tiling.mlir - tiling of attention ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --split-input-file --transform-interpreter --canonicalize \
// RUN:   --cse --verify-diagnostics | FileCheck %s

// Loops over sequences, heads and queries. A tile of heads has its key head, its
// regions add the first sequence and head of the tile to their arguments, and
// trailing_queries determines the positions of its queries.
// CHECK: #[[$HEAD:.+]] = affine_map<(d0) -> (d0 * 2)>
// CHECK: #[[$TOKEN:.+]] = affine_map<(d0) -> (d0 * 16)>
// CHECK: #[[$SIZE:.+]] = affine_map<(d0)[s0] -> (d0 * -16 + s0, 16)>
// CHECK: #[[$KEYHEAD:.+]] = affine_map<(d0) -> (d0 floordiv 2)>
// CHECK: #[[$REST:.+]] = affine_map<(d0, d1)[s0, s1] -> (-d0 - d1 * 16 + s0 + s1)>
// CHECK-LABEL: func @all_loops(
// CHECK-SAME: %[[Q:[^:]+]]: tensor<?x?x8x64xf32>, %[[K:[^:]+]]: tensor<?x?x2x64xf32>, %[[V:[^:]+]]: tensor<?x?x2x32xf32>, %[[MASK:[^:]+]]: tensor<?x1x?x?xi1>, %[[SINK:[^:]+]]: tensor<8xf32>, %[[N:[^:]+]]: index,
// CHECK: scf.forall (%[[B:.+]], %[[HT:.+]], %[[TT:.+]]) in (%{{.*}}, 4, %{{.*}}) shared_outs(%[[OUT:.+]] = %{{.*}})
// CHECK-DAG: %[[H:.+]] = affine.apply #[[$HEAD]](%[[HT]])
// CHECK-DAG: %[[T:.+]] = affine.apply #[[$TOKEN]](%[[TT]])
// CHECK-DAG: %[[S:.+]] = affine.min #[[$SIZE]](%[[TT]])
// CHECK-DAG: %[[KH:.+]] = affine.apply #[[$KEYHEAD]](%[[HT]])
// CHECK-DAG: %[[Q1:.+]] = tensor.extract_slice %[[Q]][%[[B]], %[[T]], %[[H]], 0] [1, %[[S]], 2, 64]
// CHECK-DAG: %[[K1:.+]] = tensor.extract_slice %[[K]][%[[B]], 0, %[[KH]], 0] [1, %{{.*}}, 1, 64]
// CHECK-DAG: %[[V1:.+]] = tensor.extract_slice %[[V]][%[[B]], 0, %[[KH]], 0] [1, %{{.*}}, 1, 32]
// CHECK-DAG: %[[M1:.+]] = tensor.extract_slice %[[MASK]][%[[B]], 0, %[[T]], 0] [1, 1, %[[S]], %{{.*}}]
// CHECK-DAG: %[[S1:.+]] = tensor.extract_slice %[[SINK]][%[[H]]] [2]
// CHECK-DAG: %[[O1:.+]] = tensor.extract_slice %[[OUT]][%[[B]], %[[T]], %[[H]], 0] [1, %[[S]], 2, 32]
// CHECK-DAG: %[[R:.+]] = affine.apply #[[$REST]](%[[S]], %[[TT]])[%[[N]], %{{.*}}]
// CHECK: posenc.attention causal ins(%[[Q1]], %[[K1]], %[[V1]] : tensor<1x?x2x64xf32>, tensor<1x?x1x64xf32>, tensor<1x?x1x32xf32>)
// CHECK-SAME: mask(%[[M1]] : tensor<1x1x?x?xi1>) sinks(%[[S1]] : tensor<2xf32>) trailing_queries(%[[R]]) outs(%[[O1]] : tensor<1x?x2x32xf32>)
// CHECK-NEXT: score(%s, %b, %h, %i, %j) {
// CHECK-NEXT:   %[[H2:.+]] = arith.addi %h, %[[H]] : index
// CHECK-NEXT:   posenc.alibi(%[[H2]], %i, %j) heads = 8 : f32
// CHECK: where(%b, %h, %i, %j) {
// CHECK-NEXT:   %[[B2:.+]] = arith.addi %b, %[[B]] : index
// CHECK-NEXT:   arith.cmpi ne, %j, %[[B2]] : index
// CHECK: tensor.parallel_insert_slice {{.*}} into %[[OUT]][%[[B]], %[[T]], %[[H]], 0] [1, %[[S]], 2, 32]
func.func @all_loops(%q: tensor<?x?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x32xf32>, %mask: tensor<?x1x?x?xi1>, %sinks: tensor<8xf32>, %n: index, %o: tensor<?x?x8x32xf32>) -> tensor<?x?x8x32xf32> {
  %r = posenc.attention causal ins(%q, %k, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x32xf32>)
    mask(%mask : tensor<?x1x?x?xi1>) sinks(%sinks : tensor<8xf32>) trailing_queries(%n) outs(%o : tensor<?x?x8x32xf32>)
    score(%s, %b, %h, %i, %j) {
      %bias = posenc.alibi(%h, %i, %j) heads = 8 : f32
      %t = arith.addf %s, %bias : f32
      posenc.yield %t : f32
    }
    where(%b, %h, %i, %j) {
      %y = arith.cmpi ne, %j, %b : index
      posenc.yield %y : i1
    }
  return %r : tensor<?x?x8x32xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_forall %op tile_sizes [1, 2, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Tiles a consumer, and fuses attention and the preceding rope into its loop.
// CHECK-LABEL: func @fused(
// CHECK: scf.forall (%[[B:.+]], %[[T:.+]]) in
// CHECK: %[[ROPE:.+]] = posenc.rope half {{.*}} : tensor<1x8x8x64xf32>)
// CHECK: %[[A:.+]] = posenc.attention causal ins(%[[ROPE]], {{.*}} trailing_queries(
// CHECK: linalg.generic {{.*}} ins(%[[A]], %{{.*}} : tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>)
#id = affine_map<(b, t, h, d) -> (b, t, h, d)>
func.func @fused(%q: tensor<2x64x8x64xf32>, %k: tensor<2x64x2x64xf32>, %v: tensor<2x64x2x64xf32>, %p: tensor<2x64xi64>, %x: tensor<2x64x8x64xf32>, %o: tensor<2x64x8x64xf32>) -> tensor<2x64x8x64xf32> {
  %e = tensor.empty() : tensor<2x64x8x64xf32>
  %f = posenc.rope half #posenc.frequencies<dim = 64> ins(%q : tensor<2x64x8x64xf32>) positions(%p : tensor<2x64xi64>) dims = [0, 1] outs(%e : tensor<2x64x8x64xf32>)
  %a = posenc.attention causal ins(%f, %k, %v : tensor<2x64x8x64xf32>, tensor<2x64x2x64xf32>, tensor<2x64x2x64xf32>) outs(%e : tensor<2x64x8x64xf32>)
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%a, %x : tensor<2x64x8x64xf32>, tensor<2x64x8x64xf32>) outs(%o : tensor<2x64x8x64xf32>) {
    ^bb0(%s: f32, %t: f32, %u: f32):
      %y = arith.addf %s, %t : f32
      linalg.yield %y : f32
  } -> tensor<2x64x8x64xf32>
  return %r : tensor<2x64x8x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.generic"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_forall %op tile_sizes [1, 8]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %attention = transform.structured.match ops{["posenc.attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %a, %loop2 = transform.structured.fuse_into_containing_op %attention into %loop
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %rope = transform.structured.match ops{["posenc.rope"]} in %root : (!transform.any_op) -> !transform.any_op
    %b, %loop3 = transform.structured.fuse_into_containing_op %rope into %loop2
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A slice of ragged queries is not a sequence, so heads are the only loop.
// CHECK-LABEL: func @ragged(
// CHECK: scf.forall (%{{.*}}) in (2)
// CHECK: posenc.attention {{.*}} : tensor<?x4x64xf32>, tensor<?x1x64xf32>, tensor<?x1x64xf32>) cu_seqlens(
// CHECK-NOT: trailing_queries
// CHECK-SAME: outs(
func.func @ragged(%q: tensor<?x8x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %c: tensor<?xi64>, %o: tensor<?x8x64xf32>) -> tensor<?x8x64xf32> {
  %r = posenc.attention causal ins(%q, %k, %v : tensor<?x8x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>) cu_seqlens(%c, %c : tensor<?xi64>, tensor<?xi64>) outs(%o : tensor<?x8x64xf32>)
  return %r : tensor<?x8x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_forall %op tile_sizes [4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Three query heads with a GQA group size of 4 use one or two key heads.
func.func @parts_of_groups(%q: tensor<?x?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x64xf32>, %o: tensor<?x?x8x64xf32>) -> tensor<?x?x8x64xf32> {
  // expected-error @+3 {{faild to tile operation}}
  // expected-error @+2 {{failed to generate tiling loops}}
  // expected-note @+1 {{when applied to this op}}
  %r = posenc.attention causal ins(%q, %k, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>) outs(%o : tensor<?x?x8x64xf32>)
  return %r : tensor<?x?x8x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.attention"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error @+1 {{failed to apply}}
    %tiled, %loop = transform.structured.tile_using_forall %op tile_sizes [0, 3]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
