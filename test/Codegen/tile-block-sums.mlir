//===- tile-block-sums.mlir - sums over blocks of scaled sums -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{avx512} = func.func(posenc-tile-block-sums{vector-bytes=64})
// RUN: posenc-opt %s --pass-pipeline='builtin.module(%{avx512},canonicalize,cse)' \
// RUN:   --split-input-file --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --pass-pipeline='builtin.module(func.func(posenc-tile-block-sums{vector-bytes=32}),canonicalize,cse)' \
// RUN:   --split-input-file --mlir-print-local-scope \
// RUN:   | FileCheck %s --check-prefix=AVX2

// For up to 4 rows, codes are converted in register tiles of 4, 3, 2 and 1 rows, each a vector of
// columns, and the result is written after all blocks. For more, those of 2 blocks of 32 (16 KiB)
// are converted first, and tiles of 6, 4, 3, 2 and 1 rows add to the result.
// CHECK-LABEL: func.func @product(
// CHECK-SAME:    %{{.*}}: tensor<?x8x32xf32>
// CHECK:         scf.forall (%{{.*}}, %{{.*}}) = (0, 0) to (%{{.*}}, 3) step (516, 1)
// CHECK:           %[[MANY:.*]] = arith.cmpi uge, %{{.*}}, %c5
// CHECK:           scf.if %[[MANY]]
// CHECK:             scf.for %[[FIRST:.*]] = %c0 to %c8 step %c2
// CHECK:               %[[E:.*]] = tensor.empty() : tensor<2x32x64xf32>
// CHECK:               %[[BUFFER:.*]] = scf.for
// CHECK:                 scf.for %[[K:.*]] = %c0 to %c32
// CHECK:                   arith.sitofp {{.*}} vector<64xi32> to vector<64xf32>
// CHECK:                   vector.transfer_write {{.*}} tensor<2x32x64xf32>
// CHECK:               scf.for %[[I:.*]] = %c0 to %{{.*}} step %c6
// CHECK-COUNT-6:         vector.transfer_read {{.*}} vector<64xf32>
// CHECK:                 %[[SUMS:.*]]:6 = scf.for %[[B:.*]] = %[[FIRST]] to
// CHECK:                   %[[PARTS:.*]]:6 = scf.for
// CHECK:                     vector.transfer_read %[[BUFFER]]
// CHECK-NOT:                 arith.sitofp
// CHECK-COUNT-6:             math.fma
// CHECK:                   math.fma %[[PARTS]]#0
// CHECK:                   math.fma %[[PARTS]]#5
// CHECK:                 vector.transfer_write %[[SUMS]]#0, %{{.*}}[%[[I]], %c0, %c0]
// CHECK:               scf.for %{{.*}} step %c4
// CHECK:               scf.for %{{.*}} step %c3
// CHECK:               scf.for %{{.*}} step %c2
// CHECK:           } else {
// CHECK:             scf.for %[[I:.*]] = %c0 to %{{.*}} step %c4
// CHECK:               %[[SUMS:.*]]:4 = scf.for %[[B:.*]] = %c0 to %c8 step %c1 iter_args
// CHECK:                 scf.for %[[K:.*]] = %c0 to %c32 step %c1 iter_args
// CHECK:                   vector.transfer_read %{{.*}}[%c0, %[[B]], %[[K]], %c0]{{.*}} vector<64xi8>
// CHECK:                   arith.sitofp {{.*}} vector<64xi32> to vector<64xf32>
// CHECK-NOT:               arith.sitofp
// CHECK-COUNT-4:           math.fma
// CHECK:               vector.transfer_write %[[SUMS]]#3
// CHECK:             scf.for %{{.*}} step %c3
// CHECK:             scf.for %{{.*}} step %c2
// CHECK:             scf.for %{{.*}} step %c1
// AVX2-LABEL: func.func @product(
// AVX2:           scf.if
// AVX2:             scf.for %{{.*}} step %c6
// AVX2:               scf.for %{{.*}} = %c0 to %c32 step %c16
// AVX2:                 vector<16xf32>
// AVX2:           } else {
// AVX2:             scf.for %{{.*}} step %c2
// AVX2:               vector<32xi8>
// AVX2:             scf.for %{{.*}} step %c1
#rows = affine_map<(m, p, b, n, k) -> (m, b, k)>
#codes = affine_map<(m, p, b, n, k) -> (p, b, k, n)>
#partial = affine_map<(m, p, b, n, k) -> (m, p, b, n)>
#sums = affine_map<(m, p, n, b) -> (m, p, b, n)>
#scales = affine_map<(m, p, n, b) -> (p, b, n)>
#result = affine_map<(m, p, n, b) -> (m, p, n)>
func.func @product(%a: tensor<?x8x32xf32>, %c: tensor<3x8x32x64xi8>, %s: tensor<3x8x64xf32>) -> tensor<?x3x64xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %a, %c0 : tensor<?x8x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%m) : tensor<?x3x8x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x3x8x64xf32>) -> tensor<?x3x8x64xf32>
  %p = linalg.generic {indexing_maps = [#rows, #codes, #partial],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %c : tensor<?x8x32xf32>, tensor<3x8x32x64xi8>) outs(%f : tensor<?x3x8x64xf32>) {
  ^bb0(%x: f32, %byte: i8, %sum: f32):
    %code = arith.extui %byte : i8 to i32
    %y = arith.sitofp %code : i32 to f32
    %next = math.fma %x, %y, %sum : f32
    linalg.yield %next : f32
  } -> tensor<?x3x8x64xf32>
  %g = tensor.empty(%m) : tensor<?x3x64xf32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<?x3x64xf32>) -> tensor<?x3x64xf32>
  %r = linalg.generic {indexing_maps = [#sums, #scales, #result],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %s : tensor<?x3x8x64xf32>, tensor<3x8x64xf32>) outs(%h : tensor<?x3x64xf32>) {
  ^bb0(%x: f32, %scale: f32, %sum: f32):
    %next = math.fma %x, %scale, %sum : f32
    linalg.yield %next : f32
  } -> tensor<?x3x64xf32>
  return %r : tensor<?x3x64xf32>
}

// -----

// Left alone: somebody else reads the inner sum.
// CHECK-LABEL: func.func @shared(
// CHECK-NOT:     scf.for
// AVX2-LABEL: func.func @shared(
#partial = affine_map<(m, b, n, k) -> (m, b, n)>
func.func @shared(%a: tensor<4x8x32xf32>, %c: tensor<8x32x64xf32>, %f: tensor<4x8x64xf32>, %h: tensor<4x64xf32>) -> (tensor<4x8x64xf32>, tensor<4x64xf32>) {
  %p = linalg.generic {indexing_maps = [affine_map<(m, b, n, k) -> (m, b, k)>, affine_map<(m, b, n, k) -> (b, k, n)>, #partial],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %c : tensor<4x8x32xf32>, tensor<8x32x64xf32>) outs(%f : tensor<4x8x64xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %next = math.fma %x, %y, %sum : f32
    linalg.yield %next : f32
  } -> tensor<4x8x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, b) -> (m, b, n)>, affine_map<(m, n, b) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p : tensor<4x8x64xf32>) outs(%h : tensor<4x64xf32>) {
  ^bb0(%x: f32, %sum: f32):
    %next = arith.addf %x, %sum : f32
    linalg.yield %next : f32
  } -> tensor<4x64xf32>
  return %p, %r : tensor<4x8x64xf32>, tensor<4x64xf32>
}

// -----

// Steps that add the products of the next elements of a row and the next parts of a word are
// iterations of a loop, which reads the tensor of which the rows are slices. Eight rows are two tiles of
// 4 rows, not 6 and 2.
// CHECK-LABEL: func.func @words(
// CHECK-SAME:    %[[A:[a-z0-9]+]]: tensor<8x8x64xf32>
// CHECK:           tensor.empty() : tensor<1x64x64xf32>
// CHECK-NOT:       step %c6
// CHECK:           scf.for %{{.*}} step %c4
// CHECK:             scf.for %{{.*}} = %c0 to %c64 step %c1 iter_args
// CHECK:               tensor.extract %[[A]][
// CHECK-COUNT-4:       math.fma
// CHECK-NOT:           math.fma
// CHECK:               scf.yield
#word = affine_map<(m, b, n, k) -> (b, k, n)>
#row = affine_map<(m, b, n, k) -> (m, b, k)>
#partial = affine_map<(m, b, n, k) -> (m, b, n)>
func.func @words(%a: tensor<8x8x64xf32>, %c: tensor<8x32x64xi32>, %f: tensor<8x8x64xf32>, %h: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %first = tensor.extract_slice %a[0, 0, 0] [8, 8, 32] [1, 1, 2] : tensor<8x8x64xf32> to tensor<8x8x32xf32>
  %second = tensor.extract_slice %a[0, 0, 1] [8, 8, 32] [1, 1, 2] : tensor<8x8x64xf32> to tensor<8x8x32xf32>
  %c16 = arith.constant 16 : i32
  %p = linalg.generic {indexing_maps = [#row, #row, #word, #partial],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%first, %second, %c : tensor<8x8x32xf32>, tensor<8x8x32xf32>, tensor<8x32x64xi32>) outs(%f : tensor<8x8x64xf32>) {
  ^bb0(%x: f32, %y: f32, %word: i32, %sum: f32):
    %low = arith.shli %word, %c16 : i32
    %low_float = arith.sitofp %low : i32 to f32
    %next = math.fma %x, %low_float, %sum : f32
    %high = arith.shrui %word, %c16 : i32
    %high_float = arith.sitofp %high : i32 to f32
    %last = math.fma %y, %high_float, %next : f32
    linalg.yield %last : f32
  } -> tensor<8x8x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, b) -> (m, b, n)>, affine_map<(m, n, b) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p : tensor<8x8x64xf32>) outs(%h : tensor<8x64xf32>) {
  ^bb0(%x: f32, %sum: f32):
    %next = arith.addf %x, %sum : f32
    linalg.yield %next : f32
  } -> tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}
