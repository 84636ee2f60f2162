//===- decompose-attention.mlir - attention becomes loops over tiles ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-decompose-attention --canonicalize --cse \
// RUN:   --split-input-file --mlir-print-local-scope | FileCheck %s
// RUN: not posenc-opt %s --pass-pipeline='builtin.module(posenc-decompose-attention{rows=0})' \
// RUN:   2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: posenc-opt %s --pass-pipeline='builtin.module(posenc-decompose-attention{except-vectors=true})' \
// RUN:   --split-input-file | FileCheck %s --check-prefix=VECTORS

// RUN: posenc-opt %s --pass-pipeline='builtin.module(posenc-decompose-attention{groups=3},canonicalize,cse)' \
// RUN:   --split-input-file --mlir-print-local-scope | FileCheck %s --check-prefix=GROUPS

// ROWS: error: 'posenc.attention' op expected options 'rows', 'groups' and 'keys' from 1 to 1048576, got 0, 1 and 32
// RUN: not posenc-opt %s --pass-pipeline='builtin.module(posenc-decompose-attention{rows=9223372036854775807})' \
// RUN:   2>&1 | FileCheck %s --check-prefix=MOST
// MOST: error: 'posenc.attention' op expected options 'rows', 'groups' and 'keys' from 1 to 1048576, got 9223372036854775807, 1 and 32

// A task has a query tile of four queries and the four query heads of a key
// head. Loops over keys begin at the first key of the window and end at the
// last causal key; key tiles are padded with zeros.
// CHECK-LABEL: func.func @rotated(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x?x8x64xf32>, %[[K:.*]]: tensor<?x?x2x64xf32>, %[[V:.*]]: tensor<?x?x2x64xf32>, %[[P:.*]]: tensor<?x?xi64>, %[[O:.*]]: tensor
// CHECK-DAG:     %[[B:.*]] = tensor.dim %[[Q]], %c0
// CHECK-DAG:     %[[LQ:.*]] = tensor.dim %[[Q]], %c1
// CHECK-DAG:     %[[LK:.*]] = tensor.dim %[[K]], %c1
// CHECK:         %[[TILES:.*]] = affine.apply affine_map<()[s0] -> (s0 ceildiv 4)>()[%[[LQ]]]
// CHECK:         scf.forall (%[[I:.*]], %[[G:.*]], %[[T:.*]]) in (%[[B]], 2, %[[TILES]]) shared_outs(%[[OUT:.*]] = %[[O]])
// CHECK:           %[[HEAD:.*]] = affine.apply affine_map<(d0) -> (d0 * 4)>(%[[G]])
// CHECK:           %[[FIRST:.*]] = affine.apply affine_map<(d0) -> (d0 * 4)>(%[[T]])
// CHECK:           %[[COUNT:.*]] = affine.min affine_map<(d0)[s0] -> (d0 * -4 + s0, 4)>(%[[T]])[%[[LQ]]]
// CHECK:           %[[BEFORE:.*]] = arith.subi %[[LK]], %[[LQ]]
// CHECK:           %[[PLACE:.*]] = arith.addi %[[FIRST]], %[[BEFORE]]
// CHECK:           %[[MORE:.*]] = arith.subi %[[COUNT]], %c1
// CHECK:           %[[LAST:.*]] = arith.addi %[[PLACE]], %[[MORE]]
// CHECK:           tensor.extract_slice %[[Q]][%[[I]], %[[FIRST]], %[[HEAD]], 0] [1, %[[COUNT]], 4, 64]
// CHECK:           linalg.transpose
// CHECK:           tensor.extract_slice %[[P]][%[[I]], %[[FIRST]]] [1, %[[COUNT]]]
// CHECK:           %[[ROTATED:.*]] = posenc.rope half {{.*}} dims = [1]
// CHECK:           %[[MINE:.*]] = tensor.extract_slice %[[ROTATED]][0, 0, 0] [4, %[[COUNT]], 64]
// CHECK:           linalg.transpose ins(%[[MINE]] : {{.*}}) outs(%{{.*}} : tensor<64x4x?xf32>) permutation = [2, 0, 1]
// CHECK:           %[[LEFT:.*]] = arith.addi %[[PLACE]], %c-5
// CHECK:           %[[BEGIN:.*]] = arith.maxsi %[[LEFT]], %c0
// CHECK:           %[[BEYOND:.*]] = arith.addi %[[LAST]], %c1
// CHECK:           %[[END:.*]] = arith.minsi %[[BEYOND]], %[[LK]]
// CHECK:           scf.for %[[J:[a-z0-9]+]] = %[[BEGIN]] to %[[END]] step %c32 iter_args
// CHECK:             %[[KEYS:.*]] = affine.min affine_map<(d0, d1) -> (32, d0 - d1)>(%[[END]], %[[J]])
// CHECK:             tensor.extract_slice %[[K]][%[[I]], %[[J]], %[[G]], 0] [1, %[[KEYS]], 1, 64]
// CHECK:             tensor.extract_slice %[[V]][%[[I]], %[[J]], %[[G]], 0] [1, %[[KEYS]], 1, 64]
// CHECK:             posenc.rope half {{.*}} dims = [0]
// CHECK:             %[[KREST:.*]] = linalg.fill
// CHECK:             %[[KZEROS:.*]] = tensor.insert_slice %[[KREST]] into
// CHECK:             %[[KTILE:.*]] = tensor.insert_slice %{{.*}} into %[[KZEROS]][0, 0] [%{{.*}}, 64]
// CHECK:             %[[VREST:.*]] = linalg.fill
// CHECK:             %[[VZEROS:.*]] = tensor.insert_slice %[[VREST]] into
// CHECK:             %[[VTILE:.*]] = tensor.insert_slice %{{.*}} into %[[VZEROS]][0, 0] [%{{.*}}, 64]
// CHECK:             %[[QTILE:.*]] = tensor.expand_shape {{.*}} : tensor<16x64xf32> into tensor<4x4x64xf32>
// CHECK:             posenc.online_attention causal window_left = 5 scale = 1.250000e-01 at(%[[I]], %[[HEAD]], %[[PLACE]], %[[J]]) keys(%[[END]]) ins(%[[QTILE]], %[[KTILE]], %[[VTILE]] :
// CHECK:           %[[DEST:.*]] = tensor.extract_slice %[[OUT]][%[[I]], %[[FIRST]], %[[HEAD]], 0] [1, %[[COUNT]], 4, 64]
// CHECK:           %[[PART:.*]] = tensor.extract_slice %[[DEST]][0, 0, 0] [%[[COUNT]], 4, 64]
// CHECK:           linalg.generic {{.*}} outs(%[[PART]] :
// CHECK:             arith.divf
// CHECK:           tensor.parallel_insert_slice
// VECTORS-LABEL: func.func @rotated(
// VECTORS:         posenc.attention

// Each key tile serves several query tiles, except those that do not see it.
// GROUPS-LABEL: func.func @rotated(
// GROUPS:         scf.forall
// GROUPS:           %[[COUNT:.*]] = affine.min affine_map<(d0)[s0] -> (d0 * -12 + s0, 12)>
// GROUPS:           %[[GROUPS:.*]] = affine.apply affine_map<(d0) -> (d0 ceildiv 4)>(%[[COUNT]])
// GROUPS:           scf.for %{{.*}} = %c0 to %[[GROUPS]]
// GROUPS:             linalg.transpose
// GROUPS:           scf.for %[[J:[a-z0-9]+]] = {{.*}} step %c32
// GROUPS:             posenc.rope
// GROUPS:             scf.for %[[G:[a-z0-9]+]] = %c0 to %[[GROUPS]]
// GROUPS:               %[[FIRST:.*]] = affine.apply affine_map<(d0) -> (d0 * 4)>(%[[G]])
// GROUPS:               %[[PLACE:.*]] = arith.addi %{{.*}}, %[[FIRST]]
// GROUPS:               %[[LAST:.*]] = arith.addi %[[PLACE]], %c3
// GROUPS:               %[[END:.*]] = arith.addi %[[J]], %c31
// GROUPS:               %[[AFTER:.*]] = arith.subi %[[J]], %[[LAST]]
// GROUPS:               arith.cmpi sle, %[[AFTER]], %c0
// GROUPS:               %[[BEFORE:.*]] = arith.subi %[[PLACE]], %[[END]]
// GROUPS:               arith.cmpi sle, %[[BEFORE]], %c5
// GROUPS:               scf.if
// GROUPS:                 posenc.online_attention {{.*}} at(%{{.*}}, %{{.*}}, %[[PLACE]], %[[J]])
// GROUPS:           scf.for %{{.*}} = %c0 to %[[GROUPS]]
// GROUPS:             arith.divf
func.func @rotated(%q: tensor<?x?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x64xf32>, %p: tensor<?x?xi64>, %o: tensor<?x?x8x64xf32>) -> tensor<?x?x8x64xf32> {
  %r = posenc.attention causal window_left = 5
    query_rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 64, base = 5.000000e+05>>
    key_rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 64, base = 5.000000e+05>>
    ins(%q, %k, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>)
    query_positions(%p : tensor<?x?xi64>) key_positions(%p : tensor<?x?xi64>)
    outs(%o : tensor<?x?x8x64xf32>)
  return %r : tensor<?x?x8x64xf32>
}

// -----

// Without positions, a rope begins at the index of the first token. Sinks are
// the initial running max, and the running sum starts at 1. Static sizes stay
// static.
// CHECK-LABEL: func.func @sinks(
// CHECK:         scf.forall (%[[I:.*]], %[[H:.*]]) in (2, 3)
// CHECK-NOT:       affine.min
// CHECK:           posenc.rope half {{.*}} positions(%c8 : index) dims = [1]
// CHECK-DAG:       %[[MAX:.*]] = linalg.broadcast ins(%{{.*}} : tensor<1xf32>)
// CHECK-DAG:       %[[SUM:.*]] = linalg.fill ins(%cst{{.*}} : f32) outs(%{{.*}} : tensor<1x1x1xf32>)
// CHECK:           posenc.online_attention
// CHECK-SAME:        tensor<1x1x16xbf16>, tensor<9x16xbf16>, tensor<9x16xbf16>
// CHECK:           arith.truncf %{{.*}} : f32 to bf16
// CHECK:           math.log
// CHECK:           tensor.parallel_insert_slice
// CHECK:           tensor.parallel_insert_slice
// VECTORS-LABEL: func.func @sinks(
// VECTORS:         posenc.attention
func.func @sinks(%q: tensor<2x3x1x16xbf16>, %k: tensor<2x3x9x16xbf16>, %s: tensor<3xf32>, %l: tensor<2x3x1xf32>) -> (tensor<2x3x1x16xbf16>, tensor<2x3x1xf32>) {
  %r:2 = posenc.attention query_layout = head_major key_layout = head_major
    query_rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 16, base = 1.000000e+04>>
    ins(%q, %k, %k : tensor<2x3x1x16xbf16>, tensor<2x3x9x16xbf16>, tensor<2x3x9x16xbf16>)
    sinks(%s : tensor<3xf32>) outs(%q, %l : tensor<2x3x1x16xbf16>, tensor<2x3x1xf32>)
  return %r#0, %r#1 : tensor<2x3x1x16xbf16>, tensor<2x3x1xf32>
}

// -----

// Norms are computed in the type of sums, and rounded together with the
// rotation.
// CHECK-LABEL: func.func @normed(
// CHECK:         math.sqrt
// CHECK:         posenc.rope half {{.*}} ins(%{{.*}} : tensor<{{.*}}xf32>)
// CHECK:         arith.truncf %{{.*}} : f32 to f16
// CHECK:         scf.for
// CHECK:           math.sqrt
// CHECK:           arith.truncf %{{.*}} : f32 to f16
// CHECK:           posenc.online_attention
func.func @normed(%q: tensor<?x?x2x16xf16>, %w: tensor<16xf16>) -> tensor<?x?x2x16xf16> {
  %r = posenc.attention norm_eps = 1.0e-6
    query_rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 16, base = 1.000000e+04>>
    ins(%q, %q, %q : tensor<?x?x2x16xf16>, tensor<?x?x2x16xf16>, tensor<?x?x2x16xf16>)
    query_norm(%w : tensor<16xf16>) key_norm(%w : tensor<16xf16>) outs(%q : tensor<?x?x2x16xf16>)
  return %r : tensor<?x?x2x16xf16>
}

// -----

// Sequence b has the tokens from cu_seqlens[b] to cu_seqlens[b + 1]; tiles
// beyond them are empty. Tokens after the last sequence form one more sequence
// without keys. Values beyond the tensor are clamped.
// CHECK-LABEL: func.func @packed(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x2x16xf32>, %[[K:.*]]: tensor<?x2x16xf32>, %[[A:.*]]: tensor<?xi32>, %[[C:.*]]: tensor<?xi32>)
// CHECK-DAG:     %[[N:.*]] = tensor.dim %[[A]], %c0
// CHECK-DAG:     %[[ALL:.*]] = tensor.dim %[[Q]], %c0
// CHECK:         scf.forall (%[[I:.*]], %[[H:.*]], %[[T:.*]]) in (%[[N]],
// CHECK:           %[[LAST:.*]] = arith.addi %[[N]], %c-1
// CHECK:           %[[X:.*]] = tensor.extract %[[A]][%[[I]]]
// CHECK:           %[[FROM:.*]] = arith.index_cast %[[X]]
// CHECK:           %[[LEAST:.*]] = arith.minsi %[[FROM]], %[[ALL]]
// CHECK:           %[[START:.*]] = arith.maxsi %[[LEAST]], %c0
// CHECK:           %[[NEXT:.*]] = arith.minsi %{{.*}}, %[[LAST]]
// CHECK:           %[[IS:.*]] = arith.cmpi eq, %[[I]], %[[LAST]]
// CHECK:           %[[Y:.*]] = tensor.extract %[[A]][%[[NEXT]]]
// CHECK:           %[[TO:.*]] = arith.index_cast %[[Y]]
// CHECK:           %[[CLIPPED:.*]] = arith.minsi %[[TO]], %[[ALL]]
// CHECK:           %[[AFTER:.*]] = arith.maxsi %[[CLIPPED]], %c0
// CHECK:           %[[END:.*]] = arith.select %[[IS]], %[[ALL]], %[[AFTER]]
// CHECK:           %[[SIZE:.*]] = arith.subi %[[END]], %[[START]]
// CHECK:           %[[LQ:.*]] = arith.maxsi %[[SIZE]], %c0
// CHECK:           tensor.extract %[[C]][%[[I]]]
// CHECK:           tensor.extract %[[C]][
// CHECK:           %[[FIRST:.*]] = arith.minsi %{{.*}}, %[[LQ]]
// CHECK:           %[[TOKEN:.*]] = arith.addi %[[START]], %[[FIRST]]
// CHECK:           tensor.extract_slice %[[Q]][%[[TOKEN]],
// CHECK:           scf.for
// VECTORS-LABEL: func.func @packed(
// VECTORS:         posenc.attention
func.func @packed(%q: tensor<?x2x16xf32>, %k: tensor<?x2x16xf32>, %a: tensor<?xi32>, %c: tensor<?xi32>) -> tensor<?x2x16xf32> {
  %r = posenc.attention ins(%q, %k, %k : tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>)
    cu_seqlens(%a, %c : tensor<?xi32>, tensor<?xi32>) outs(%q : tensor<?x2x16xf32>)
  return %r : tensor<?x2x16xf32>
}

// -----

// Lengths exist only for sequences, not for the tokens after the last one.
// CHECK-LABEL: func.func @caches(
// CHECK-SAME:    %[[N:[a-z0-9]*]]: tensor<?xi64>
// CHECK:         scf.forall (%[[I:.*]], %{{.*}}, %{{.*}}) in
// CHECK:           scf.if
// CHECK-NEXT:        tensor.extract %[[N]][%[[I]]]
// CHECK:           } else {
// CHECK-NEXT:        scf.yield %c0
// VECTORS-LABEL: func.func @caches(
// VECTORS:         posenc.online_attention
func.func @caches(%q: tensor<?x2x16xf64>, %k: tensor<?x?x2x16xf64>, %n: tensor<?xi64>, %a: tensor<?xi32>) -> tensor<?x2x16xf64> {
  %r = posenc.attention ins(%q, %k, %k : tensor<?x2x16xf64>, tensor<?x?x2x16xf64>, tensor<?x?x2x16xf64>)
    lengths(%n : tensor<?xi64>) cu_seqlens(%a : tensor<?xi32>) outs(%q : tensor<?x2x16xf64>)
  return %r : tensor<?x2x16xf64>
}

// -----

// Positions with axes are copied, because a slice of one token could have two
// dynamic strides.
// CHECK-LABEL: func.func @axes(
// CHECK-SAME:    %[[P:[a-z0-9]*]]: tensor<2x?x1xi64>
// CHECK:         scf.forall (%[[B:.*]], %{{.*}}) in
// CHECK:           %[[COPY:.*]] = linalg.generic
// CHECK:             %[[A:.*]] = linalg.index 0
// CHECK:             tensor.extract %[[P]][%[[A]], %[[B]], %{{.*}}]
// CHECK:           posenc.rope half {{.*}} positions(%[[COPY]] : tensor<2x1xi64>)
func.func @axes(%q: tensor<?x1x2x16xf64>, %k: tensor<?x?x2x16xf64>, %p: tensor<2x?x1xi64>) -> tensor<?x1x2x16xf64> {
  %r = posenc.attention query_rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 8, base = 10000.0>, axes = #posenc.axes<contiguous, [1, 3]>>
    ins(%q, %k, %k : tensor<?x1x2x16xf64>, tensor<?x?x2x16xf64>, tensor<?x?x2x16xf64>)
    query_positions(%p : tensor<2x?x1xi64>) outs(%q : tensor<?x1x2x16xf64>)
  return %r : tensor<?x1x2x16xf64>
}

// -----

// Pages are looked up for each key. The mask has a batch of 1 for all
// sequences.
// CHECK-LABEL: func.func @paged(
// CHECK-SAME:    %{{.*}}: tensor<?x?x2x16xf32>, %[[K:.*]]: tensor<?x?x1x16xf32>, %[[N:.*]]: tensor<?xi64>, %[[TABLE:.*]]: tensor<?x?xi32>, %[[MASK:.*]]: tensor<1x2x?x?xi1>)
// CHECK:         %[[SLOTS:.*]] = tensor.dim %[[K]], %c1
// CHECK:         scf.forall (%[[I:.*]], %[[T:.*]]) in
// CHECK:           tensor.extract %[[N]][%[[I]]]
// CHECK:           scf.for %[[J:[a-z0-9]+]] =
// CHECK:             linalg.generic
// CHECK:               %[[ROW:.*]] = linalg.index 0
// CHECK:               %[[KEY:.*]] = arith.addi %[[J]], %[[ROW]]
// CHECK:               %[[BLOCK:.*]] = arith.divui %[[KEY]], %[[SLOTS]]
// CHECK:               tensor.extract %[[TABLE]][%[[I]], %[[BLOCK]]]
// CHECK:               %[[SLOT:.*]] = arith.remui %[[KEY]], %[[SLOTS]]
// CHECK:               tensor.extract %[[K]][%{{.*}}, %[[SLOT]], %c0, %{{.*}}]
// CHECK:             tensor.extract_slice %[[MASK]][0, 0, %{{.*}}, %[[J]]] [1, 2,
// CHECK:             posenc.online_attention {{.*}} mask(%{{.*}} : tensor<2x8x32xi1>)
// CHECK-NEXT:          score(%[[S:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
// CHECK-NEXT:            %[[S2:.*]] = arith.addf %[[S]], %[[S]]
// CHECK-NEXT:            posenc.yield %[[S2]]
func.func @paged(%q: tensor<?x?x2x16xf32>, %k: tensor<?x?x1x16xf32>, %n: tensor<?xi64>, %t: tensor<?x?xi32>, %m: tensor<1x2x?x?xi1>) -> tensor<?x?x2x16xf32> {
  %r = posenc.attention ins(%q, %k, %k : tensor<?x?x2x16xf32>, tensor<?x?x1x16xf32>, tensor<?x?x1x16xf32>)
    lengths(%n : tensor<?xi64>) block_table(%t : tensor<?x?xi32>) mask(%m : tensor<1x2x?x?xi1>) outs(%q : tensor<?x?x2x16xf32>)
    score(%s, %b, %h, %i, %j) {
      %x = arith.addf %s, %s : f32
      posenc.yield %x : f32
    }
  return %r : tensor<?x?x2x16xf32>
}

// -----

// Attention on memrefs is not changed.
// CHECK-LABEL: func.func @memrefs(
// CHECK-NEXT:    posenc.attention
func.func @memrefs(%q: memref<?x?x2x16xf32>) {
  posenc.attention ins(%q, %q, %q : memref<?x?x2x16xf32>, memref<?x?x2x16xf32>, memref<?x?x2x16xf32>) outs(%q : memref<?x?x2x16xf32>)
  return
}
