//===- attention-amx-steps.mlir - pipelined attention with AMX ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{options} = vector-bytes=64 bf16-dots amx-bf16
// RUN: posenc-opt %s --convert-posenc-attention-to-vector='%{options}' --canonicalize --cse | FileCheck %s
// RUN: posenc-opt %s --pass-pipeline='builtin.module(convert-posenc-attention-to-vector{%{options}},func.func(canonicalize,cse,posenc-interleave-tiles))' \
// RUN:   | FileCheck %s --check-prefix=ORDER
// RUN: posenc-opt %s --convert-posenc-attention-to-vector='%{options}' --remarks-filter=posenc -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// Blocks of four steps for 128 columns. All buffers consist of tiles of 16 x 16.
// CHECK-LABEL: func.func @causal
// CHECK-DAG: %[[LARGE:.*]] = arith.constant dense<1073741824> : vector<16xi32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<[[TILES:[0-9]+]]x4x2x2x16x16xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<[[TILES]]x4x2x16x16xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<4x4x2x16x16xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<1x4x4x2x16x16xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<4x2x16x16xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<2x2x16x16xf32>

// A step: the scores of the next one, the weighted values of the block before,
// and the weights of 32 rows, masked or not.
// CHECK: scf.if %{{.*}} -> (vector<16xi32>) {
// CHECK-NEXT: llvm.fence syncscope("singlethread") acquire
// CHECK-NEXT: %[[D:.*]]:4 = memref.distinct_objects
// CHECK-COUNT-4: amx.tile_zero
// CHECK-COUNT-16: amx.tile_mulf
// CHECK-COUNT-4: amx.tile_store %[[D]]#1
// CHECK-COUNT-4: amx.tile_load {{.*}} into !amx.tile<16x16xf32>
// CHECK: amx.tile_load %[[D]]#3
// CHECK-COUNT-16: amx.tile_mulf
// CHECK-COUNT-4: amx.tile_store
// CHECK: arith.cmpi sgt
// CHECK: arith.select
// CHECK: } else {
// CHECK-NEXT: llvm.fence syncscope("singlethread") release
// CHECK-COUNT-32: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK-NOT: arith.cmpi
// CHECK: vector.load %[[D2:.*]]#0[
// CHECK-COUNT-2: mask.reduce.ps.512
// CHECK-NOT: mask.reduce
// CHECK: cvtne2ps2bf16.512
// CHECK: vector.store %{{.*}}, %[[D2]]#2[
// CHECK-COUNT-62: mask.reduce.ps.512
// CHECK-NOT: mask.reduce
// CHECK: scf.yield

// One bit of the sums tells whether an offset must be raised.
// CHECK: arith.andi %{{.*}}, %[[LARGE]]
// CHECK-NEXT: arith.cmpi ne
// CHECK-NEXT: vector.reduction <or>
// CHECK-NEXT: scf.if

// A row of weights follows each product.
// ORDER-LABEL: func.func @causal
// ORDER: llvm.fence syncscope("singlethread") release
// ORDER-NOT: memref.distinct_objects
// ORDER: amx.tile_mulf
// ORDER-COUNT-2: mask.scalef.ps.512
// ORDER-NOT: mask.scalef
// ORDER: amx.tile_mulf
// ORDER-COUNT-2: mask.scalef.ps.512
// ORDER-NOT: mask.scalef
// ORDER: amx.tile_mulf

// REMARK: prefill kernel: 352 queries of 1 heads and 128 keys per tile, pipelined AMX
func.func @causal(%q: memref<2x64x8x128xbf16>, %k: memref<2x?x2x128xbf16>, %v: memref<2x?x2x128xbf16>, %o: memref<2x64x8x128xbf16>) {
  posenc.attention causal ins(%q, %k, %v : memref<2x64x8x128xbf16>, memref<2x?x2x128xbf16>, memref<2x?x2x128xbf16>) outs(%o : memref<2x64x8x128xbf16>)
  return
}

// Regions are computed for 16 keys of a row. Rows that see all keys evaluate no
// mask_mod.
// CHECK-LABEL: func.func @regions
// CHECK: amx.tile_mulf
// CHECK: math.tanh %{{.*}} : vector<16xf32>
// CHECK: arith.cmpi sle, %{{.*}} : vector<16xindex>
// CHECK: llvm.fence syncscope("singlethread") release
// CHECK: amx.tile_mulf
// CHECK-NOT: vector<16xindex>
// CHECK: vector.reduction <or>
// REMARK: pipelined AMX
func.func @regions(%q: memref<2x64x8x64xbf16>, %k: memref<2x?x2x64xbf16>, %v: memref<2x?x2x64xbf16>, %o: memref<2x64x8x64xbf16>) {
  posenc.attention ins(%q, %k, %v : memref<2x64x8x64xbf16>, memref<2x?x2x64xbf16>, memref<2x?x2x64xbf16>) outs(%o : memref<2x64x8x64xbf16>)
  score(%s, %b, %h, %i, %j) {
    %t = math.tanh %s : f32
    posenc.yield %t : f32
  } where(%b, %h, %i, %j) {
    %keep = arith.cmpi sle, %j, %i : index
    posenc.yield %keep : i1
  }
  return
}

// Elements of a mask operand are loaded in a loop over the rows of a step before
// it, as vectors where all its keys exist.
// CHECK-LABEL: func.func @mask
// CHECK: scf.if
// CHECK: scf.for
// CHECK-COUNT-32: memref.load %{{.*}} : memref<1x1x?x?xf32>
// CHECK-NOT: memref<1x1x?x?xf32>
// CHECK: } else {
// CHECK: scf.for
// CHECK-COUNT-2: vector.load %{{.*}} : memref<1x1x?x?xf32>, vector<16xf32>
// CHECK-NOT: memref<1x1x?x?xf32>
// CHECK: memref.distinct_objects
// CHECK-NOT: arith.cmpi
// CHECK: mask.scalef.ps.512
// CHECK-NOT: arith.cmpi
// CHECK: arith.andi
// CHECK: vector.reduction <or>
// REMARK: pipelined AMX
func.func @mask(%q: memref<2x64x8x64xbf16>, %k: memref<2x?x2x64xbf16>, %v: memref<2x?x2x64xbf16>, %m: memref<1x1x?x?xf32>, %o: memref<2x64x8x64xbf16>) {
  posenc.attention ins(%q, %k, %v : memref<2x64x8x64xbf16>, memref<2x?x2x64xbf16>, memref<2x?x2x64xbf16>) mask(%m : memref<1x1x?x?xf32>) outs(%o : memref<2x64x8x64xbf16>)
  return
}

// Values that a score_mod loads by the relative position are computed once for the
// 63 relative positions of a step, before its rows.
// CHECK-LABEL: func.func @bias
// CHECK-DAG: %[[VALUES:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1x64xf32>
// CHECK: vector.store %{{.*}}, %[[VALUES]]
// CHECK: vector.load %[[VALUES]]
// CHECK: memref.distinct_objects
// REMARK: pipelined AMX
func.func @bias(%q: memref<2x64x8x64xbf16>, %k: memref<2x?x2x64xbf16>, %v: memref<2x?x2x64xbf16>, %t: memref<8x?xf32>, %o: memref<2x64x8x64xbf16>) {
  posenc.attention ins(%q, %k, %v : memref<2x64x8x64xbf16>, memref<2x?x2x64xbf16>, memref<2x?x2x64xbf16>) outs(%o : memref<2x64x8x64xbf16>)
  score(%s, %b, %h, %i, %j) {
    %c0 = arith.constant 0 : index
    %c99 = arith.constant 99 : index
    %d = arith.subi %j, %i : index
    %low = arith.maxsi %d, %c0 : index
    %held = arith.minsi %low, %c99 : index
    %bias = memref.load %t[%h, %held] : memref<8x?xf32>
    %y = arith.addf %s, %bias : f32
    posenc.yield %y : f32
  }
  return
}

// A few queries: the heads of a key head are rows of the same tiles of 16 rows, for 1
// to 16 queries with the same code. The products of scores and of weighted values take
// turns. A step prefetches keys. Two key heads have four KV splits, in chunks of 256
// keys.
// CHECK-LABEL: func.func @few
// CHECK: scf.if
// CHECK: arith.divui %{{.*}}, %c256
// CHECK: arith.remui %{{.*}}, %c4
// CHECK: memref.prefetch %{{.*}}locality<2>
// CHECK: llvm.fence syncscope("singlethread") release
// CHECK: amx.tile_zero
// CHECK-COUNT-2: amx.tile_mulf
// CHECK: amx.tile_load %{{.*}} into !amx.tile<16x16xf32>
// CHECK-COUNT-14: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK-COUNT-32: mask.scalef.ps.512
// CHECK-NOT: mask.scalef
// CHECK: vector.reduction <or>
// REMARK: decode kernel for 1 to 16 queries: 4 query heads of 1 key heads per task, 64 keys per tile, up to 4 KV splits, pipelined AMX
func.func @few(%q: memref<2x?x8x128xbf16>, %k: memref<2x?x2x128xbf16>, %v: memref<2x?x2x128xbf16>, %o: memref<2x?x8x128xbf16>) {
  posenc.attention causal ins(%q, %k, %v : memref<2x?x8x128xbf16>, memref<2x?x2x128xbf16>, memref<2x?x2x128xbf16>) outs(%o : memref<2x?x8x128xbf16>)
  return
}

// Where two heads share a key head, a single query has the other decode kernel.
// REMARK: decode kernel for 1 to 1 queries: 4 query heads of 2 key heads per task, {{[0-9]+}} keys per tile, up to 8 KV splits{{$|"}}
// REMARK: decode kernel for 2 to 16 queries: 2 query heads of 1 key heads per task, 128 keys per tile, up to 4 KV splits, pipelined AMX
func.func @two_heads(%q: memref<2x?x4x64xbf16>, %k: memref<2x?x2x64xbf16>, %v: memref<2x?x2x64xbf16>, %o: memref<2x?x4x64xbf16>) {
  posenc.attention causal ins(%q, %k, %v : memref<2x?x4x64xbf16>, memref<2x?x2x64xbf16>, memref<2x?x2x64xbf16>) outs(%o : memref<2x?x4x64xbf16>)
  return
}
