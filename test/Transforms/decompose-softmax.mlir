//===- decompose-softmax.mlir - softmax as generics -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-decompose-softmax --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @f32
// CHECK-NOT: linalg.softmax
// CHECK: arith.maxnumf {{.*}} : f32
// CHECK: math.exp {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.divf {{.*}} : f32
// CHECK-NOT: f16
func.func @f32(%x: tensor<?x8xf32>, %o: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %r = linalg.softmax dimension(1) ins(%x : tensor<?x8xf32>)
    outs(%o : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @f16
// CHECK-SAME: %{{.*}}: tensor<?x8xf16>, %[[O:.*]]: tensor<?x8xf16>
// CHECK: arith.extf
// CHECK: math.exp {{.*}} : f32
// CHECK: linalg.generic {{.*}} outs(%[[O]] : tensor<?x8xf16>)
// CHECK: arith.truncf
func.func @f16(%x: tensor<?x8xf16>, %o: tensor<?x8xf16>) -> tensor<?x8xf16> {
  %r = linalg.softmax dimension(0) ins(%x : tensor<?x8xf16>)
    outs(%o : tensor<?x8xf16>) -> tensor<?x8xf16>
  return %r : tensor<?x8xf16>
}

// Folded casts leave an input whose type is more static than the output's.
// CHECK-LABEL: func.func @static_input
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %{{.*}}: tensor<?x8xf32>
// CHECK: tensor.cast %[[X]] : tensor<4x8xf32> to tensor<?x8xf32>
// CHECK-NOT: linalg.softmax
func.func @static_input(%x: tensor<4x8xf32>, %o: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %r = linalg.softmax dimension(1) ins(%x : tensor<4x8xf32>)
    outs(%o : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// -----

func.func @memref(%x: memref<?xf32>) {
  // expected-error @below {{expected tensors; decompose it before bufferization}}
  linalg.softmax dimension(0) ins(%x : memref<?xf32>) outs(%x : memref<?xf32>)
  return
}
