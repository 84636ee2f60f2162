//===- tile-contractions.mlir - tiled matrix products ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{pipeline} = func.func(posenc-tile-contractions{vector-bytes=64}),canonicalize,cse
// RUN: posenc-opt %s --pass-pipeline='builtin.module(%{pipeline})' \
// RUN:   --split-input-file --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --split-input-file --mlir-print-local-scope \
// RUN:   --pass-pipeline='builtin.module(%{pipeline},func.func(posenc-lower-tile-products,posenc-vectorize-linalg),canonicalize)' \
// RUN:   | FileCheck %s --check-prefix=VECTOR

// The first block of the reduction starts from the filled value, also at the edges,
// where the result is not read. A fill is not stored.
// RUN: posenc-opt %s --split-input-file --mlir-print-local-scope \
// RUN:   --pass-pipeline='builtin.module(func.func(posenc-tile-contractions{vector-bytes=64 product-panel-rows=128}),canonicalize,cse)' \
// RUN:   | FileCheck %s --check-prefix=PANELS
// RUN: posenc-opt %s --split-input-file --mlir-print-local-scope \
// RUN:   --pass-pipeline='builtin.module(func.func(posenc-tile-contractions{vector-bytes=64 product-peel=1}),canonicalize,cse)' \
// RUN:   | FileCheck %s --check-prefix=PEEL
// PEEL-LABEL: func.func @matmul(
// PEEL-NOT:     linalg.fill
// PEEL:         scf.forall
// PEEL:           scf.for {{.*}} step %c8 iter_args
// PEEL:             scf.if
// PEEL:               %[[FIRST:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<8x32xf32>)
// PEEL:               %[[PART:.*]] = posenc.tile_product floats
// PEEL:               linalg.generic {{.*}} ins(%[[PART]] : {{.*}} outs(%[[FIRST]] :
// PEEL:             } else {
// PEEL:               %[[EMPTY:.*]] = tensor.empty() : tensor<8x32xf32>
// PEEL:               %[[EDGE:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[EMPTY]] : tensor<8x32xf32>)
// PEEL:               %[[PART:.*]] = posenc.tile_product floats
// PEEL:               linalg.generic {{.*}} ins(%[[PART]] : {{.*}} outs(%[[EDGE]] :
// PEEL:           scf.for %{{.*}} = %c256 to %{{.*}} step %c256
// PEEL-LABEL: func.func @batch(
// PEEL-NOT:     linalg.fill
// PEEL:         scf.forall

// Some rows of the left operand are copied at a time. A row of scratch is one cache
// line longer than the block.
// RUN: posenc-opt %s --split-input-file --mlir-print-local-scope \
// RUN:   --pass-pipeline='builtin.module(func.func(posenc-tile-contractions{vector-bytes=64 product-copied-rows=43 product-tile-rows=12 product-columns=128}),canonicalize,cse)' \
// RUN:   | FileCheck %s --check-prefix=COPIED
// COPIED-LABEL: func.func @matmul(
// COPIED-SAME:    %[[A:.*]]: tensor<?x?xf32>, %{{.*}}: tensor<?x?xf32>, %{{.*}}: tensor<?x?xf32>)
// COPIED:         scf.forall {{.*}} step (264, 128)
// COPIED:           scf.for %{{.*}} = %c0 to %{{.*}} step %c256
// COPIED:             %[[BLOCK:.*]] = tensor.extract_slice %[[A]]
// COPIED:             scf.for %[[ROW:.*]] = %c0 to %{{.*}} step %c36
// COPIED:               tensor.extract_slice %[[BLOCK]][%[[ROW]], 0]
// COPIED:               tensor.empty() : tensor<36x272xf32>
// COPIED:               scf.for {{.*}} step %c12
// COPIED:                 tensor.extract_slice %{{.*}} [12, %{{.*}}] [1, 1] : tensor<36x272xf32> to tensor<12x?xf32>

// A register tile of three vectors: the sums are three vectors of each row, since LLVM
// cannot keep one whose length is not a power of two. Blocks have whole register tiles,
// and panels of the caller, of 32 columns, keep two vectors.
// RUN: posenc-opt %s --split-input-file --mlir-print-local-scope \
// RUN:   --pass-pipeline='builtin.module(func.func(posenc-tile-contractions{vector-bytes=64 product-tile-vectors=3 product-tile-rows=14 product-peel=1},posenc-lower-tile-products),canonicalize,cse)' \
// RUN:   | FileCheck %s --check-prefix=WIDE
// WIDE-LABEL: func.func @matmul(
// WIDE:         %[[START:.*]] = arith.constant dense<0.000000e+00> : vector<9x16xf32>
// WIDE:         scf.forall {{.*}} step (261, 96)
// WIDE:           tensor.empty() : tensor<2x256x48xf32>
// WIDE:           scf.for {{.*}} step %c9 iter_args
// WIDE:             scf.for {{.*}} iter_args(%[[S0:.*]] = %[[START]], %[[S1:.*]] = %[[START]], %[[S2:.*]] = %[[START]]) -> (vector<9x16xf32>, vector<9x16xf32>, vector<9x16xf32>)
// WIDE:               %[[B0:.*]] = vector.transfer_read %{{.*}}, %c0]{{.*}}, vector<16xf32>
// WIDE:               %[[B1:.*]] = vector.transfer_read %{{.*}}, %c16]{{.*}}, vector<16xf32>
// WIDE:               %[[B2:.*]] = vector.transfer_read %{{.*}}, %c32]{{.*}}, vector<16xf32>
// WIDE:               %[[X:.*]] = vector.broadcast {{.*}} : f32 to vector<16xf32>
// WIDE:               math.fma %[[X]], %[[B0]]
// WIDE:               math.fma %[[X]], %[[B1]]
// WIDE:               math.fma %[[X]], %[[B2]]
// WIDE-COUNT-3:     linalg.generic {{.*}} outs(%{{.*}} : tensor<9x16xf32>)

// Panels of the right operand are packed, by whole rows where a block is
// complete; the accumulators of a tile are in registers, start with zero for each
// block of k and are added to the result. A fill of the result becomes a fill of
// its tiles.
// CHECK-LABEL: func.func @matmul(
// CHECK-SAME:    %[[A:.*]]: tensor<?x?xf32>, %[[B:.*]]: tensor<?x?xf32>, %[[C:.*]]: tensor<?x?xf32>)
// CHECK-NOT:     linalg.fill
// CHECK:         scf.forall (%[[I:.*]], %[[J:.*]]) = (0, 0) to (%{{.*}}, %{{.*}}) step (264, 64) shared_outs(%[[O:.*]] = %[[C]])
// CHECK:           %[[PART:.*]] = tensor.extract_slice %[[O]][%[[I]], %[[J]]]
// CHECK:           %[[ZERO:.*]] = linalg.fill {{.*}} outs(%[[PART]]
// CHECK:           scf.for %[[K:.*]] = %c0 to %{{.*}} step %c256 iter_args(%{{.*}} = %[[ZERO]])
// CHECK:             tensor.extract_slice %[[B]][%[[K]], %[[J]]]
// CHECK:             scf.if
// CHECK:               tensor.expand_shape
// CHECK:             } else {
// CHECK:             scf.for {{.*}} step %c8 iter_args
// CHECK:               scf.if
// CHECK:                 %[[NONE:.*]] = linalg.fill ins(%cst : f32)
// CHECK:                 %[[PART:.*]] = posenc.tile_product floats ins(%{{.*}}, %{{.*}} : tensor<8x?xf32>, tensor<?x32xf32>) sums(%[[NONE]] : tensor<8x32xf32>)
// CHECK:                 linalg.generic {{.*}} ins(%[[PART]] :
// CHECK:               } else {
// CHECK:                 linalg.copy
// VECTOR-LABEL: func.func @matmul(
// VECTOR:         scf.for {{.*}} iter_args({{.*}}) -> (vector<8x32xf32>)
// VECTOR-COUNT-8: math.fma %{{.*}} : vector<32xf32>
func.func @matmul(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%init : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

// 16-bit operands are extended once, when they are packed; the matrices of a
// batch are separate.
// CHECK-LABEL: func.func @batch(
// CHECK:         scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) = (0, 0, 0) to (4, %{{.*}}, 96) step (1, 64, 64)
// CHECK-COUNT-2:   arith.extf %{{.*}} : bf16 to f32
// VECTOR-LABEL: func.func @batch(
// VECTOR:         math.fma
func.func @batch(%a: tensor<4x?x64xbf16>, %b: tensor<4x64x96xbf16>, %c: tensor<4x?x96xf32>) -> tensor<4x?x96xf32> {
  %r = linalg.batch_matmul ins(%a, %b : tensor<4x?x64xbf16>, tensor<4x64x96xbf16>) outs(%c : tensor<4x?x96xf32>) -> tensor<4x?x96xf32>
  return %r : tensor<4x?x96xf32>
}

// -----

// Sums of f16 are f32 until they are complete.
// CHECK-LABEL: func.func @short(
// CHECK:         scf.forall
// CHECK:           linalg.generic {{.*}} ins(%{{.*}} : tensor<?x?xf16>) outs(%{{.*}} : tensor<?x?xf32>)
// CHECK:           arith.truncf %{{.*}} : f32 to f16
func.func @short(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>, %c: tensor<?x?xf16>) -> tensor<?x?xf16> {
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf16>, tensor<?x?xf16>) outs(%c : tensor<?x?xf16>) -> tensor<?x?xf16>
  return %r : tensor<?x?xf16>
}

// -----

// Integer products and empty products are not changed.
// CHECK-LABEL: func.func @others(
// CHECK-COUNT-2: linalg.matmul
func.func @others(%a: tensor<?x?xi32>, %b: tensor<?x?xi32>, %c: tensor<?x?xi32>, %x: tensor<0x4xf32>, %y: tensor<4x8xf32>, %z: tensor<0x8xf32>) -> (tensor<?x?xi32>, tensor<0x8xf32>) {
  %r = linalg.matmul ins(%a, %b : tensor<?x?xi32>, tensor<?x?xi32>) outs(%c : tensor<?x?xi32>) -> tensor<?x?xi32>
  %s = linalg.matmul ins(%x, %y : tensor<0x4xf32>, tensor<4x8xf32>) outs(%z : tensor<0x8xf32>) -> tensor<0x8xf32>
  return %r, %s : tensor<?x?xi32>, tensor<0x8xf32>
}

// -----

// Blocks of rows of a product with panels of the caller are about equal: 300 rows are
// three blocks of 104, 104 and 92. The step follows from the number of rows.
// CHECK-LABEL: func.func @panels(
// CHECK:         %[[M:.*]] = tensor.dim %{{.*}}, %c0
// CHECK:         %[[COUNT:.*]] = arith.ceildivui %[[M]], %c264
// CHECK:         %[[BLOCKS:.*]] = arith.maxui %[[COUNT]], %c1
// CHECK:         %[[ROWS:.*]] = arith.ceildivui %[[M]], %[[BLOCKS]]
// CHECK:         %[[TILES:.*]] = arith.ceildivui %[[ROWS]], %c8
// CHECK:         %[[SOME:.*]] = arith.maxui %[[TILES]], %c1
// CHECK:         %[[STEP:.*]] = arith.muli %[[SOME]], %c8
// CHECK:         scf.forall (%{{.*}}, %{{.*}}) = (0, 0) to (%[[M]], 96) step (%[[STEP]], 32)
// CHECK:         scf.forall (%{{.*}}, %{{.*}}) = (0, 0) to (300, 96) step (152, 32)
// PANELS-LABEL: func.func @panels(
// PANELS:         scf.forall
// PANELS:         scf.forall (%{{.*}}, %{{.*}}) = (0, 0) to (300, 96) step (104, 32)
func.func @panels(%a: tensor<?x64xf32>, %b: tensor<3x64x32xf32>, %c: tensor<?x96xf32>, %d: tensor<300x64xf32>, %e: tensor<300x96xf32>) -> (tensor<?x96xf32>, tensor<300x96xf32>) {
  %w = tensor.empty() : tensor<64x96xf32>
  %u = linalg.unpack %b outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [32] into %w : tensor<3x64x32xf32> -> tensor<64x96xf32>
  %r = linalg.matmul ins(%a, %u : tensor<?x64xf32>, tensor<64x96xf32>) outs(%c : tensor<?x96xf32>) -> tensor<?x96xf32>
  %s = linalg.matmul ins(%d, %u : tensor<300x64xf32>, tensor<64x96xf32>) outs(%e : tensor<300x96xf32>) -> tensor<300x96xf32>
  return %r, %s : tensor<?x96xf32>, tensor<300x96xf32>
}
