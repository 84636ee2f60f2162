//===- pack-arguments.mlir - matrices that callers pack -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-pack-arguments | FileCheck %s
// RUN: posenc-opt %s --posenc-pack-arguments --posenc-pack-arguments | FileCheck %s
// RUN: posenc-opt %s --pass-pipeline='builtin.module(posenc-pack-arguments,func.func(posenc-tile-contractions,posenc-decompose-moves))' \
// RUN:   | FileCheck %s --check-prefix=TILED

// The argument has the packed layout, and the product still reads a matrix.
// CHECK-LABEL: func.func @product
// CHECK-SAME: %[[W:arg[0-9]+]]: tensor<3x100x32xf32> {posenc.layout = "panels32"}
// CHECK: %[[M:.*]] = linalg.unpack %[[W]] outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [32] into %{{.*}} : tensor<3x100x32xf32> -> tensor<100x70xf32>
// CHECK: linalg.matmul ins(%{{.*}}, %[[M]]
// CHECK-LABEL: func.func @product_pack_in1
// CHECK-SAME: (%[[W:arg[0-9]+]]: tensor<100x70xf32>
// CHECK: linalg.pack %[[W]] padding_value

// Tiles are read from the panels; the matrix is not unpacked.
// TILED-LABEL: func.func @product
// TILED-SAME: %[[W:arg[0-9]+]]: tensor<3x100x32xf32>
// TILED-NOT: linalg.unpack
// TILED: scf.forall
// TILED: tensor.extract_slice %[[W]]
// TILED-NOT: linalg.unpack
// TILED-LABEL: func.func @product_pack_in1
// TILED-NOT: linalg.pack
func.func @product(%x: tensor<?x100xf32>, %w: tensor<100x70xf32> {posenc.packed}, %o: tensor<?x70xf32>) -> tensor<?x70xf32> {
  %r = linalg.matmul ins(%x, %w : tensor<?x100xf32>, tensor<100x70xf32>) outs(%o : tensor<?x70xf32>) -> tensor<?x70xf32>
  return %r : tensor<?x70xf32>
}

// The product determines the number of columns.
// CHECK-LABEL: func.func @transposed
// CHECK-SAME: tensor<3x100x32xf32>
// CHECK: linalg.unpack %{{.*}} outer_dims_perm = [0, 1] inner_dims_pos = [0] inner_tiles = [32]
func.func @transposed(%x: tensor<?x100xf32>, %w: tensor<70x100xf32> {posenc.packed}, %o: tensor<?x70xf32>) -> tensor<?x70xf32> {
  %r = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<?x100xf32>, tensor<70x100xf32>) outs(%o : tensor<?x70xf32>) -> tensor<?x70xf32>
  return %r : tensor<?x70xf32>
}
