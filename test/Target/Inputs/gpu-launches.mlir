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
!map = !nvgpu.tensormap.descriptor<tensor = memref<80x64xbf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>

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
  // The kernel returns the words of its tensor map.
  func.func @map_words(%in: memref<?x?x64xbf16, strided<[?, ?, 1]>>, %out: memref<16xi64>) attributes {posenc.abi = #posenc.abi<inputs = [#posenc.arg<"x", tensor<?x?x64xbf16>, [0, 1]>], outputs = [#posenc.arg<"y", tensor<16xi64>, []>], sizes = [-1, -1], in_place = [-1], size_names = ["x_dim0", "x_dim1"]>} {
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %c80 = arith.constant 80 : index
    %tensor = memref.cast %in : memref<?x?x64xbf16, strided<[?, ?, 1]>> to memref<*xbf16>
    %map = nvgpu.tma.create.descriptor %tensor box[%c1, %c80, %c64] : memref<*xbf16> -> !map
    gpu.launch_func @kernels::@words blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
      args(%out : memref<16xi64>, %map : !map, %c16 : index)
    return
  }
  gpu.module @kernels {
    gpu.func @words(%y: memref<16xi64>, %map: !map, %n: index) kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
      %thread = gpu.thread_id x
      %is_word = arith.cmpi ult, %thread, %n : index
      scf.if %is_word {
        %pointer = builtin.unrealized_conversion_cast %map : !map to !llvm.ptr
        %number = arith.index_cast %thread : index to i64
        %address = llvm.getelementptr %pointer[%number] : (!llvm.ptr, i64) -> !llvm.ptr, i64
        %word = llvm.load %address : !llvm.ptr -> i64
        memref.store %word, %y[%thread] : memref<16xi64>
      }
      gpu.return
    }
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
