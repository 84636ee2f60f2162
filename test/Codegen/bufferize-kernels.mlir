//===- bufferize-kernels.mlir - kernels on strided memrefs ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --mlir-print-local-scope --posenc-create-kernels --posenc-bufferize-kernels --canonicalize | FileCheck %s

// Kernel arguments have dynamic strides; arguments of rank 1 are contiguous.
// Nothing is allocated or copied.
// CHECK-LABEL: func.func @rope(
// CHECK-SAME: %[[X:[^:]+]]: memref<?x4x8xf32, strided<[?, ?, 1]>>, %[[P:[^:]+]]: memref<?xi64>, %[[OUT:[^:]+]]: memref<?x4x8xf32, strided<[?, ?, 1]>>)
// CHECK-NEXT: posenc.rope {{.*}} ins(%[[X]] {{.*}} positions(%[[P]] {{.*}} outs(%[[OUT]]
// CHECK-NEXT: return
func.func @rope(%x: tensor<?x4x8xf32>, %p: tensor<?xi64>) -> tensor<?x4x8xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<?x4x8xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x4x8xf32>)
  return %r : tensor<?x4x8xf32>
}

// Private functions take and return parts of buffers.
// CHECK-LABEL: func.func private @pick(
// CHECK-SAME: %[[X:[^:]+]]: memref<2x16x8xf32, strided<[?, ?, 1], offset: ?>>) -> memref<16x8xf32, strided<[?, 1], offset: ?>>
func.func private @pick(%x: tensor<2x16x8xf32>) -> tensor<16x8xf32> {
  %s = tensor.extract_slice %x[1, 0, 0] [1, 16, 8] [1, 1, 1] : tensor<2x16x8xf32> to tensor<16x8xf32>
  return %s : tensor<16x8xf32>
}

// CHECK-LABEL: func.func @caller(
// CHECK-NOT: alloc
// CHECK-NOT: copy
// CHECK: %[[PART:.*]] = call @pick
// CHECK: posenc.rope {{.*}} ins(%[[PART]]
// CHECK: return
func.func @caller(%x: tensor<2x16x8xf32>, %p: tensor<16xi64>) -> tensor<16x8xf32> {
  %s = func.call @pick(%x) : (tensor<2x16x8xf32>) -> tensor<16x8xf32>
  %e = tensor.empty() : tensor<16x8xf32>
  %r = posenc.rope half #posenc.frequencies<dim = 8> ins(%s : tensor<16x8xf32>) positions(%p : tensor<16xi64>) dims = [0] outs(%e : tensor<16x8xf32>)
  return %r : tensor<16x8xf32>
}
