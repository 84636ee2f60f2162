//===- fold-rotations.mlir - ropes fused into their users -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --split-input-file --posenc-fold-rotations | FileCheck %s

!q = tensor<?x?x8x64xf32>
!k = tensor<?x?x2x64xf32>
!p = tensor<?x?xi64>

// Queries and keys of one rope.
// CHECK:       #[[$F:.*]] = #posenc.frequencies<dim = 32, base = 1.000000e+04>
// CHECK:       #[[$R:.*]] = #posenc.rotation<pairing = half, frequencies = #[[$F]], offset = 16>
// CHECK-LABEL: func.func @both(
// CHECK-SAME:    %[[Q:[a-z0-9]*]]: {{[^,]*}}, %[[K:[a-z0-9]*]]: {{[^,]*}}, %[[V:[a-z0-9]*]]: {{[^,]*}}, %[[P:[a-z0-9]*]]: tensor<?x?xi64>
// CHECK-NOT:     posenc.rope
// CHECK:         posenc.attention causal
// CHECK-SAME:      query_rotation = #[[$R]] key_rotation = #[[$R]]
// CHECK-SAME:      ins(%[[Q]], %[[K]], %[[V]] :
// CHECK-SAME:      query_positions(%[[P]] : tensor<?x?xi64>) key_positions(%[[P]] : tensor<?x?xi64>)
func.func @both(%q: !q, %k: !k, %v: !k, %p: !p) -> !q {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 32> ins(%q, %k : !q, !k)
    positions(%p : !p) dims = [0, 1] offset = 16 outs(%q, %k : !q, !k)
  %o = posenc.attention causal ins(%r#0, %r#1, %v : !q, !k, !k) outs(%q : !q)
  return %o : !q
}

// -----

!q = tensor<1x8x?x64xf64>

// Positions per token with a batch of one and head-major layout.
// CHECK:       #[[$R:.*]] = #posenc.rotation<pairing = interleaved, {{.*}} axes = <contiguous, [8, 8, 16]>>
// f64 keys would be rotated for each query tile, so their rope is not folded.
// CHECK-LABEL: func.func @batch_of_one(
// CHECK-SAME:    %[[P:[a-z0-9]*]]: tensor<3x?xi64>
// CHECK:         %[[KEYS:.*]] = posenc.rope
// CHECK:         %[[POSITIONS:.*]] = tensor.expand_shape %[[P]] {{\[\[}}0], [1, 2]] output_shape [3, 1, %{{.*}}]
// CHECK:         posenc.attention
// CHECK-SAME:      query_rotation = #[[$R]] ins(%{{[a-z0-9]*}}, %[[KEYS]], %{{[a-z0-9]*}} :
// CHECK-SAME:      query_positions(%[[POSITIONS]] : tensor<3x1x?xi64>)
func.func @batch_of_one(%q: !q, %k: !q, %p: tensor<3x?xi64>) -> !q {
  %r:2 = posenc.rope interleaved #posenc.frequencies<dim = 64> axes <contiguous, [8, 8, 16]>
    ins(%q, %k : !q, !q) positions(%p : tensor<3x?xi64>) dims = [2] outs(%q, %k : !q, !q)
  %o = posenc.attention query_layout = head_major key_layout = head_major
    ins(%r#0, %r#1, %k : !q, !q, !q) outs(%q : !q)
  return %o : !q
}

// -----

!q = tensor<?x8x?x64xf32>

// Positions that all sequences share get a batch dimension.
// CHECK-LABEL: func.func @shared_positions(
// CHECK-SAME:    %[[Q:[a-z0-9]*]]: tensor<?x8x?x64xf32>, %[[K:[a-z0-9]*]]: tensor<?x8x?x64xf32>, %[[P:[a-z0-9]*]]: tensor<?xi64>
// CHECK-NOT:     posenc.rope
// CHECK:         %[[ROWS:[a-z0-9_]*]] = linalg.broadcast ins(%[[P]] : tensor<?xi64>) outs(%{{.*}} : tensor<?x?xi64>) dimensions = [0]
// CHECK:         posenc.attention
// CHECK-SAME:      ins(%[[Q]], %[[K]], %[[K]] :
// CHECK-SAME:      query_positions(%[[ROWS]] : tensor<?x?xi64>)
// CHECK-SAME:      key_positions(
func.func @shared_positions(%q: !q, %k: !q, %p: tensor<?xi64>) -> !q {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 64>
    ins(%q, %k : !q, !q) positions(%p : tensor<?xi64>) dims = [2] outs(%q, %k : !q, !q)
  %o = posenc.attention query_layout = head_major key_layout = head_major
    ins(%r#0, %r#1, %k : !q, !q, !q) outs(%q : !q)
  return %o : !q
}

// -----

!k = tensor<?x2x64xbf16>
!c = tensor<?x?x2x64xbf16>

// Ragged rows, and a rope that also rotates another tensor.
// CHECK-LABEL: func.func @append(
// CHECK-SAME:    %[[K:[a-z0-9]*]]: {{[^,]*}}, %[[X:[a-z0-9]*]]: {{[^,]*}},
// CHECK:         %[[R:.*]] = posenc.rope {{.*}} ins(%[[X]] :
// CHECK:         %[[S:.*]]:2 = posenc.kv_append rotation = #{{[a-z]*}}
// CHECK-SAME:      ins(%[[K]], %{{.*}}) positions(%{{.*}} : tensor<?xi64>)
// CHECK:         return %[[R]], %[[S]]#0, %[[S]]#1
func.func @append(%k: !k, %x: !k, %v: !k, %p: tensor<?xi64>, %s: tensor<?xi64>, %kc: !c, %vc: !c) -> (!k, !c, !c) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 64> ins(%x, %k : !k, !k)
    positions(%p : tensor<?xi64>) dims = [0] outs(%x, %k : !k, !k)
  %c:2 = posenc.kv_append ins(%r#1, %v : !k, !k) slots(%s : tensor<?xi64>) outs(%kc, %vc : !c, !c)
  return %r#0, %c#0, %c#1 : !k, !c, !c
}

// -----

!q = tensor<?x?x8x64xf32>
!h = tensor<?x?x8x64xf16>
!p = tensor<?x?xi64>

// Not folded: another user, an inverse rope, a scalar position, other
// dimensions, a norm before the rope, a type for which attention does not
// round, and index positions.
// CHECK-LABEL: func.func @left(
// CHECK-COUNT-7: posenc.rope
// CHECK-NOT:     _rotation
// CHECK:         return
func.func @left(%q: !q, %h: !h, %p: !p, %n: i64, %w: tensor<64xf32>, %i: tensor<?x?xindex>) -> (!q, !q, !q, !q, !q, !q, !h, !q) {
  %a = posenc.rope half #posenc.frequencies<dim = 64> ins(%q : !q) positions(%p : !p) dims = [0, 1] outs(%q : !q)
  %ra = posenc.attention ins(%a, %q, %q : !q, !q, !q) outs(%q : !q)
  %b = posenc.rope half inverse #posenc.frequencies<dim = 64> ins(%q : !q) positions(%p : !p) dims = [0, 1] outs(%q : !q)
  %rb = posenc.attention ins(%b, %q, %q : !q, !q, !q) outs(%q : !q)
  %c = posenc.rope half #posenc.frequencies<dim = 64> ins(%q : !q) positions(%n : i64) dims = [1] outs(%q : !q)
  %rc = posenc.attention ins(%c, %q, %q : !q, !q, !q) outs(%q : !q)
  %d = posenc.rope half #posenc.frequencies<dim = 64> ins(%q : !q) positions(%p : !p) dims = [1, 0] outs(%q : !q)
  %rd = posenc.attention ins(%d, %q, %q : !q, !q, !q) outs(%q : !q)
  %e = posenc.rope half #posenc.frequencies<dim = 64> ins(%q : !q) positions(%p : !p) dims = [0, 1] outs(%q : !q)
  %re = posenc.attention norm_eps = 1.0e-6 ins(%e, %q, %q : !q, !q, !q) query_norm(%w : tensor<64xf32>) outs(%q : !q)
  %f = posenc.rope half #posenc.frequencies<dim = 64> ins(%h : !h) positions(%p : !p) dims = [0, 1] outs(%h : !h)
  %rf = posenc.attention ins(%f, %h, %h : !h, !h, !h) outs(%h : !h)
  %g = posenc.rope half #posenc.frequencies<dim = 64> ins(%q : !q) positions(%i : tensor<?x?xindex>) dims = [0, 1] outs(%q : !q)
  %rg = posenc.attention ins(%g, %q, %q : !q, !q, !q) outs(%q : !q)
  return %a, %ra, %rb, %rc, %rd, %re, %rf, %rg : !q, !q, !q, !q, !q, !q, !h, !q
}
