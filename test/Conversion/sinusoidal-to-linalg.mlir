//===- sinusoidal-to-linalg.mlir - sinusoidal becomes a generic -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --convert-posenc-sinusoidal-to-linalg --split-input-file \
// RUN:   --mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: func.func @interleaved(
// CHECK-SAME:    %[[P:.*]]: tensor<2x?xi64>, %[[T:.*]]: tensor<2x?x8xf32>)
// CHECK:         %[[N:.*]] = tensor.dim %[[T]], %c1
// CHECK-DAG:     %[[E0:.*]] = tensor.empty(%[[N]]) : tensor<2x?x4xf32>
// CHECK-DAG:     %[[E1:.*]] = tensor.empty(%[[N]]) : tensor<2x?x4xf32>
// CHECK-DAG:     %[[HIGH:.*]] = arith.constant dense<[2935890503282001226, 293589050328200122, 29358905032820012, 2935890503282001]> : tensor<4xi64>
// CHECK-DAG:     %[[LOW:.*]] = arith.constant dense<[2131351028, 2790115480, 1138005007, 972793960]> : tensor<4xi64>
// CHECK:         %[[R:.*]]:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d2)>,
// CHECK-SAME:      ins(%[[P]], %[[HIGH]], %[[LOW]] :
// CHECK:           linalg.yield %{{.*}}, %{{.*}} : f32, f32
// CHECK:         %[[I0:.*]] = tensor.insert_slice %[[R]]#1 into %[[T]][0, 0, 0] [2, %[[N]], 4] [1, 1, 2]
// CHECK-NEXT:    %[[I1:.*]] = tensor.insert_slice %[[R]]#0 into %[[I0]][0, 0, 1] [2, %[[N]], 4] [1, 1, 2]
// CHECK-NEXT:    return %[[I1]]
func.func @interleaved(%p: tensor<2x?xi64>, %t: tensor<2x?x8xf32>) -> tensor<2x?x8xf32> {
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : tensor<2x?xi64>) outs(%t : tensor<2x?x8xf32>)
  return %r : tensor<2x?x8xf32>
}

// -----

// CHECK-LABEL: func.func @sin_cos(
// CHECK-SAME:    %[[P:.*]]: i64, %[[T:.*]]: tensor<5x8xbf16>)
// CHECK:         %[[R:.*]]:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> ()>,
// CHECK-SAME:      ins(%[[P]], %{{.*}} : i64, tensor<4xi64>, tensor<4xi64>)
// CHECK-NEXT:    ^bb0(%[[IN:[^:]*]]: i64,
// CHECK-NEXT:      %[[ROW:.*]] = linalg.index 0
// CHECK-NEXT:      %[[ROW64:.*]] = arith.index_cast %[[ROW]] : index to i64
// CHECK-NEXT:      arith.addi %[[IN]], %[[ROW64]] : i64
// CHECK:           linalg.yield %{{.*}}, %{{.*}} : bf16, bf16
// CHECK:         %[[I0:.*]] = tensor.insert_slice %[[R]]#1 into %[[T]][0, 0] [5, 4] [1, 1]
// CHECK-NEXT:    %[[I1:.*]] = tensor.insert_slice %[[R]]#0 into %[[I0]][0, 4] [5, 4] [1, 1]
// CHECK-NEXT:    return %[[I1]]
func.func @sin_cos(%p: i64, %t: tensor<5x8xbf16>) -> tensor<5x8xbf16> {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : i64) outs(%t : tensor<5x8xbf16>)
  return %r : tensor<5x8xbf16>
}

// -----

// CHECK-LABEL: func.func @cos_sin(
// CHECK-SAME:    %[[P:.*]]: tensor<i32>, %[[T:.*]]: tensor<8xf64>)
// CHECK:         %[[R:.*]]:2 = linalg.generic
// CHECK:           arith.extsi %{{.*}} : i32 to i64
// CHECK:           linalg.yield %{{.*}}, %{{.*}} : f64, f64
// CHECK:         %[[I0:.*]] = tensor.insert_slice %[[R]]#0 into %[[T]][0] [4] [1]
// CHECK-NEXT:    %[[I1:.*]] = tensor.insert_slice %[[R]]#1 into %[[I0]][4] [4] [1]
// CHECK-NEXT:    return %[[I1]]
func.func @cos_sin(%p: tensor<i32>, %t: tensor<8xf64>) -> tensor<8xf64> {
  %r = posenc.sinusoidal cos_sin #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : tensor<i32>) outs(%t : tensor<8xf64>)
  return %r : tensor<8xf64>
}

// -----

// CHECK-LABEL: func.func @not_on_memrefs(
// CHECK-NEXT:    posenc.sinusoidal
func.func @not_on_memrefs(%p: memref<5xi64>, %t: memref<5x8xf32>) {
  posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : memref<5xi64>) outs(%t : memref<5x8xf32>)
  return
}

// -----

// Empty results: nothing is written, and no slice begins in the table.
// CHECK-LABEL: func.func @no_positions(
// CHECK-SAME:    %{{.*}}: tensor<0xi64>, %[[T:.*]]: tensor<0x8xf32>)
// CHECK-NEXT:    return %[[T]]
func.func @no_positions(%p: tensor<0xi64>, %t: tensor<0x8xf32>) -> tensor<0x8xf32> {
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 8> positions(%p : tensor<0xi64>) outs(%t : tensor<0x8xf32>)
  return %r : tensor<0x8xf32>
}

// -----

// Each axis has slices of its own, in the order of the row.
// CHECK-LABEL: func.func @axes(
// CHECK-SAME:    %{{.*}}: tensor<2x5xi64>, %[[T:.*]]: tensor<5x10xf32>)
// CHECK:         %[[R:.*]]:2 = linalg.generic
// CHECK:         %[[SIN0:.*]] = tensor.extract_slice %[[R]]#1[0, 0] [5, 2] [1, 1]
// CHECK:         %[[I0:.*]] = tensor.insert_slice %[[SIN0]] into %[[T]][0, 0] [5, 2] [1, 1]
// CHECK:         %[[COS0:.*]] = tensor.extract_slice %[[R]]#0[0, 0] [5, 2] [1, 1]
// CHECK:         %[[I1:.*]] = tensor.insert_slice %[[COS0]] into %[[I0]][0, 2] [5, 2] [1, 1]
// CHECK:         %[[SIN1:.*]] = tensor.extract_slice %[[R]]#1[0, 2] [5, 3] [1, 1]
// CHECK:         %[[I2:.*]] = tensor.insert_slice %[[SIN1]] into %[[I1]][0, 4] [5, 3] [1, 1]
// CHECK:         %[[COS1:.*]] = tensor.extract_slice %[[R]]#0[0, 2] [5, 3] [1, 1]
// CHECK:         %[[I3:.*]] = tensor.insert_slice %[[COS1]] into %[[I2]][0, 7] [5, 3] [1, 1]
// CHECK:         return %[[I3]]
func.func @axes(%p: tensor<2x5xi64>, %t: tensor<5x10xf32>) -> tensor<5x10xf32> {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 10> axes <axial, [2, 3]>
    positions(%p : tensor<2x5xi64>) outs(%t : tensor<5x10xf32>)
  return %r : tensor<5x10xf32>
}

// -----

// CHECK-LABEL: func.func @zeros(
// CHECK-SAME:    %{{.*}}: tensor<5xi32>, %[[T:.*]]: tensor<5x9xf32>)
// CHECK:         %[[R:.*]]:2 = linalg.generic
// CHECK:           %[[P:.*]] = arith.extsi %{{.*}} : i32 to i64
// CHECK:           %[[IS:.*]] = arith.cmpi eq, %[[P]], %c1_i64
// CHECK:           %[[C:.*]] = arith.select %[[IS]], %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:      %[[S:.*]] = arith.select %[[IS]], %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:      linalg.yield %[[C]], %[[S]] : f32, f32
// CHECK:         %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<5x1xf32>
// CHECK:         %[[ALL:.*]] = tensor.insert_slice %[[ZEROS]] into %{{.*}}[0, 8] [5, 1] [1, 1]
// CHECK:         return %[[ALL]]
func.func @zeros(%p: tensor<5xi32>, %t: tensor<5x9xf32>) -> tensor<5x9xf32> {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8> zero_pad padding_position = 1
    positions(%p : tensor<5xi32>) outs(%t : tensor<5x9xf32>)
  return %r : tensor<5x9xf32>
}
