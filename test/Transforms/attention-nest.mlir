//===- attention-nest.mlir - loops of attention with large query tiles ----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A task has one tile of 128 queries of a head; tiles of 64 keys begin at multiples
// of 64.
// RUN: posenc-opt %s --pass-pipeline='builtin.module(posenc-decompose-attention{rows=128 keys=64 aligned-key-tiles one-head bound-elements},canonicalize,cse)' \
// RUN:   --split-input-file --mlir-print-local-scope | FileCheck %s
// The same tile of all heads of a group, and tiles that begin at the first visible
// key.
// RUN: posenc-opt %s --pass-pipeline='builtin.module(posenc-decompose-attention{rows=192 keys=64},canonicalize,cse)' \
// RUN:   --split-input-file --mlir-print-local-scope \
// RUN:   | FileCheck %s --check-prefix=GROUP

// The loop over keys begins at the tile of the first key of the window and ends
// after the last causal key. A tile is the only one of its task: there is no loop
// over tiles of queries.
// CHECK-LABEL: func.func @window(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x?x8x64xbf16>, %[[K:.*]]: tensor<?x?x2x64xbf16>
// CHECK-DAG:     %[[LQ:.*]] = tensor.dim %[[Q]], %c1
// CHECK-DAG:     %[[LK:.*]] = tensor.dim %[[K]], %c1
// CHECK:         %[[TILES:.*]] = affine.apply affine_map<()[s0] -> (s0 ceildiv 128)>()[%[[LQ]]]
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[T:.*]]) in (%{{.*}}, 8, %[[TILES]])
// CHECK-DAG:       %[[KEY_HEAD:.*]] = affine.apply affine_map<(d0) -> (d0 floordiv 4)>(%[[H]])
// CHECK-DAG:       %[[FIRST:.*]] = affine.apply affine_map<(d0) -> (d0 * 128)>(%[[T]])
// CHECK-DAG:       %[[COUNT:.*]] = affine.min affine_map<(d0)[s0] -> (d0 * -128 + s0, 128)>(%[[T]])[%[[LQ]]]
// CHECK:           %[[BEFORE:.*]] = arith.subi %[[LK]], %[[LQ]]
// CHECK:           %[[POSITION:.*]] = arith.addi %[[FIRST]], %[[BEFORE]]
// CHECK:           %[[REST:.*]] = arith.subi %[[COUNT]], %c1
// CHECK:           %[[LAST:.*]] = arith.addi %[[POSITION]], %[[REST]]
// CHECK:           tensor.extract_slice %[[Q]][%[[B]], %[[FIRST]], %[[H]], 0] [1, %[[COUNT]], 1, 64]
// CHECK:           %[[LEFT:.*]] = arith.addi %[[POSITION]], %c-100
// CHECK:           %[[SEEN:.*]] = arith.maxsi %[[LEFT]], %c0
// CHECK:           %[[AFTER:.*]] = arith.addi %[[LAST]], %c1
// CHECK:           %[[END:.*]] = arith.minsi %[[AFTER]], %[[LK]]
// CHECK:           %[[REST:.*]] = arith.remui %[[SEEN]], %c64
// CHECK:           %[[BEGIN:.*]] = arith.subi %[[SEEN]], %[[REST]]
// CHECK:           scf.for %[[J:[a-z0-9]+]] = %[[BEGIN]] to %[[END]] step %c64
// CHECK-NOT:         scf.for
// CHECK-NOT:         scf.if
// CHECK:             %[[KEYS:.*]] = affine.min affine_map<(d0, d1) -> (64, d0 - d1)>(%[[END]], %[[J]])
// CHECK:             tensor.extract_slice %[[K]][%[[B]], %[[J]], %[[KEY_HEAD]], 0] [1, %[[KEYS]], 1, 64]
// CHECK:             posenc.online_attention causal window_left = 100 scale = 1.250000e-01 at(%[[B]], %[[H]], %[[POSITION]], %[[J]]) keys(%[[END]])
// CHECK-SAME:          tensor<1x128x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>
// CHECK-SAME:          tensor<1x128x64xf32>, tensor<1x128xf32>, tensor<1x128xf32>
// CHECK-NOT:       scf.for
// CHECK:           arith.divf
// CHECK:           tensor.parallel_insert_slice

// 192 rows are 48 queries of 4 heads.
// GROUP-LABEL: func.func @window(
// GROUP:         scf.forall ({{.*}}) in (%{{.*}}, 2, %{{.*}})
// GROUP:           affine.min affine_map<(d0)[s0] -> (d0 * -48 + s0, 48)>
// GROUP-NOT:       arith.remui
// GROUP:           scf.for
// GROUP:             posenc.online_attention {{.*}} tensor<4x48x64xbf16>, tensor<64x64xbf16>
func.func @window(%q: tensor<?x?x8x64xbf16>, %k: tensor<?x?x2x64xbf16>) -> tensor<?x?x8x64xbf16> {
  %r = posenc.attention causal window_left = 100 ins(%q, %k, %k : tensor<?x?x8x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>) outs(%q : tensor<?x?x8x64xbf16>)
  return %r : tensor<?x?x8x64xbf16>
}

// -----

// Without a left window, the first tile is that of key 0. Keys on the right of all
// queries of the task are not read.
// CHECK-LABEL: func.func @right(
// CHECK-SAME:    %[[Q:.*]]: tensor<2x8x?x64xf16>, %[[K:.*]]: tensor<2x8x?x64xf16>
// CHECK-NOT:       arith.remui
// CHECK:           %[[AFTER:.*]] = arith.addi %{{.*}}, %c8
// CHECK:           %[[END:.*]] = arith.minsi %[[AFTER]], %{{.*}}
// CHECK-NOT:       arith.remui
// CHECK:           scf.for %{{.*}} = %c0 to %[[END]] step %c64
// CHECK:             posenc.online_attention window_right = 7
func.func @right(%q: tensor<2x8x?x64xf16>, %k: tensor<2x8x?x64xf16>) -> tensor<2x8x?x64xf16> {
  %r = posenc.attention window_right = 7 query_layout = head_major key_layout = head_major ins(%q, %k, %k : tensor<2x8x?x64xf16>, tensor<2x8x?x64xf16>, tensor<2x8x?x64xf16>) outs(%q : tensor<2x8x?x64xf16>)
  return %r : tensor<2x8x?x64xf16>
}

// -----

// The size of key tiles does not depend on a static number of keys.
// CHECK-LABEL: func.func @few_keys(
// CHECK:         posenc.online_attention {{.*}} keys(%c40) {{.*}} tensor<1x24x80xf32>, tensor<64x80xf32>, tensor<64x96xf32>
// GROUP-LABEL: func.func @few_keys(
// GROUP:         posenc.online_attention {{.*}} tensor<4x24x80xf32>, tensor<40x80xf32>, tensor<40x96xf32>
func.func @few_keys(%q: tensor<1x24x4x80xf32>, %k: tensor<1x40x1x80xf32>, %v: tensor<1x40x1x96xf32>, %o: tensor<1x24x4x96xf32>) -> tensor<1x24x4x96xf32> {
  %r = posenc.attention ins(%q, %k, %v : tensor<1x24x4x80xf32>, tensor<1x40x1x80xf32>, tensor<1x40x1x96xf32>) outs(%o : tensor<1x24x4x96xf32>)
  return %r : tensor<1x24x4x96xf32>
}

// -----

// Whole tiles need no limit.
// CHECK-LABEL: func.func @whole_tiles(
// CHECK:         scf.for %[[J:[a-z0-9]+]] = %c0 to %c192 step %c64
// CHECK-NOT:       affine.min
// CHECK-NOT:       linalg.fill
// CHECK:           posenc.online_attention scale = {{.*}} at({{.*}}) ins({{.*}} tensor<1x128x64xf16>, tensor<64x64xf16>
func.func @whole_tiles(%q: tensor<1x256x2x64xf16>, %k: tensor<1x192x2x64xf16>) -> tensor<1x256x2x64xf16> {
  %r = posenc.attention ins(%q, %k, %k : tensor<1x256x2x64xf16>, tensor<1x192x2x64xf16>, tensor<1x192x2x64xf16>) outs(%q : tensor<1x256x2x64xf16>)
  return %r : tensor<1x256x2x64xf16>
}

// -----

// A tile of which `where` is false is skipped, and where it is true it is not
// evaluated: the tile of 64 keys is full for the queries of the same block.
// CHECK-LABEL: func.func @blocks(
// CHECK:         scf.for %[[J:[a-z0-9]+]] = %c0 to %{{.*}} step %c64
// CHECK:           %[[ANY:.*]] = arith.cmpi
// CHECK:           scf.if
// CHECK:             scf.if
// CHECK:               posenc.online_attention
// CHECK-NOT:           where
// CHECK:             } else {
// CHECK:               posenc.online_attention
// CHECK:                 where(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
// CHECK:           } else {
// CHECK-NEXT:        scf.yield
func.func @blocks(%q: tensor<?x?x8x64xf16>) -> tensor<?x?x8x64xf16> {
  %c256 = arith.constant 256 : index
  %r = posenc.attention ins(%q, %q, %q : tensor<?x?x8x64xf16>, tensor<?x?x8x64xf16>, tensor<?x?x8x64xf16>) outs(%q : tensor<?x?x8x64xf16>)
    where(%b, %h, %i, %j) {
      %x = arith.divui %i, %c256 : index
      %y = arith.divui %j, %c256 : index
      %z = arith.cmpi eq, %x, %y : index
      posenc.yield %z : i1
    }
  return %r : tensor<?x?x8x64xf16>
}

// -----

// Regions see the positions of existing queries only.
// CHECK-LABEL: func.func @region(
// CHECK:         %[[LAST:.*]] = arith.subi %{{.*}}, %c1
// CHECK:         posenc.online_attention
// CHECK:           score(%{{.*}}, %{{.*}}, %{{.*}}, %[[I:.*]], %[[J:.*]]) {
// CHECK-NEXT:        %[[EXISTING:.*]] = arith.minsi %[[I]], %{{.*}}
// CHECK-NEXT:        tensor.extract %{{.*}}[%[[EXISTING]], %[[J]]]
func.func @region(%q: tensor<?x?x8x64xf16>, %t: tensor<?x?xf32>) -> tensor<?x?x8x64xf16> {
  %r = posenc.attention ins(%q, %q, %q : tensor<?x?x8x64xf16>, tensor<?x?x8x64xf16>, tensor<?x?x8x64xf16>) outs(%q : tensor<?x?x8x64xf16>)
    score(%s, %b, %h, %i, %j) {
      %x = tensor.extract %t[%i, %j] : tensor<?x?xf32>
      %y = arith.addf %s, %x : f32
      posenc.yield %y : f32
    }
  return %r : tensor<?x?x8x64xf16>
}

// -----

// Positions of a ragged sequence are its own, and so are tiles: they begin at its
// first key. A task after the last query of a short sequence has no keys, also if
// the first tile is rounded down.
// CHECK-LABEL: func.func @ragged(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x8x64xf16>, %[[K:.*]]: tensor<?x2x64xf16>, %[[CQ:.*]]: tensor<?xi64>, %[[CK:.*]]: tensor<?xi64>
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[T:.*]]) in
// CHECK:           tensor.extract %[[CQ]]
// CHECK:           tensor.extract %[[CK]]
// CHECK:           %[[TASK:.*]] = affine.apply affine_map<(d0) -> (d0 * 128)>(%[[T]])
// CHECK:           %[[FIRST:.*]] = arith.minsi %[[TASK]], %{{.*}}
// CHECK:           %[[LEFT:.*]] = arith.addi %{{.*}}, %c-30
// CHECK:           %[[SEEN:.*]] = arith.maxsi %[[LEFT]], %c0
// CHECK:           %[[REST:.*]] = arith.remui %[[SEEN]], %c64
// CHECK:           %[[BEGIN:.*]] = arith.subi %[[SEEN]], %[[REST]]
// CHECK:           %[[MOST:.*]] = arith.muli
// CHECK:           %[[EMPTY:.*]] = arith.addi %[[BEGIN]], %[[MOST]]
// CHECK:           %[[END:.*]] = arith.minsi %{{.*}}, %[[EMPTY]]
// CHECK:           scf.for %[[J:[a-z0-9]+]] = %[[BEGIN]] to %[[END]] step %c64
// CHECK:             %[[ROW:.*]] = arith.addi %{{.*}}, %[[J]]
// CHECK:             tensor.extract_slice %[[K]][%[[ROW]],
// CHECK:             posenc.online_attention causal window_left = 30 {{.*}} at(%[[B]], %[[H]], %{{.*}}, %[[J]]) keys(%[[END]])
func.func @ragged(%q: tensor<?x8x64xf16>, %k: tensor<?x2x64xf16>, %cq: tensor<?xi64>, %ck: tensor<?xi64>) -> tensor<?x8x64xf16> {
  %r = posenc.attention causal window_left = 30 ins(%q, %k, %k : tensor<?x8x64xf16>, tensor<?x2x64xf16>, tensor<?x2x64xf16>)
    cu_seqlens(%cq, %ck : tensor<?xi64>, tensor<?xi64>) outs(%q : tensor<?x8x64xf16>)
  return %r : tensor<?x8x64xf16>
}

// -----

// A tile of keys is gathered from several pages; its size is not that of a page.
// CHECK-LABEL: func.func @paged(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x?x8x64xbf16>, %[[K:.*]]: tensor<?x2x16x64xbf16>, %[[TABLE:.*]]: tensor<?x?xi32>, %[[N:.*]]: tensor<?xi64>
// CHECK:           scf.for %[[J:[a-z0-9]+]] = %c0 to %[[END:.*]] step %c64
// CHECK:             affine.min affine_map<(d0, d1) -> (64, d0 - d1)>(%[[END]], %[[J]])
// CHECK:             linalg.generic
// CHECK:               %[[KEY:.*]] = arith.addi %[[J]], %{{.*}}
// CHECK:               %[[BLOCK:.*]] = arith.divui %[[KEY]], %c16
// CHECK:               tensor.extract %[[TABLE]][%{{.*}}, %[[BLOCK]]]
// CHECK:               %[[SLOT:.*]] = arith.remui %[[KEY]], %c16
// CHECK:               tensor.extract %[[K]][%{{.*}}, %{{.*}}, %[[SLOT]], %{{.*}}]
// CHECK:             posenc.online_attention causal
func.func @paged(%q: tensor<?x?x8x64xbf16>, %k: tensor<?x2x16x64xbf16>, %t: tensor<?x?xi32>, %n: tensor<?xi64>) -> tensor<?x?x8x64xbf16> {
  %r = posenc.attention causal key_layout = head_major ins(%q, %k, %k : tensor<?x?x8x64xbf16>, tensor<?x2x16x64xbf16>, tensor<?x2x16x64xbf16>)
    lengths(%n : tensor<?xi64>) block_table(%t : tensor<?x?xi32>) outs(%q : tensor<?x?x8x64xbf16>)
  return %r : tensor<?x?x8x64xbf16>
}

// -----

// Queries are rotated once, before the loop; raw keys in each tile. The masks of
// the tile are padded like it.
// CHECK-LABEL: func.func @raw_keys(
// CHECK:         posenc.rope half {{.*}} tensor<1x?x64xbf16>
// CHECK:         linalg.broadcast ins(%{{.*}} : tensor<1xf32>) outs(%{{.*}} : tensor<1x1x128xf32>)
// CHECK:         scf.for
// CHECK:           posenc.rope half {{.*}} tensor<?x64xbf16>
// CHECK:           posenc.online_attention {{.*}} mask(%{{.*}} : tensor<1x128x64xi1>)
// CHECK:         math.log
#rotation = #posenc.rotation<pairing = half, frequencies = #posenc.frequencies<dim = 64>>
func.func @raw_keys(%q: tensor<?x?x8x64xbf16>, %k: tensor<?x?x8x64xbf16>, %m: tensor<?x1x?x?xi1>, %s: tensor<8xf32>, %l: tensor<?x?x8xf32>) -> (tensor<?x?x8x64xbf16>, tensor<?x?x8xf32>) {
  %r:2 = posenc.attention query_rotation = #rotation key_rotation = #rotation ins(%q, %k, %k : tensor<?x?x8x64xbf16>, tensor<?x?x8x64xbf16>, tensor<?x?x8x64xbf16>)
    mask(%m : tensor<?x1x?x?xi1>) sinks(%s : tensor<8xf32>) outs(%q, %l : tensor<?x?x8x64xbf16>, tensor<?x?x8xf32>)
  return %r#0, %r#1 : tensor<?x?x8x64xbf16>, tensor<?x?x8xf32>
}
