//===- lower-launches.mlir - launches and device memory as calls ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-lower-launches --canonicalize | FileCheck %s

// The call allocates device memory, and frees it after the last launch.
// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[N:.*]]: index, %[[CALL:.*]]: i64)
// CHECK: %[[COUNT:.*]] = arith.index_cast %[[N]] : index to i64
// CHECK: %[[BYTES:.*]] = arith.muli
// CHECK: %[[PLACE:.*]] = llvm.call @posenc.allocate(%[[CALL]], %{{.*}}) : (i64, i64) -> i64
// CHECK: llvm.inttoptr %[[PLACE]]
// CHECK: memref.view
// CHECK: llvm.call @posenc.enqueue(%[[CALL]],
// CHECK: llvm.call @posenc.release(%[[CALL]], %[[PLACE]]) : (i64, i64) -> ()
// CHECK-NEXT: return
module attributes {gpu.container_module} {
  func.func @f(%n: index) attributes {posenc.abi = #posenc.abi<inputs = [#posenc.arg<"n", index, []>], outputs = [], sizes = [], in_place = []>} {
    %c1 = arith.constant 1 : index
    %0 = memref.alloc(%n) : memref<?x4xf32>
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%0 : memref<?x4xf32>)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%a: memref<?x4xf32>) kernel {
      gpu.return
    }
  }
}
