//===- decompose-convert-pairing.mlir - permutations of pairs -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-decompose-convert-pairing | FileCheck %s

// CHECK-LABEL: func.func @window(
// CHECK-SAME:    %[[X:.*]]: tensor<?x10xf32>
// CHECK:         %[[W:.*]] = tensor.extract_slice %[[X]][0, 3] [%{{.*}}, 6] [1, 1]
// CHECK:         %[[M:.*]] = tensor.expand_shape %[[W]] {{\[\[}}0], [1, 2]] output_shape [%{{.*}}, 3, 2]
// CHECK:         %[[T:.*]] = linalg.transpose ins(%[[M]] : tensor<?x3x2xf32>) {{.*}} permutation = [0, 2, 1]
// CHECK:         %[[L:.*]] = tensor.collapse_shape %[[T]] {{.*}} : tensor<?x2x3xf32> into tensor<?x6xf32>
// CHECK:         tensor.insert_slice %[[L]] into %[[X]][0, 3]
func.func @window(%x: tensor<?x10xf32>) -> tensor<?x10xf32> {
  %r = posenc.convert_pairing interleaved to half dim = 6 offset = 3 %x : tensor<?x10xf32>
  return %r : tensor<?x10xf32>
}

// CHECK-LABEL: func.func @all(
// CHECK-NOT:     tensor.extract_slice
// CHECK:         linalg.transpose ins(%{{.*}} : tensor<?x2x3xi8>) {{.*}} permutation = [0, 2, 1]
// CHECK-NOT:     tensor.insert_slice
func.func @all(%x: tensor<?x6xi8>) -> tensor<?x6xi8> {
  %r = posenc.convert_pairing half to interleaved dim = 6 %x : tensor<?x6xi8>
  return %r : tensor<?x6xi8>
}

// CHECK-LABEL: func.func @same(
// CHECK-NEXT:    return %arg0
func.func @same(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  %r = posenc.convert_pairing half to half dim = 6 %x : tensor<?x6xf32>
  return %r : tensor<?x6xf32>
}
