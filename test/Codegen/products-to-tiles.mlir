//===- products-to-tiles.mlir - register tiles of products to AMX ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --pass-pipeline='builtin.module(func.func(posenc-products-to-tiles))' --split-input-file | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Four tiles of sums are loaded once, and stored after all products.
// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[A:.*]]: memref<32x32xi32>, %[[B:.*]]: memref<32x32xi32>, %[[C:.*]]: memref<32x32xf32, strided<[?, 1]>>)
// CHECK-COUNT-4: amx.tile_load %[[C]]{{.*}} into !amx.tile<16x16xf32>
// CHECK-COUNT-2: amx.tile_load %[[B]]{{.*}} into !amx.tile<16x32xbf16>
// CHECK: amx.tile_load %[[A]]
// CHECK-COUNT-2: amx.tile_mulf
// CHECK: amx.tile_load %[[A]]
// CHECK-COUNT-2: amx.tile_mulf
// CHECK-COUNT-2: amx.tile_load %[[B]]
// CHECK-COUNT-4: amx.tile_mulf
// CHECK-COUNT-4: amx.tile_store %[[C]]
// CHECK-NOT: amx.tile_
// CHECK-NOT: linalg
func.func @product(%a: memref<32x32xi32>, %b: memref<32x32xi32>, %c: memref<32x32xf32, strided<[?, 1]>>) {
  %c16 = arith.constant 16 : i32
  %upper = arith.constant -65536 : i32
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<32x32xi32>, memref<32x32xi32>) outs(%c : memref<32x32xf32, strided<[?, 1]>>) {
  ^bb0(%x: i32, %y: i32, %z: f32):
    %0 = arith.shli %x, %c16 : i32
    %1 = arith.bitcast %0 : i32 to f32
    %2 = arith.andi %x, %upper : i32
    %3 = arith.bitcast %2 : i32 to f32
    %4 = arith.shli %y, %c16 : i32
    %5 = arith.bitcast %4 : i32 to f32
    %6 = arith.andi %y, %upper : i32
    %7 = arith.bitcast %6 : i32 to f32
    %8 = arith.mulf %1, %5 : f32
    %9 = arith.addf %z, %8 : f32
    %10 = arith.mulf %3, %7 : f32
    %11 = arith.addf %9, %10 : f32
    linalg.yield %11 : f32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// A dynamic number of words selects one of eight codes.
// CHECK-LABEL: func.func @dynamic
// CHECK: %[[WORDS:.*]] = memref.dim %{{.*}}, %c1
// CHECK: %[[TILES:.*]] = arith.divui %[[WORDS]], %c16
// CHECK: scf.index_switch %[[TILES]]
// CHECK: case 1
// CHECK-COUNT-4: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK: case 2
// CHECK-COUNT-8: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK: case 3
// CHECK: case 8
// CHECK-COUNT-32: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK: default {
// CHECK-NEXT: }
func.func @dynamic(%a: memref<32x?xi32, strided<[128, 1]>>, %b: memref<?x32xi32>, %c: memref<32x32xf32>) {
  %c16 = arith.constant 16 : i32
  %upper = arith.constant -65536 : i32
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<32x?xi32, strided<[128, 1]>>, memref<?x32xi32>) outs(%c : memref<32x32xf32>) {
  ^bb0(%x: i32, %y: i32, %z: f32):
    %0 = arith.shli %x, %c16 : i32
    %1 = arith.bitcast %0 : i32 to f32
    %2 = arith.andi %x, %upper : i32
    %3 = arith.bitcast %2 : i32 to f32
    %4 = arith.shli %y, %c16 : i32
    %5 = arith.bitcast %4 : i32 to f32
    %6 = arith.andi %y, %upper : i32
    %7 = arith.bitcast %6 : i32 to f32
    %8 = arith.mulf %1, %5 : f32
    %9 = arith.addf %z, %8 : f32
    %10 = arith.mulf %3, %7 : f32
    %11 = arith.addf %9, %10 : f32
    linalg.yield %11 : f32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Not changed: other halves of a word, sizes that are not those of tiles, more words
// than there is code for, and columns that are not contiguous.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-5: linalg.generic
// CHECK-NOT: amx.tile_
func.func @others(%a: memref<32x16xi32>, %b: memref<16x32xi32>, %c: memref<32x32xf32>, %narrow: memref<16x20xi32>, %sums: memref<32x20xf32>,
                  %deep: memref<32x256xi32>, %high: memref<256x32xi32>, %apart: memref<16x32xi32, strided<[64, 2]>>,
                  %odd: memref<32x8xi32>, %low: memref<8x32xi32>) {
  %c8 = arith.constant 8 : i32
  %c16 = arith.constant 16 : i32
  %upper = arith.constant -65536 : i32
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<32x16xi32>, memref<16x32xi32>) outs(%c : memref<32x32xf32>) {
  ^bb0(%x: i32, %y: i32, %z: f32):
    %0 = arith.shli %x, %c16 : i32
    %1 = arith.bitcast %0 : i32 to f32
    %2 = arith.andi %x, %upper : i32
    %3 = arith.bitcast %2 : i32 to f32
    %4 = arith.shli %y, %c8 : i32
    %5 = arith.bitcast %4 : i32 to f32
    %6 = arith.andi %y, %upper : i32
    %7 = arith.bitcast %6 : i32 to f32
    %8 = arith.mulf %1, %5 : f32
    %9 = arith.addf %z, %8 : f32
    %10 = arith.mulf %3, %7 : f32
    %11 = arith.addf %9, %10 : f32
    linalg.yield %11 : f32
  }
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %narrow : memref<32x16xi32>, memref<16x20xi32>) outs(%sums : memref<32x20xf32>) {
  ^bb0(%x: i32, %y: i32, %z: f32):
    %0 = arith.shli %x, %c16 : i32
    %1 = arith.bitcast %0 : i32 to f32
    %2 = arith.andi %x, %upper : i32
    %3 = arith.bitcast %2 : i32 to f32
    %4 = arith.shli %y, %c16 : i32
    %5 = arith.bitcast %4 : i32 to f32
    %6 = arith.andi %y, %upper : i32
    %7 = arith.bitcast %6 : i32 to f32
    %8 = arith.mulf %1, %5 : f32
    %9 = arith.addf %z, %8 : f32
    %10 = arith.mulf %3, %7 : f32
    %11 = arith.addf %9, %10 : f32
    linalg.yield %11 : f32
  }
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%deep, %high : memref<32x256xi32>, memref<256x32xi32>) outs(%c : memref<32x32xf32>) {
  ^bb0(%x: i32, %y: i32, %z: f32):
    %0 = arith.shli %x, %c16 : i32
    %1 = arith.bitcast %0 : i32 to f32
    %2 = arith.andi %x, %upper : i32
    %3 = arith.bitcast %2 : i32 to f32
    %4 = arith.shli %y, %c16 : i32
    %5 = arith.bitcast %4 : i32 to f32
    %6 = arith.andi %y, %upper : i32
    %7 = arith.bitcast %6 : i32 to f32
    %8 = arith.mulf %1, %5 : f32
    %9 = arith.addf %z, %8 : f32
    %10 = arith.mulf %3, %7 : f32
    %11 = arith.addf %9, %10 : f32
    linalg.yield %11 : f32
  }
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %apart : memref<32x16xi32>, memref<16x32xi32, strided<[64, 2]>>) outs(%c : memref<32x32xf32>) {
  ^bb0(%x: i32, %y: i32, %z: f32):
    %0 = arith.shli %x, %c16 : i32
    %1 = arith.bitcast %0 : i32 to f32
    %2 = arith.andi %x, %upper : i32
    %3 = arith.bitcast %2 : i32 to f32
    %4 = arith.shli %y, %c16 : i32
    %5 = arith.bitcast %4 : i32 to f32
    %6 = arith.andi %y, %upper : i32
    %7 = arith.bitcast %6 : i32 to f32
    %8 = arith.mulf %1, %5 : f32
    %9 = arith.addf %z, %8 : f32
    %10 = arith.mulf %3, %7 : f32
    %11 = arith.addf %9, %10 : f32
    linalg.yield %11 : f32
  }
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%odd, %low : memref<32x8xi32>, memref<8x32xi32>) outs(%c : memref<32x32xf32>) {
  ^bb0(%x: i32, %y: i32, %z: f32):
    %0 = arith.shli %x, %c16 : i32
    %1 = arith.bitcast %0 : i32 to f32
    %2 = arith.andi %x, %upper : i32
    %3 = arith.bitcast %2 : i32 to f32
    %4 = arith.shli %y, %c16 : i32
    %5 = arith.bitcast %4 : i32 to f32
    %6 = arith.andi %y, %upper : i32
    %7 = arith.bitcast %6 : i32 to f32
    %8 = arith.mulf %1, %5 : f32
    %9 = arith.addf %z, %8 : f32
    %10 = arith.mulf %3, %7 : f32
    %11 = arith.addf %9, %10 : f32
    linalg.yield %11 : f32
  }
  return
}
