//===- attention-tiles.mlir - attention with AMX tiles --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{options} = vector-bytes=64 bf16-dots bf16-tiles
// DEFINE: %{convert} = posenc-opt %s --convert-posenc-attention-to-vector='%{options}' --canonicalize --cse --split-input-file
// RUN: %{convert} | FileCheck %s
// REDEFINE: %{options} = vector-bytes=64 bf16-dots
// RUN: %{convert} | FileCheck %s --check-prefix=OFF
// REDEFINE: %{options} = vector-bytes=64 bf16-tiles
// RUN: %{convert} | FileCheck %s --check-prefix=OFF
// REDEFINE: %{options} = vector-bytes=32 bf16-dots bf16-tiles
// RUN: %{convert} | FileCheck %s --check-prefix=OFF
// OFF-NOT: amx

// Steps of 12 rows do not divide the 32 keys of two tiles, so functions with tiles
// do not use them.
// REDEFINE: %{options} = vector-bytes=64 bf16-dots bf16-tiles attention-tile-rows=8
// RUN: %{convert} | sed '/@few_columns/,$d' > %t.8.mlir
// REDEFINE: %{options} = vector-bytes=64 bf16-dots bf16-tiles attention-tile-rows=12
// RUN: %{convert} | sed '/@few_columns/,$d' | diff %t.8.mlir -

// CHECK-LABEL: func.func @causal
// CHECK-DAG: %[[Q:.*]] = memref.alloca() {alignment = 64 : i64} : memref<{{[0-9]+}}x32x32xf32>
// CHECK-DAG: %[[K:.*]] = memref.alloca() {alignment = 64 : i64} : memref<128x48xf32>
// CHECK-DAG: %[[S:.*]] = memref.alloca() {alignment = 64 : i64} : memref<128x32xf32>
// CHECK-DAG: %[[ACC:.*]] = memref.alloca() {alignment = 64 : i64} : memref<{{[0-9]+}}x64x32xf32>

// Steps are not pipelined with a mask. The words of values are transposed, square
// by square, after absent keys of a
// tile have been filled with 0.
// CHECK: vector.load %{{.*}}, vector<16xf32>
// CHECK-COUNT-64: vector.shuffle {{.*}} : vector<16xf32>, vector<16xf32>

// Scores are products of 32 keys and 32 queries, over two steps of 32 channels.
// CHECK-COUNT-4: amx.tile_zero : !amx.tile<16x16xf32>
// CHECK-COUNT-2: amx.tile_load %[[Q]]{{.*}} into !amx.tile<16x32xbf16>
// CHECK: %[[A:.*]] = amx.tile_load %[[K]]{{.*}} into !amx.tile<16x32xbf16>
// CHECK-COUNT-2: amx.tile_mulf %[[A]],
// CHECK: amx.tile_load %[[K]]
// CHECK-COUNT-2: amx.tile_mulf
// CHECK-COUNT-4: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK-COUNT-4: amx.tile_store %[[S]]

// The running max stays unless a score exceeds it by more than 8, and
// accumulators are multiplied unless all factors are 1.
// CHECK: arith.addf %{{.*}}, %cst{{.*}} : vector<16xf32>
// CHECK-NEXT: arith.cmpf ogt
// CHECK-NEXT: arith.select
// CHECK: arith.cmpf une
// CHECK: arith.cmpf une
// CHECK-NEXT: arith.ori
// CHECK-NEXT: vector.reduction <or>
// CHECK-NEXT: scf.if
// CHECK: arith.mulf
// CHECK: vector.store %{{.*}}, %[[ACC]]

// A case for each number of steps of 32 keys adds to the accumulators.
// CHECK: scf.index_switch
// CHECK: case 1 {
// CHECK-COUNT-4: amx.tile_load %[[ACC]]{{.*}} into !amx.tile<16x16xf32>
// CHECK-COUNT-2: amx.tile_load %[[S]]
// CHECK-COUNT-4: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK-COUNT-4: amx.tile_store %[[ACC]]
// CHECK: case 4 {
// CHECK-COUNT-16: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK: default
func.func @causal(%q: memref<2x?x4x64xbf16>, %k: memref<2x?x2x64xbf16>, %v: memref<2x?x2x64xbf16>, %m: memref<1x1x?x?xi1>, %o: memref<2x?x4x64xbf16>) {
  posenc.attention causal ins(%q, %k, %v : memref<2x?x4x64xbf16>, memref<2x?x2x64xbf16>, memref<2x?x2x64xbf16>) mask(%m : memref<1x1x?x?xi1>) outs(%o : memref<2x?x4x64xbf16>)
  return
}

// -----

// 22 words of a row take two tiles, of which the second ends with zeros. All
// tiles have one shape.
// CHECK-LABEL: func.func @rest
// CHECK-DAG: %[[Q:.*]] = memref.alloca() {alignment = 64 : i64} : memref<{{[0-9]+}}x32x32xf32>
// CHECK-COUNT-10: vector.store %cst{{.*}}, %[[Q]]
// CHECK-COUNT-8: amx.tile_load {{.*}} into !amx.tile<16x32xbf16>
// CHECK-NOT: amx.tile_load
// CHECK: amx.tile_store
func.func @rest(%q: memref<2x?x4x44xbf16>, %k: memref<2x?x2x44xbf16>, %v: memref<2x?x2x48xbf16>, %m: memref<1x1x?x?xi1>, %o: memref<2x?x4x48xbf16>) {
  posenc.attention ins(%q, %k, %v : memref<2x?x4x44xbf16>, memref<2x?x2x44xbf16>, memref<2x?x2x48xbf16>) mask(%m : memref<1x1x?x?xi1>) outs(%o : memref<2x?x4x48xbf16>)
  return
}

// -----

// CHECK-LABEL: func.func @keys_96
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<96x32xf32>
func.func @keys_96(%q: memref<2x?x4x96xbf16>, %k: memref<2x?x2x96xbf16>, %v: memref<2x?x2x96xbf16>, %m: memref<1x1x?x?xi1>, %o: memref<2x?x4x96xbf16>) {
  posenc.attention causal window_left = 99 ins(%q, %k, %v : memref<2x?x4x96xbf16>, memref<2x?x2x96xbf16>, memref<2x?x2x96xbf16>) mask(%m : memref<1x1x?x?xi1>) outs(%o : memref<2x?x4x96xbf16>)
  return
}

// -----

// Values must fill rows of tiles.
// CHECK-LABEL: func.func @few_columns
// CHECK-NOT: amx
// CHECK: posenc.tile_product bf16_pairs
func.func @few_columns(%q: memref<2x?x4x64xbf16>, %k: memref<2x?x2x64xbf16>, %v: memref<2x?x2x40xbf16>, %o: memref<2x?x4x40xbf16>) {
  posenc.attention ins(%q, %k, %v : memref<2x?x4x64xbf16>, memref<2x?x2x64xbf16>, memref<2x?x2x40xbf16>) outs(%o : memref<2x?x4x40xbf16>)
  return
}

// -----

// CHECK-LABEL: func.func @log_sums
// CHECK-NOT: amx
func.func @log_sums(%q: memref<2x?x4x64xbf16>, %k: memref<2x?x2x64xbf16>, %v: memref<2x?x2x64xbf16>, %o: memref<2x?x4x64xbf16>, %l: memref<2x?x4xf32>) {
  posenc.attention ins(%q, %k, %v : memref<2x?x4x64xbf16>, memref<2x?x2x64xbf16>, memref<2x?x2x64xbf16>) outs(%o, %l : memref<2x?x4x64xbf16>, memref<2x?x4xf32>)
  return
}
