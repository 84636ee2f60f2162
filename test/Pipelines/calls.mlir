//===- calls.mlir - ownership of returned buffers -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-compile %s --emit=vector -o - | FileCheck %s
// RUN: posenc-opt %s --posenc-create-kernels --posenc-bufferize-kernels --posenc-deallocate-buffers | FileCheck %s --check-prefix=OWNED
// RUN: posenc-run %s --function=rotated --input=4x8xf32=random --input=4xi64=iota
// RUN: posenc-run %s --function=picked --input=2x4x8xf32=random --input=4xi64=iota

#f = #posenc.frequencies<dim = 8, base = 10000.0>

// A result that is a destination argument is dropped from the results.
// CHECK-LABEL: func.func private @rotate(
// CHECK-NOT: ->
// CHECK-NOT: memref.alloc()
// CHECK-NOT: memref.dealloc
// CHECK: return
// Where it is not dropped, the caller may free it, so it is a copy.
// OWNED-LABEL: func.func private @rotate(
// OWNED-SAME: %[[OUT:[a-z0-9]+]]: memref<4x8xf32, strided<[?, 1], offset: ?>>) ->
// OWNED: %[[RESULT:.*]] = scf.if %false
// OWNED: bufferization.clone %[[OUT]]
// OWNED: return %[[RESULT]]
func.func private @rotate(%x: tensor<4x8xf32>, %p: tensor<4xi64>, %o: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = posenc.rope half #f ins(%x : tensor<4x8xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%o : tensor<4x8xf32>)
  return %r : tensor<4x8xf32>
}

// The caller must not free a part of an argument either.
// CHECK-LABEL: func.func private @pick(
// CHECK: %[[MINE:.*]] = memref.alloc
// CHECK-NOT: memref.copy
// CHECK: vector.store %{{.*}}, %[[MINE]]
// CHECK: return
func.func private @pick(%x: tensor<2x4x8xf32>) -> tensor<4x8xf32> {
  %s = tensor.extract_slice %x[1, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<2x4x8xf32> to tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @rotated(
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: memref<4x8xf32, strided<[?, 1]>>) attributes
// CHECK-NOT: memref.alloc()
// CHECK-NOT: memref.dealloc
// CHECK: call @rotate({{.*}}) : ({{.*}}) -> ()
// CHECK-NOT: memref.dealloc
// CHECK: return
func.func @rotated(%x: tensor<4x8xf32>, %p: tensor<4xi64>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %r = func.call @rotate(%x, %p, %e) : (tensor<4x8xf32>, tensor<4xi64>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @picked(
// CHECK: %[[PART:.*]] = call @pick(
// CHECK: memref.dealloc
// CHECK: return
func.func @picked(%x: tensor<2x4x8xf32>, %p: tensor<4xi64>) -> tensor<4x8xf32> {
  %s = func.call @pick(%x) : (tensor<2x4x8xf32>) -> tensor<4x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %r = posenc.rope half #f ins(%s : tensor<4x8xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%e : tensor<4x8xf32>)
  return %r : tensor<4x8xf32>
}
