//===- gpu-launches.mlir - launches of kernels that are written by hand ---===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The stage that `posenc-lower-launches` takes: functions with launches beside
// the kernels. CPUs cannot run it, so it is compiled for GPUs alone.
//
//===----------------------------------------------------------------------===//

#shared = #gpu.address_space<workgroup>

module attributes {gpu.container_module} {
  // A block of 128 threads reverses the whole tensor, in dynamic shared memory:
  // 16 KiB, which every kernel may use, and 128 KiB, which it must ask for.
  func.func @reverse_small(%in: memref<4096xf32>, %out: memref<4096xf32>) attributes {posenc.abi = #posenc.abi<inputs = [#posenc.arg<"x", tensor<4096xf32>, []>], outputs = [#posenc.arg<"y", tensor<4096xf32>, []>], sizes = [], in_place = [-1]>} {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %bytes = arith.constant 16384 : i32
    %n = arith.constant 4096 : index
    %x = memref.cast %in : memref<4096xf32> to memref<?xf32>
    %y = memref.cast %out : memref<4096xf32> to memref<?xf32>
    gpu.launch_func @kernels::@reverse blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)
      dynamic_shared_memory_size %bytes args(%x : memref<?xf32>, %y : memref<?xf32>, %n : index)
    return
  }
  func.func @reverse_large(%in: memref<32768xf32>, %out: memref<32768xf32>) attributes {posenc.abi = #posenc.abi<inputs = [#posenc.arg<"x", tensor<32768xf32>, []>], outputs = [#posenc.arg<"y", tensor<32768xf32>, []>], sizes = [], in_place = [-1]>} {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %bytes = arith.constant 131072 : i32
    %n = arith.constant 32768 : index
    %x = memref.cast %in : memref<32768xf32> to memref<?xf32>
    %y = memref.cast %out : memref<32768xf32> to memref<?xf32>
    gpu.launch_func @kernels::@reverse blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)
      dynamic_shared_memory_size %bytes args(%x : memref<?xf32>, %y : memref<?xf32>, %n : index)
    return
  }
  gpu.module @kernels {
    gpu.func @reverse(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c128 = arith.constant 128 : index
      %bytes = gpu.dynamic_shared_memory : memref<?xi8, #shared>
      %shared = memref.view %bytes[%c0][%n] : memref<?xi8, #shared> to memref<?xf32, #shared>
      %thread = gpu.thread_id x
      scf.for %i = %thread to %n step %c128 {
        %value = memref.load %x[%i] : memref<?xf32>
        memref.store %value, %shared[%i] : memref<?xf32, #shared>
      }
      gpu.barrier
      %last = arith.subi %n, %c1 : index
      scf.for %i = %thread to %n step %c128 {
        %from = arith.subi %last, %i : index
        %value = memref.load %shared[%from] : memref<?xf32, #shared>
        memref.store %value, %y[%i] : memref<?xf32>
      }
      gpu.return
    }
  }
}
