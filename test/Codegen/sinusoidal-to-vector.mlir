//===- sinusoidal-to-vector.mlir - sinusoidal as vectors ===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --convert-posenc-sinusoidal-to-vector | FileCheck %s

// CHECK-LABEL: func.func @interleaved
// CHECK: %[[V:.*]] = vector.interleave %{{.*}}, %{{.*}} : vector<8xf32> -> vector<16xf32>
// CHECK: vector.store %[[V]]
func.func @interleaved(%p: memref<4xi32>, %t: memref<4x16xf32>) {
  posenc.sinusoidal interleaved #posenc.frequencies<dim = 16> positions(%p : memref<4xi32>) outs(%t : memref<4x16xf32>)
  return
}

// CHECK-LABEL: func.func @halves
// CHECK-NOT: vector.interleave
// CHECK-COUNT-2: vector.store %{{.*}} : memref<4x16xf32>, vector<8xf32>
func.func @halves(%first: index, %t: memref<4x16xf32>) {
  posenc.sinusoidal cos_sin #posenc.frequencies<dim = 16> positions(%first : index) outs(%t : memref<4x16xf32>)
  return
}
