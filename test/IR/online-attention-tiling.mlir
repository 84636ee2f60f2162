//===- online-attention-tiling.mlir - tiling of online_attention ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --split-input-file --transform-interpreter --cse \
// RUN:   --canonicalize --verify-diagnostics | FileCheck %s

// Tiles of heads and queries are slices of the destinations; tiles of keys
// accumulate. Each tile has its first head, query and key as operands.
// CHECK: #[[$SIZE:.+]] = affine_map<(d0)[s0] -> (-d0 + s0, 32)>
// CHECK: #[[$ADD:.+]] = affine_map<(d0)[s0] -> (d0 + s0)>
// CHECK-LABEL: func @all_loops(
// CHECK-SAME: %[[Q:[^:]+]]: tensor<4x64x128xbf16>, %[[K:[^:]+]]: tensor<?x128xbf16>, %[[V:[^:]+]]: tensor<?x64xbf16>
// CHECK-SAME: %[[B:[^:]+]]: index, %[[H:[^:]+]]: index, %[[I:[^:]+]]: index, %[[J:[^:]+]]: index, %[[N:[^:]+]]: index, %[[MASK:[^:]+]]: tensor<1x64x?xi1>
// CHECK: %[[SIZEK:.+]] = tensor.dim %[[K]], %c0
// CHECK: scf.for %[[HO:.+]] = %c0 to %c4 step %c1
// CHECK: scf.for %[[QO:.+]] = %c0 to %c64 step %c16
// CHECK: scf.for %[[KO:.+]] = %c0 to %[[SIZEK]] step %c32 iter_args(%[[ACC:.+]] = %{{.*}}, %[[MAX:.+]] = %{{.*}}, %[[SUM:.+]] = %{{.*}})
// CHECK-DAG: %[[S:.+]] = affine.min #[[$SIZE]](%[[KO]])[%[[SIZEK]]]
// CHECK-DAG: %[[H1:.+]] = affine.apply #[[$ADD]](%[[HO]])[%[[H]]]
// CHECK-DAG: %[[I1:.+]] = affine.apply #[[$ADD]](%[[QO]])[%[[I]]]
// CHECK-DAG: %[[J1:.+]] = affine.apply #[[$ADD]](%[[KO]])[%[[J]]]
// CHECK-DAG: %[[Q1:.+]] = tensor.extract_slice %[[Q]][%[[HO]], %[[QO]], 0] [1, 16, 128]
// CHECK-DAG: %[[K1:.+]] = tensor.extract_slice %[[K]][%[[KO]], 0] [%[[S]], 128]
// CHECK-DAG: %[[V1:.+]] = tensor.extract_slice %[[V]][%[[KO]], 0] [%[[S]], 64]
// CHECK-DAG: %[[M1:.+]] = tensor.extract_slice %[[MASK]][0, %[[QO]], %[[KO]]] [1, 16, %[[S]]]
// CHECK-DAG: %[[A1:.+]] = tensor.extract_slice %[[ACC]][%[[HO]], %[[QO]], 0] [1, 16, 64]
// CHECK-DAG: %[[X1:.+]] = tensor.extract_slice %[[MAX]][%[[HO]], %[[QO]]] [1, 16]
// CHECK-DAG: %[[S1:.+]] = tensor.extract_slice %[[SUM]][%[[HO]], %[[QO]]] [1, 16]
// CHECK: posenc.online_attention causal at(%[[B]], %[[H1]], %[[I1]], %[[J1]]) keys(%[[N]])
// CHECK-SAME: ins(%[[Q1]], %[[K1]], %[[V1]] : tensor<1x16x128xbf16>, tensor<?x128xbf16>, tensor<?x64xbf16>)
// CHECK-SAME: mask(%[[M1]] : tensor<1x16x?xi1>) outs(%[[A1]], %[[X1]], %[[S1]] : tensor<1x16x64xf32>, tensor<1x16xf32>, tensor<1x16xf32>)
// CHECK-NEXT: score(%s, %b, %h, %i, %j) {
// CHECK-NEXT:   posenc.alibi(%h, %i, %j) heads = 8 : f32
// CHECK: tensor.insert_slice {{.*}} into %[[ACC]]
// CHECK: tensor.insert_slice {{.*}} into %[[MAX]]
// CHECK: tensor.insert_slice {{.*}} into %[[SUM]]
func.func @all_loops(%q: tensor<4x64x128xbf16>, %k: tensor<?x128xbf16>, %v: tensor<?x64xbf16>, %b: index, %h: index, %i: index, %j: index, %n: index, %mask: tensor<1x64x?xi1>,
    %acc: tensor<4x64x64xf32>, %max: tensor<4x64xf32>, %sum: tensor<4x64xf32>) -> (tensor<4x64x64xf32>, tensor<4x64xf32>, tensor<4x64xf32>) {
  %r:3 = posenc.online_attention causal at(%b, %h, %i, %j) keys(%n)
    ins(%q, %k, %v : tensor<4x64x128xbf16>, tensor<?x128xbf16>, tensor<?x64xbf16>)
    mask(%mask : tensor<1x64x?xi1>)
    outs(%acc, %max, %sum : tensor<4x64x64xf32>, tensor<4x64xf32>, tensor<4x64xf32>)
    score(%s, %x, %y, %z, %w) {
      %bias = posenc.alibi(%y, %z, %w) heads = 8 : f32
      %t = arith.addf %s, %bias : f32
      posenc.yield %t : f32
    }
  return %r#0, %r#1, %r#2 : tensor<4x64x64xf32>, tensor<4x64xf32>, tensor<4x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:3 = transform.structured.tile_using_for %op tile_sizes [1, 16, 32]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Fusion into a loop over queries takes all keys and all channels.
// CHECK-LABEL: func @fuse(
// CHECK: scf.forall (%[[I:.+]]) in (16)
// CHECK: posenc.online_attention at(
// CHECK-SAME: ins({{.*}} : tensor<1x4x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>) outs({{.*}} : tensor<1x4x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
// CHECK: math.exp
func.func @fuse(%q: tensor<1x64x8xf32>, %k: tensor<7x8xf32>, %i: index, %m: tensor<1x64xf32>) -> tensor<1x64x8xf32> {
  %r:3 = posenc.online_attention at(%i, %i, %i, %i) ins(%q, %k, %k : tensor<1x64x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>)
    outs(%q, %m, %m : tensor<1x64x8xf32>, tensor<1x64xf32>, tensor<1x64xf32>)
  %o = scf.forall (%t) in (16) shared_outs(%a = %q) -> tensor<1x64x8xf32> {
    %p = affine.apply affine_map<(d0) -> (d0 * 4)>(%t)
    %s = tensor.extract_slice %r#0[0, %p, 0] [1, 4, 8] [1, 1, 1] : tensor<1x64x8xf32> to tensor<1x4x8xf32>
    %e = math.exp %s : tensor<1x4x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %e into %a[0, %p, 0] [1, 4, 8] [1, 1, 1] : tensor<1x4x8xf32> into tensor<1x64x8xf32>
    }
  }
  return %o : tensor<1x64x8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %loop = transform.structured.match ops{["scf.forall"]} in %root : (!transform.any_op) -> !transform.any_op
    %fused, %into = transform.structured.fuse_into_containing_op %op into %loop
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Tiling memrefs is an error.
func.func @on_memrefs(%q: memref<1x64x8xf32>, %k: memref<7x8xf32>, %i: index, %m: memref<1x64xf32>) {
  // expected-error @+2 {{to tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  posenc.online_attention at(%i, %i, %i, %i) ins(%q, %k, %k : memref<1x64x8xf32>, memref<7x8xf32>, memref<7x8xf32>)
    outs(%q, %m, %m : memref<1x64x8xf32>, memref<1x64xf32>, memref<1x64xf32>)
  return
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [1]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
