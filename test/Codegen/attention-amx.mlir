//===- attention-amx.mlir - attention with AMX ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Which attention uses AMX. attention-amx-steps.mlir has its code.

// DEFINE: %{options} = vector-bytes=64 bf16-dots amx-bf16
// DEFINE: %{convert} = posenc-opt %s --convert-posenc-attention-to-vector='%{options}' --canonicalize --cse --split-input-file
// RUN: %{convert} | FileCheck %s
// REDEFINE: %{options} = vector-bytes=64 bf16-dots
// RUN: %{convert} | FileCheck %s --check-prefix=OFF
// REDEFINE: %{options} = vector-bytes=64 amx-bf16
// RUN: %{convert} | FileCheck %s --check-prefix=OFF
// REDEFINE: %{options} = vector-bytes=32 bf16-dots amx-bf16
// RUN: %{convert} | FileCheck %s --check-prefix=OFF
// OFF-NOT: amx

// 22 words of a row take two tiles, of which the second ends with zeros. All
// tiles have one shape.
// CHECK-LABEL: func.func @rest
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<{{[0-9]+}}x2x2x16x16xf32>
// CHECK: amx.tile_load {{.*}} into !amx.tile<16x32xbf16>
func.func @rest(%q: memref<2x?x4x44xbf16>, %k: memref<2x?x2x44xbf16>, %v: memref<2x?x2x48xbf16>, %o: memref<2x?x4x48xbf16>) {
  posenc.attention ins(%q, %k, %v : memref<2x?x4x44xbf16>, memref<2x?x2x44xbf16>, memref<2x?x2x48xbf16>) outs(%o : memref<2x?x4x48xbf16>)
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

// The sums of log-sum-exp outputs are those of weights that are not rounded.
// CHECK-LABEL: func.func @log_sums
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<{{[0-9]+}}x32x2x16xf32>
// CHECK: amx.tile_mulf
func.func @log_sums(%q: memref<2x?x4x64xbf16>, %k: memref<2x?x2x64xbf16>, %v: memref<2x?x2x64xbf16>, %o: memref<2x?x4x64xbf16>, %l: memref<2x?x4xf32>) {
  posenc.attention ins(%q, %k, %v : memref<2x?x4x64xbf16>, memref<2x?x2x64xbf16>, memref<2x?x2x64xbf16>) outs(%o, %l : memref<2x?x4x64xbf16>, memref<2x?x4xf32>)
  return
}

// -----

// Rotated rows rounded to bf16 would change a log-sum-exp. Scores are those of rounded
// rows and remainders: three times as many products.
// CHECK-LABEL: func.func @rotated_log_sums
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<{{[0-9]+}}x6x2x16x16xf32>
// CHECK: amx.tile_zero
// CHECK-COUNT-12: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK: amx.tile_store
// CHECK-NOT: posenc.tile_product
#r = #posenc.rotation<pairing = half, frequencies = <dim = 64, base = 10000.0>>
func.func @rotated_log_sums(%q: memref<2x?x4x64xbf16>, %k: memref<2x?x2x64xbf16>, %v: memref<2x?x2x64xbf16>, %o: memref<2x?x4x64xbf16>, %l: memref<2x?x4xf32>) {
  posenc.attention query_rotation = #r key_rotation = #r ins(%q, %k, %v : memref<2x?x4x64xbf16>, memref<2x?x2x64xbf16>, memref<2x?x2x64xbf16>) outs(%o, %l : memref<2x?x4x64xbf16>, memref<2x?x4xf32>)
  return
}
