//===- lower-tile-products.mlir - units of tile products ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{options} =
// DEFINE: %{lower} = posenc-opt %s --split-input-file \
// DEFINE:   --pass-pipeline='builtin.module(func.func(posenc-lower-tile-products{%{options}}),canonicalize,cse)'
// RUN: %{lower} | FileCheck %s
// REDEFINE: %{options} = bf16-dots
// RUN: %{lower} | FileCheck %s --check-prefix=DOTS
// REDEFINE: %{options} = bf16-dots amx-bf16 int8-dots amx-int8
// RUN: %{lower} | FileCheck %s --check-prefix=AMX

// Sums in a tensor: the loop carries them as one vector. Narrow floats are extended.
// CHECK-LABEL: func.func @floats(
// CHECK-SAME: %[[A:.*]]: tensor<2x?xf32>, %[[B:.*]]: tensor<?x16xbf16>, %[[C:.*]]: tensor<2x16xf32>)
// CHECK: %[[DEPTH:.*]] = tensor.dim %[[B]], %c0
// CHECK: %[[START:.*]] = vector.transfer_read %[[C]]{{.*}}, vector<2x16xf32>
// CHECK: %[[SUMS:.*]] = scf.for %[[K:.*]] = %c0 to %[[DEPTH]] step %c1 iter_args(%{{.*}} = %[[START]])
// CHECK: vector.transfer_read %[[A]][%c0, %[[K]]]{{.*}}, vector<2x1xf32>
// CHECK: vector.transfer_read %[[B]][%[[K]], %c0]{{.*}}, vector<16xbf16>
// CHECK: arith.extf %{{.*}} : vector<16xbf16> to vector<16xf32>
// CHECK-COUNT-2: math.fma
// CHECK-NOT: math.fma
// CHECK: vector.transfer_write %[[SUMS]], %[[C]]
// CHECK-NOT: posenc.tile_product
func.func @floats(%a: tensor<2x?xf32>, %b: tensor<?x16xbf16>, %c: tensor<2x16xf32>) -> tensor<2x16xf32> {
  %0 = posenc.tile_product floats ins(%a, %b : tensor<2x?xf32>, tensor<?x16xbf16>) sums(%c : tensor<2x16xf32>)
  return %0 : tensor<2x16xf32>
}

// -----

// Sums in registers: the loop carries a vector for each row and 4 columns. It loads
// from the memory of a panel, along the depth from the index that both begin at.
// CHECK-LABEL: func.func @registers(
// CHECK-SAME: %[[A:.*]]: memref<9x8xf32>, %[[B:.*]]: memref<3x9x8xf32>, %[[I:.*]]: index, %[[N:.*]]: index)
// CHECK: %[[COLUMN:.*]] = arith.addi %[[I]], %c1
// CHECK: %[[END:.*]] = arith.addi %[[N]], %[[I]]
// CHECK: scf.for %[[K:.*]] = %[[I]] to %[[END]] step %c1 iter_args({{.*}}) -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>)
// CHECK-DAG: memref.load %[[A]][%[[K]], %[[I]]]
// CHECK-DAG: memref.load %[[A]][%[[K]], %[[COLUMN]]]
// CHECK: vector.load %[[B]][%c2, %[[K]], %c0]
// CHECK-NEXT: vector.load %[[B]][%c2, %[[K]], %c4]
// CHECK-COUNT-4: math.fma %{{.*}} : vector<4xf32>
// CHECK: return %{{.*}}#3
func.func @registers(%a: memref<9x8xf32>, %b: memref<3x9x8xf32>, %i: index, %n: index) -> vector<4xf32> {
  %c = arith.constant dense<0.0> : vector<2x2x4xf32>
  %x = memref.subview %a[%i, %i] [%n, 2] [1, 1] : memref<9x8xf32> to memref<?x2xf32, strided<[8, 1], offset: ?>>
  %y = memref.subview %b[2, %i, 0] [1, %n, 8] [1, 1, 1] : memref<3x9x8xf32> to memref<?x8xf32, strided<[8, 1], offset: ?>>
  %0 = posenc.tile_product floats transposed ins(%x, %y : memref<?x2xf32, strided<[8, 1], offset: ?>>, memref<?x8xf32, strided<[8, 1], offset: ?>>)
    sums(%c : vector<2x2x4xf32>)
  %1 = vector.extract %0[1, 1] : vector<4xf32> from vector<2x2x4xf32>
  return %1 : vector<4xf32>
}

// -----

// A vector as a whole, of panels that begin at different indices. Products by 0 are
// left out.
// CHECK-LABEL: func.func @whole(
// CHECK: scf.for %[[K:.*]] = %c0 to %c4 step %c1
// CHECK: %[[ROW:.*]] = arith.addi %{{.*}}, %[[K]]
// CHECK: vector.load %{{.*}}[%[[K]], %c0]
// CHECK: %[[SUM:.*]] = math.fma
// CHECK: %[[OUT:.*]] = arith.cmpf oeq
// CHECK: arith.select %[[OUT]], %{{.*}}, %[[SUM]]
// CHECK: vector.broadcast %{{.*}} : vector<8xf64> to vector<1x1x8xf64>
func.func @whole(%a: memref<9x8xf64>, %b: memref<4x8xf64>, %i: index, %c: vector<1x1x8xf64>) -> vector<1x1x8xf64> {
  %x = memref.subview %a[%i, 3] [4, 1] [1, 1] : memref<9x8xf64> to memref<4x1xf64, strided<[8, 1], offset: ?>>
  %0 = posenc.tile_product floats transposed skips_zeros ins(%x, %b : memref<4x1xf64, strided<[8, 1], offset: ?>>, memref<4x8xf64>) sums(%c : vector<1x1x8xf64>)
  return %0 : vector<1x1x8xf64>
}

// -----

// Pairs: without a unit, the second numbers of words first. VDPBF16PS multiplies 16
// columns of a row.
// CHECK-LABEL: func.func @pairs(
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "parallel"]}
// CHECK: %[[XL:.*]] = arith.shli %[[X:.*]], %c16_i32
// CHECK: %[[XH:.*]] = arith.andi %[[X]], %c-65536_i32
// CHECK: %[[X0:.*]] = arith.bitcast %[[XL]]
// CHECK: %[[X1:.*]] = arith.bitcast %[[XH]]
// CHECK: %[[Y0:.*]] = arith.bitcast
// CHECK: %[[Y1:.*]] = arith.bitcast
// CHECK: %[[SUM:.*]] = math.fma %[[X1]], %[[Y1]]
// CHECK: math.fma %[[X0]], %[[Y0]], %[[SUM]]
// DOTS-LABEL: func.func @pairs(
// DOTS: vector.transfer_read {{.*}}, vector<1x2xi32>
// DOTS: vector.transfer_read {{.*}}, vector<32xi32>
// DOTS-COUNT-4: x86vector.avx512.dot {{.*}} : vector<32xbf16> -> vector<16xf32>
// DOTS-NOT: x86vector.avx512.dot
func.func @pairs(%a: tensor<?x2xi32>, %b: tensor<?x32xi32>, %c: tensor<2x32xf32>) -> tensor<2x32xf32> {
  %0 = posenc.tile_product bf16_pairs transposed ins(%a, %b : tensor<?x2xi32>, tensor<?x32xi32>) sums(%c : tensor<2x32xf32>)
  return %0 : tensor<2x32xf32>
}

// -----

// Not VDPBF16PS: too few columns, f16, products by 0 that are left out, and other
// vectors.
// DOTS-LABEL: func.func @others(
// DOTS-COUNT-3: linalg.generic
// DOTS-COUNT-2: math.fma {{.*}} : vector<8xf32>
// DOTS-NOT: x86vector
func.func @others(%a: memref<2x4xi32>, %b: memref<4x16xi32>, %few: memref<4x8xi32>, %c: memref<2x16xf32>, %d: memref<2x8xf32>, %v: vector<2x1x8xf32>) -> vector<2x1x8xf32> {
  posenc.tile_product bf16_pairs ins(%a, %few : memref<2x4xi32>, memref<4x8xi32>) sums(%d : memref<2x8xf32>)
  posenc.tile_product f16_pairs ins(%a, %b : memref<2x4xi32>, memref<4x16xi32>) sums(%c : memref<2x16xf32>)
  posenc.tile_product bf16_pairs skips_zeros ins(%a, %b : memref<2x4xi32>, memref<4x16xi32>) sums(%c : memref<2x16xf32>)
  %0 = posenc.tile_product bf16_pairs ins(%a, %few : memref<2x4xi32>, memref<4x8xi32>) sums(%v : vector<2x1x8xf32>)
  return %0 : vector<2x1x8xf32>
}

// -----

// With AMX, four tiles of sums are loaded once, and stored after all products.
// DOTS-LABEL: func.func @tiles(
// AMX-LABEL: func.func @tiles(
// AMX-SAME: %[[A:.*]]: memref<32x32xi32>, %[[B:.*]]: memref<32x32xi32>, %[[C:.*]]: memref<32x32xf32, strided<[?, 1]>>)
// AMX-COUNT-4: amx.tile_load %[[C]]{{.*}} into !amx.tile<16x16xf32>
// A tile is loaded before its first product, for which seven registers are enough.
// AMX-NEXT: amx.tile_load %[[B]][%c0, %c0]
// AMX-NEXT: amx.tile_load %[[A]][%c0, %c0]
// AMX-NEXT: amx.tile_mulf
// AMX-NEXT: amx.tile_load %[[A]][%c16, %c0]
// AMX-NEXT: amx.tile_mulf
// AMX-NEXT: amx.tile_load %[[B]][%c0, %c16]
// AMX-NEXT: amx.tile_mulf
// AMX-NEXT: amx.tile_load %[[B]][%c16, %c0]
// AMX-NEXT: amx.tile_mulf
// AMX-NEXT: amx.tile_load %[[A]][%c0, %c16]
// AMX-NEXT: amx.tile_mulf
// AMX-NEXT: amx.tile_load %[[A]][%c16, %c16]
// AMX-NEXT: amx.tile_mulf
// AMX-NEXT: amx.tile_load %[[B]][%c16, %c16]
// AMX-COUNT-2: amx.tile_mulf
// AMX-COUNT-4: amx.tile_store %[[C]]
// AMX-NOT: amx.tile_
func.func @tiles(%a: memref<32x32xi32>, %b: memref<32x32xi32>, %c: memref<32x32xf32, strided<[?, 1]>>) {
  posenc.tile_product bf16_pairs ins(%a, %b : memref<32x32xi32>, memref<32x32xi32>) sums(%c : memref<32x32xf32, strided<[?, 1]>>)
  return
}

// -----

// A dynamic number of words selects one of eight codes for each 128 words.
// AMX-LABEL: func.func @dynamic(
// AMX-SAME: %{{.*}}: memref<32x1024xi32>, %{{.*}}: memref<1024x32xi32>, %{{.*}}: memref<32x32xf32>, %{{.*}}: index)
// AMX: %[[WORDS:.*]] = affine.apply
// AMX: scf.for %[[FIRST:.*]] = %c0 to %[[WORDS]] step %c128
// AMX: %[[REST:.*]] = arith.subi %[[WORDS]], %[[FIRST]]
// AMX: %[[COUNT:.*]] = arith.minsi %[[REST]], %c128
// AMX: %[[TILES:.*]] = arith.divui %[[COUNT]], %c16
// AMX: scf.index_switch %[[TILES]]
// AMX: case 1
// AMX-COUNT-4: amx.tile_mulf
// AMX-NOT: amx.tile_mulf
// AMX: case 2
// AMX-COUNT-8: amx.tile_mulf
// AMX-NOT: amx.tile_mulf
// AMX: case 3
// AMX: case 8
// AMX-COUNT-32: amx.tile_mulf
// AMX-NOT: amx.tile_mulf
// AMX: default {
// AMX-NEXT: }
func.func @dynamic(%a: memref<32x1024xi32>, %b: memref<1024x32xi32>, %c: memref<32x32xf32>, %n: index) {
  %words = affine.apply affine_map<(d0) -> (d0 ceildiv 16 * 16)>(%n)
  %x = memref.subview %a[0, 0] [32, %words] [1, 1] : memref<32x1024xi32> to memref<32x?xi32, strided<[1024, 1]>>
  %y = memref.subview %b[0, 0] [%words, 32] [1, 1] : memref<1024x32xi32> to memref<?x32xi32, strided<[32, 1]>>
  posenc.tile_product bf16_pairs ins(%x, %y : memref<32x?xi32, strided<[1024, 1]>>, memref<?x32xi32, strided<[32, 1]>>) sums(%c : memref<32x32xf32>)
  return
}

// -----

// Tensors wait for bufferization.
// AMX-LABEL: func.func @tensors(
// AMX: posenc.tile_product
func.func @tensors(%a: tensor<32x32xi32>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = posenc.tile_product bf16_pairs ins(%a, %a : tensor<32x32xi32>, tensor<32x32xi32>) sums(%c : tensor<32x32xf32>)
  return %0 : tensor<32x32xf32>
}

// -----

// Not AMX, but VDPBF16PS: a depth that is no multiple of 16, or not known to be,
// other numbers of rows and columns, a transposed panel, and columns that are not
// contiguous.
// AMX-LABEL: func.func @others(
// AMX-NOT: amx.tile_
// AMX-COUNT-5: scf.for
func.func @others(%a: memref<32x16xi32>, %b: memref<16x32xi32>, %c: memref<32x32xf32>, %odd: memref<32x8xi32>, %low: memref<8x32xi32>,
                  %any: memref<32x?xi32>, %deep: memref<?x32xi32>, %few: memref<16x16xi32>, %sums: memref<16x32xf32>,
                  %apart: memref<16x32xi32, strided<[64, 2]>>) {
  posenc.tile_product bf16_pairs ins(%odd, %low : memref<32x8xi32>, memref<8x32xi32>) sums(%c : memref<32x32xf32>)
  posenc.tile_product bf16_pairs ins(%any, %deep : memref<32x?xi32>, memref<?x32xi32>) sums(%c : memref<32x32xf32>)
  posenc.tile_product bf16_pairs ins(%few, %b : memref<16x16xi32>, memref<16x32xi32>) sums(%sums : memref<16x32xf32>)
  posenc.tile_product bf16_pairs transposed ins(%b, %b : memref<16x32xi32>, memref<16x32xi32>) sums(%c : memref<32x32xf32>)
  posenc.tile_product bf16_pairs ins(%a, %apart : memref<32x16xi32>, memref<16x32xi32, strided<[64, 2]>>) sums(%c : memref<32x32xf32>)
  return
}

// -----

// Words of four bytes: VPDPBUSD takes unsigned bytes first. Without it, they are
// arithmetic.
// CHECK-LABEL: func.func @quads(
// CHECK: vector.load %{{.*}} : memref<16x32xi32>, vector<16xi32>
// CHECK-COUNT-8: arith.muli %{{.*}} : vector<16xi32>
// CHECK-NOT: arith.muli
// AMX-LABEL: func.func @quads(
// AMX-SAME: %[[A:[^:]*]]: memref<1x16xi32>, %[[B:[^:]*]]: memref<16x32xi32>
// AMX: %[[X:.*]] = vector.bitcast %{{.*}} : vector<16xi32> to vector<64xi8>
// AMX: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%{{.*}}, %{{.*}}, %{{.*}}) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
// AMX-NOT: arith.muli
func.func @quads(%a: memref<1x16xi32>, %b: memref<16x32xi32>, %c: vector<1x2x16xi32>) -> vector<1x2x16xi32> {
  %0 = posenc.tile_product s8u8_quads ins(%a, %b : memref<1x16xi32>, memref<16x32xi32>) sums(%c : vector<1x2x16xi32>)
  return %0 : vector<1x2x16xi32>
}
