//===- lower-tensor-maps.mlir - tensor maps as parameters by value --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-lower-tensor-maps | FileCheck %s --check-prefix=BEFORE
// RUN: posenc-opt %s --pass-pipeline='builtin.module(posenc-lower-tensor-maps,gpu.module(convert-gpu-to-nvvm),posenc-lower-tensor-maps)' \
// RUN:   | FileCheck %s --check-prefix=AFTER
// RUN: posenc-opt %s --posenc-lower-launches | FileCheck %s --check-prefix=HOST

!map = !nvgpu.tensormap.descriptor<tensor = memref<80x64xbf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!tensor = memref<?x?x64xbf16, strided<[?, ?, 1]>>

// BEFORE: %[[MAP:.*]] = nvgpu.tma.create.descriptor
// BEFORE: %[[POINTER:.*]] = builtin.unrealized_conversion_cast %[[MAP]] : !nvgpu.tensormap.descriptor<{{.*}}> to !llvm.ptr
// BEFORE: gpu.launch_func {{.*}} args(%{{.*}} : memref<?xi64>, %[[POINTER]] : !llvm.ptr)

// The words: bf16, swizzle, promotion, bytes of an element, address, rank, sizes,
// strides in bytes, box. The parameter is the map itself.
// HOST-LABEL: func.func @f
// HOST-SAME: %[[CALL:[a-z0-9]+]]: i64)
// HOST: %[[MAP:.*]] = llvm.alloca %{{.*}} x i64 {alignment = 64 : i64} : (i64) -> !llvm.ptr
// HOST: %[[BF16:.*]] = llvm.mlir.constant(9 : i64)
// HOST: %[[SWIZZLE:.*]] = llvm.mlir.constant(3 : i64)
// HOST: %[[WORDS:.*]] = llvm.alloca %{{.*}} x i64 : (i64) -> !llvm.ptr
// HOST-NEXT: %[[AT:.*]] = llvm.getelementptr %[[WORDS]][0]
// HOST-NEXT: llvm.store %[[BF16]], %[[AT]]
// HOST-NEXT: %[[AT:.*]] = llvm.getelementptr %[[WORDS]][1]
// HOST-NEXT: llvm.store %[[SWIZZLE]], %[[AT]]
// HOST: llvm.getelementptr %[[WORDS]][13]
// HOST: llvm.call @posenc.encode_tensor_map(%[[CALL]], %[[MAP]], %[[WORDS]]) : (i64, !llvm.ptr, !llvm.ptr) -> ()
// HOST: llvm.store %[[MAP]], %{{.*}} : !llvm.ptr, !llvm.ptr
// HOST: llvm.call @posenc.enqueue
// HOST-NOT: nvgpu.tma
module attributes {gpu.container_module} {
  func.func @f(%x: !tensor, %y: memref<?xi64>) attributes {posenc.abi = #posenc.abi<inputs = [#posenc.arg<"x", tensor<?x?x64xbf16>, [0, 1]>], outputs = [#posenc.arg<"y", tensor<?xi64>, [2]>], sizes = [-1, -1, -1], in_place = [-1]>} {
    %c1 = arith.constant 1 : index
    %c80 = arith.constant 80 : index
    %c64 = arith.constant 64 : index
    %tensor = memref.cast %x : !tensor to memref<*xbf16>
    %map = nvgpu.tma.create.descriptor %tensor box[%c1, %c80, %c64] : memref<*xbf16> -> !map
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%y : memref<?xi64>, %map : !map)
    return
  }

// BEFORE: gpu.func @k(%{{.*}}: memref<?xi64>, %[[ARG:.*]]: !llvm.ptr) kernel attributes {nvgpu.tensor_maps = array<i32: 5>}
// BEFORE: llvm.ptrtoint %[[ARG]]
// AFTER: llvm.func @k({{.*}}, %[[ARG:.*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<16 x i64>, nvvm.grid_constant}) attributes
// AFTER-NOT: nvgpu.tensor_maps
// AFTER: llvm.ptrtoint %[[ARG]]
  gpu.module @kernels {
    gpu.func @k(%y: memref<?xi64>, %map: !map) kernel {
      %c0 = arith.constant 0 : index
      %pointer = builtin.unrealized_conversion_cast %map : !map to !llvm.ptr
      %address = llvm.ptrtoint %pointer : !llvm.ptr to i64
      memref.store %address, %y[%c0] : memref<?xi64>
      gpu.return
    }
  }
}
