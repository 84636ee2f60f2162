//===- declare-shared-memory.mlir - dynamic shared memory is external -----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --pass-pipeline='builtin.module(gpu.module(convert-gpu-to-nvvm,posenc-declare-shared-memory))' \
// RUN:   | FileCheck %s

// Static shared memory and other globals stay as they are.
// CHECK-DAG: llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
// CHECK-DAG: llvm.mlir.global internal @__wg_k_0() {addr_space = 3 : i32} : !llvm.array<4 x f32>
// CHECK-DAG: llvm.mlir.global internal @empty() {addr_space = 0 : i32} : !llvm.array<0 x i8>
gpu.module @kernels {
  llvm.mlir.global internal @empty() : !llvm.array<0 x i8>
  gpu.func @k(%at: index) workgroup(%static: memref<4xf32, #gpu.address_space<workgroup>>) kernel {
    %bytes = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %value = memref.load %static[%at] : memref<4xf32, #gpu.address_space<workgroup>>
    %view = memref.view %bytes[%at][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<1xf32, #gpu.address_space<workgroup>>
    %c0 = arith.constant 0 : index
    memref.store %value, %view[%c0] : memref<1xf32, #gpu.address_space<workgroup>>
    gpu.return
  }
}
