//===- nest-attention.mlir - loops of attention for GPUs ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-nest-attention --canonicalize --cse --split-input-file | FileCheck %s
// RUN: posenc-opt %s --pass-pipeline='builtin.module(posenc-attach-gpu{warpgroups=true},posenc-nest-attention,canonicalize,cse)' --split-input-file | FileCheck %s --check-prefix=GROUPS

// Rows of a tile are queries of two heads that share keys; tiles start at key 0.
// CHECK-LABEL: func.func @causal(
// CHECK-NOT: posenc_runs_on
// CHECK: scf.forall (%{{.*}}, %[[HEAD:.*]], %{{.*}}) in (%{{.*}}, 2, %{{.*}})
// CHECK: linalg.transpose {{.*}} permutation = [1, 0, 2]
// CHECK: scf.for %[[KEY:.*]] = %c0 to %[[END:.*]] step %c64 iter_args({{.*}}) -> (tensor<1x2x64x64xf32>, tensor<1x2x64xf32>, tensor<1x2x64xf32>)
// CHECK: posenc.online_attention causal scale = 1.250000e-01 at({{.*}}, %[[KEY]]) keys(%[[END]])
// CHECK-SAME: tensor<2x64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>
// CHECK: arith.divf
// CHECK: tensor.parallel_insert_slice
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %arg3

// The kernel of warpgroups has tiles of its own, for one architecture and aligned rows.
// GROUPS: func.func private @posenc_runs_on(i64) -> i1
// GROUPS-LABEL: func.func @causal(
// GROUPS: %[[RUNS:.*]] = call @posenc_runs_on(%c90_i64)
// GROUPS: arith.andi %[[RUNS]],
// GROUPS: scf.if
// GROUPS: scf.for {{.*}} step %c128 iter_args({{.*}}) -> (tensor<1x2x96x64xf32>,
// GROUPS: {posenc.chip = #posenc.chip<"sm_90a">}
// GROUPS: } else {
// GROUPS: scf.for {{.*}} step %c64 iter_args({{.*}}) -> (tensor<1x2x64x64xf32>,
// GROUPS-NOT: posenc.chip
// GROUPS: return
func.func @causal(%q: memref<?x?x4x64xbf16>, %k: memref<?x?x2x64xbf16>, %v: memref<?x?x2x64xbf16>, %o: memref<?x?x4x64xbf16>) {
  posenc.attention causal
    ins(%q, %k, %v : memref<?x?x4x64xbf16>, memref<?x?x2x64xbf16>, memref<?x?x2x64xbf16>)
    outs(%o : memref<?x?x4x64xbf16>)
  return
}

// -----

// All keys are rotated beforehand, and queries once for all keys.
// CHECK-LABEL: func.func @rotated(
// CHECK: %[[KEYS:.*]] = memref.alloc(%{{.*}}, %{{.*}}) : memref<?x?x2x64xf16>
// CHECK: posenc.rope half {{.*}} outs(%[[KEYS]] :
// CHECK: posenc.sincos
// CHECK: scf.forall
// CHECK: posenc.rotate
// CHECK: scf.for
// CHECK-NOT: posenc.rotate
// CHECK: posenc.online_attention
func.func @rotated(%q: memref<?x?x2x64xf16>, %k: memref<?x?x2x64xf16>, %v: memref<?x?x2x64xf16>, %p: memref<?x?xi64>, %o: memref<?x?x2x64xf16>) {
  posenc.attention query_rotation = <pairing = half, frequencies = <dim = 64>> key_rotation = <pairing = half, frequencies = <dim = 64>>
    ins(%q, %k, %v : memref<?x?x2x64xf16>, memref<?x?x2x64xf16>, memref<?x?x2x64xf16>)
    query_positions(%p : memref<?x?xi64>)
    key_positions(%p : memref<?x?xi64>)
    outs(%o : memref<?x?x2x64xf16>)
  return
}

// -----

// Only some keys of a cache are read: they are rotated in their tile, which warpgroups
// cannot do.
// CHECK-LABEL: func.func @cache(
// CHECK-NOT: posenc.rope
// CHECK: posenc.sincos
// CHECK: scf.forall
// CHECK: posenc.rotate
// CHECK: scf.for
// CHECK: posenc.rotate
// CHECK: posenc.online_attention
// GROUPS-LABEL: func.func @cache(
// GROUPS-NOT: posenc.chip
// GROUPS: return
func.func @cache(%q: memref<?x?x2x64xf16>, %k: memref<?x?x2x64xf16>, %v: memref<?x?x2x64xf16>, %n: memref<?xi64>, %o: memref<?x?x2x64xf16>) {
  posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 64>> key_rotation = <pairing = half, frequencies = <dim = 64>>
    ins(%q, %k, %v : memref<?x?x2x64xf16>, memref<?x?x2x64xf16>, memref<?x?x2x64xf16>)
    lengths(%n : memref<?xi64>)
    outs(%o : memref<?x?x2x64xf16>)
  return
}

// -----

// A tile whose pairs are all masked is skipped; one without a masked pair has no region.
// CHECK-LABEL: func.func @region(
// CHECK: scf.for
// CHECK: scf.if
// CHECK: scf.if
// CHECK: posenc.online_attention
// CHECK-NOT: where(
// CHECK: } else {
// CHECK: posenc.online_attention
// CHECK-NEXT: where(
func.func @region(%q: memref<?x?x2x64xf16>, %k: memref<?x?x2x64xf16>, %v: memref<?x?x2x64xf16>, %o: memref<?x?x2x64xf16>) {
  posenc.attention
    ins(%q, %k, %v : memref<?x?x2x64xf16>, memref<?x?x2x64xf16>, memref<?x?x2x64xf16>)
    outs(%o : memref<?x?x2x64xf16>)
    where(%b, %h, %i, %j) {
      %y = arith.cmpi sle, %j, %i : index
      posenc.yield %y : i1
    }
  return
}

// -----

// CHECK-LABEL: func.func @head_60(
// CHECK-NEXT: posenc.attention
// GROUPS-LABEL: func.func @head_60(
// GROUPS-NEXT: posenc.attention
func.func @head_60(%q: memref<?x?x2x60xf16>, %k: memref<?x?x2x60xf16>, %v: memref<?x?x2x60xf16>, %o: memref<?x?x2x60xf16>) {
  posenc.attention
    ins(%q, %k, %v : memref<?x?x2x60xf16>, memref<?x?x2x60xf16>, memref<?x?x2x60xf16>)
    outs(%o : memref<?x?x2x60xf16>)
  return
}

// -----

// CHECK-LABEL: func.func @dynamic_heads(
// CHECK-NEXT: posenc.attention
// GROUPS-LABEL: func.func @dynamic_heads(
// GROUPS-NEXT: posenc.attention
func.func @dynamic_heads(%q: memref<?x?x?x64xf16>, %k: memref<?x?x?x64xf16>, %v: memref<?x?x?x64xf16>, %o: memref<?x?x?x64xf16>) {
  posenc.attention
    ins(%q, %k, %v : memref<?x?x?x64xf16>, memref<?x?x?x64xf16>, memref<?x?x?x64xf16>)
    outs(%o : memref<?x?x?x64xf16>)
  return
}

// -----

// Sequences of up to 4 queries, of which 4 heads fill a tile of rows, divide the keys into
// splits; memory for their results has at most 4 rows of each sequence, a result for each
// eighth split, and a limited number of rows of other splits. The kernel of the other
// sequences leaves these out.
// CHECK-LABEL: func.func @ragged(
// CHECK-DAG: %[[STARTS:.*]] = memref.dim %arg3, %c0
// CHECK-DAG: %[[LIMIT:.*]] = arith.muli %[[STARTS]], %c4
// CHECK-DAG: %[[ROWS:.*]] = arith.minui %{{.*}}, %[[LIMIT]]
// CHECK-DAG: %[[ALL:.*]] = arith.muli %[[ROWS]], %c8
// CHECK-DAG: %[[OTHERS:.*]] = arith.minui %{{.*}}, %c172032
// CHECK-DAG: %[[STATES:.*]] = arith.ceildivui %[[SPLITS:.*]], %c8
// CHECK-DAG: %[[RESULTS:.*]] = arith.muli %[[STATES]], %[[ALL]]
// CHECK-DAG: %[[SUM:.*]] = arith.addi %[[RESULTS]], %[[OTHERS]]
// CHECK-DAG: %[[BYTES:.*]] = arith.muli %[[SUM]], %c256
// CHECK: %[[MEMORY:.*]] = memref.alloc(%[[BYTES]]) : memref<?xi8>
// CHECK: memref.view %[[MEMORY]][%c0][%[[STATES]], %[[ROWS]]] : memref<?xi8> to memref<?x?x8x64xf32>
// CHECK: %[[PAIRS:.*]] = arith.muli %[[SPLITS]], %c2
// CHECK: memref.alloc(%[[PAIRS]], %[[ROWS]]) : memref<?x?x8xf32>
// CHECK: scf.if
// CHECK: scf.forall {{.*}} in (%[[STARTS]], 2)
// CHECK: } else {
// CHECK: scf.forall (%[[SEQUENCE:.*]], %{{.*}}, %[[SPLIT:.*]]) in (%[[STARTS]], 2, %{{.*}})
// CHECK: %[[IS_OUT:.*]] = arith.cmpi sgt, %{{.*}}, %c4
// CHECK: arith.select %[[IS_OUT]], %c0, %{{.*}}
// CHECK: %[[FIRST:.*]] = arith.muli %[[SEQUENCE]], %c4
// CHECK: %[[ROW:.*]] = arith.minsi %{{.*}}, %[[FIRST]]
// CHECK: %[[AT:.*]] = arith.addi %[[ROW]],
// CHECK: tensor.parallel_insert_slice %{{.*}}[%[[SPLIT]], %[[AT]],
// CHECK: gpu.launch_func @{{.*}}merge_splits
// CHECK: scf.forall (%{{.*}}, %[[TILE:.*]]) in (2, %{{.*}})
// CHECK: scf.while
// CHECK: arith.cmpi sle, %{{.*}}, %[[TILE]]
// CHECK: arith.cmpi slt, %{{.*}}, %c5
func.func @ragged(%q: memref<?x8x64xf16>, %k: memref<?x2x?x64xf16>, %v: memref<?x2x?x64xf16>, %c: memref<?xi64>, %n: memref<?xi64>, %o: memref<?x8x64xf16>) {
  posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : memref<?x8x64xf16>, memref<?x2x?x64xf16>, memref<?x2x?x64xf16>)
    lengths(%n : memref<?xi64>)
    cu_seqlens(%c : memref<?xi64>)
    outs(%o : memref<?x8x64xf16>)
  return
}

// -----

// The kernel of bulk copies has larger tiles of keys than that of sm_80.
// CHECK-LABEL: func.func @few(
// CHECK-NOT: posenc.chip
// CHECK: scf.for {{.*}} step %c16 iter_args({{.*}}) -> (tensor<1x4x1x128xf32>,
// GROUPS-LABEL: func.func @few(
// GROUPS: %[[RUNS:.*]] = call @posenc_runs_on(%c90_i64)
// GROUPS: arith.andi %[[RUNS]],
// GROUPS-COUNT-2: memref.alloc(
// GROUPS: scf.if
// GROUPS: scf.if %[[CAN:.*]] {
// GROUPS: scf.for {{.*}} step %c32 iter_args({{.*}}) -> (tensor<1x4x1x128xf32>,
// GROUPS: {posenc.chip = #posenc.chip<"sm_90a">}
// GROUPS: } else {
// GROUPS: scf.for {{.*}} step %c16 iter_args(
// GROUPS: scf.if %[[CAN]] {
// GROUPS: scf.for {{.*}} step %c32 iter_args(
// GROUPS: {posenc.chip = #posenc.chip<"sm_90a">}
// GROUPS: } else {
// GROUPS: scf.for {{.*}} step %c16 iter_args(
// GROUPS-NOT: scf.if
// GROUPS: gpu.launch_func @{{.*}}merge_splits
func.func @few(%q: memref<?x1x8x128xbf16>, %k: memref<?x2x?x128xbf16>, %v: memref<?x2x?x128xbf16>, %n: memref<?xi64>, %o: memref<?x1x8x128xbf16>) {
  posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : memref<?x1x8x128xbf16>, memref<?x2x?x128xbf16>, memref<?x2x?x128xbf16>)
    lengths(%n : memref<?xi64>)
    outs(%o : memref<?x1x8x128xbf16>)
  return
}

// -----

// A tile of 32 keys has two pages.
// GROUPS-LABEL: func.func @few_in_pages(
// GROUPS: scf.for {{.*}} step %c32 iter_args(
// GROUPS: {posenc.chip = #posenc.chip<"sm_90a">}
// GROUPS: scf.for {{.*}} step %c16 iter_args(
// GROUPS: return
func.func @few_in_pages(%q: memref<?x1x8x128xbf16>, %k: memref<?x2x16x128xbf16>, %t: memref<?x?xi32>, %n: memref<?xi64>, %o: memref<?x1x8x128xbf16>) {
  posenc.attention causal key_layout = head_major
    ins(%q, %k, %k : memref<?x1x8x128xbf16>, memref<?x2x16x128xbf16>, memref<?x2x16x128xbf16>)
    lengths(%n : memref<?xi64>)
    block_table(%t : memref<?x?xi32>)
    outs(%o : memref<?x1x8x128xbf16>)
  return
}

// -----

// Many queries: a tile of 80 keys has boxes of 8 rows if pages have 24 tokens. The host
// knows pages of a dynamic size.
// GROUPS-LABEL: func.func @many_in_pages(
// GROUPS: scf.for {{.*}} step %c80 iter_args(
// GROUPS: {posenc.chip = #posenc.chip<"sm_90a">}
// GROUPS: %[[SIZE:.*]] = memref.dim %{{.*}}, %c1 : memref<?x?x2x128xbf16>
// GROUPS: %[[REST:.*]] = arith.remui %[[SIZE]], %c8
// GROUPS: %[[BOXES:.*]] = arith.cmpi eq, %[[REST]], %c0
// GROUPS: %[[FITS:.*]] = arith.cmpi ule, %[[SIZE]], %c2147483647
// GROUPS: %[[BOTH:.*]] = arith.andi %[[BOXES]], %[[FITS]]
// GROUPS: %[[CAN:.*]] = arith.andi %{{.*}}, %[[BOTH]]
// GROUPS: scf.if %[[CAN]] {
// GROUPS: scf.for {{.*}} step %c80 iter_args(
// GROUPS: {posenc.chip = #posenc.chip<"sm_90a">}
// GROUPS: return
func.func @many_in_pages(%q: memref<?x?x8x128xbf16>, %k: memref<?x24x2x128xbf16>, %p: memref<?x?x2x128xbf16>, %t: memref<?x?xi32>, %n: memref<?xi64>, %o: memref<?x?x8x128xbf16>) {
  posenc.attention causal
    ins(%q, %k, %k : memref<?x?x8x128xbf16>, memref<?x24x2x128xbf16>, memref<?x24x2x128xbf16>)
    lengths(%n : memref<?xi64>)
    block_table(%t : memref<?x?xi32>)
    outs(%o : memref<?x?x8x128xbf16>)
  posenc.attention causal
    ins(%q, %p, %p : memref<?x?x8x128xbf16>, memref<?x?x2x128xbf16>, memref<?x?x2x128xbf16>)
    lengths(%n : memref<?xi64>)
    block_table(%t : memref<?x?xi32>)
    outs(%o : memref<?x?x8x128xbf16>)
  return
}

// -----

// The page size of the values is unknown.
// GROUPS-LABEL: func.func @unlike_pages(
// GROUPS-NOT: posenc_runs_on
// GROUPS: return
func.func @unlike_pages(%q: memref<?x?x8x128xbf16>, %k: memref<?x24x2x128xbf16>, %v: memref<?x?x2x128xbf16>, %t: memref<?x?xi32>, %n: memref<?xi64>, %o: memref<?x?x8x128xbf16>) {
  posenc.attention causal
    ins(%q, %k, %v : memref<?x?x8x128xbf16>, memref<?x24x2x128xbf16>, memref<?x?x2x128xbf16>)
    lengths(%n : memref<?xi64>)
    block_table(%t : memref<?x?xi32>)
    outs(%o : memref<?x?x8x128xbf16>)
  return
}

// -----

// Bulk copies neither rotate nor convert, and boxes of 4 tokens would be smaller than the unit of
// the swizzle.
// GROUPS-LABEL: func.func @few_on_load(
// GROUPS-NOT: posenc_runs_on
// GROUPS: return
func.func @few_on_load(%q: memref<?x1x8x64xbf16>, %k: memref<?x2x?x64xbf16>, %v: memref<?x2x?x64xbf16>, %i: memref<?x2x?x64xi8>, %s: memref<?x2x?xf32>, %p: memref<?x2x12x64xbf16>, %t: memref<?x?xi32>, %n: memref<?xi64>, %o: memref<?x1x8x64xbf16>) {
  posenc.attention causal key_layout = head_major query_rotation = <pairing = half, frequencies = <dim = 64>> key_rotation = <pairing = half, frequencies = <dim = 64>>
    ins(%q, %k, %v : memref<?x1x8x64xbf16>, memref<?x2x?x64xbf16>, memref<?x2x?x64xbf16>)
    lengths(%n : memref<?xi64>)
    outs(%o : memref<?x1x8x64xbf16>)
  posenc.attention causal key_layout = head_major
    ins(%q, %i, %i : memref<?x1x8x64xbf16>, memref<?x2x?x64xi8>, memref<?x2x?x64xi8>)
    lengths(%n : memref<?xi64>)
    key_scales(%s : memref<?x2x?xf32>)
    value_scales(%s : memref<?x2x?xf32>)
    outs(%o : memref<?x1x8x64xbf16>)
  posenc.attention causal key_layout = head_major
    ins(%q, %p, %p : memref<?x1x8x64xbf16>, memref<?x2x12x64xbf16>, memref<?x2x12x64xbf16>)
    lengths(%n : memref<?xi64>)
    block_table(%t : memref<?x?xi32>)
    outs(%o : memref<?x1x8x64xbf16>)
  return
}

// -----

// Sequences of few queries have few keys here: no kernel divides them.
// CHECK-LABEL: func.func @ragged_prompts(
// CHECK: = scf.forall
// CHECK-NOT: = scf.forall
// CHECK: return
func.func @ragged_prompts(%q: memref<?x8x64xf16>, %k: memref<?x2x64xf16>, %v: memref<?x2x64xf16>, %c: memref<?xi64>, %o: memref<?x8x64xf16>) {
  posenc.attention causal
    ins(%q, %k, %v : memref<?x8x64xf16>, memref<?x2x64xf16>, memref<?x2x64xf16>)
    cu_seqlens(%c, %c : memref<?xi64>, memref<?xi64>)
    outs(%o : memref<?x8x64xf16>)
  return
}
