//===- lower-launches.mlir - launches and device memory as calls ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --split-input-file --verify-diagnostics \
// RUN:   --posenc-lower-launches --canonicalize | FileCheck %s

// Intermediate tensors are parts of the workspace. A size that overflows becomes
// the largest integer.
// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[X:.*]]: memref<?x?xf32>, %[[CALL:.*]]: i64)
// CHECK-SAME: posenc.kernel = #posenc.kernel<workspace = true, launches = true>
// CHECK-DAG: %[[MAX:.*]] = arith.constant 9223372036854775807 : i64
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK-DAG: %[[FACTOR:.*]] = arith.constant 16 : i64
// CHECK: %[[M:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK: %[[BYTES:.*]], %[[HIGH:.*]] = arith.mului_extended %[[M]], %[[FACTOR]]
// CHECK: %[[WRAPS:.*]] = arith.cmpi ne, %[[HIGH]], %[[ZERO]]
// CHECK: %[[NEGATIVE:.*]] = arith.cmpi slt, %[[BYTES]], %[[ZERO]]
// CHECK: %[[WRONG:.*]] = arith.ori %[[NEGATIVE]], %[[WRAPS]]
// CHECK: %[[SIZE:.*]] = arith.select %[[WRONG]], %[[MAX]], %[[BYTES]]
// CHECK: %[[FIRST:.*]] = llvm.call @posenc.allocate(%[[CALL]], %[[SIZE]]) : (i64, i64) -> i64
// CHECK: llvm.inttoptr %[[FIRST]]
// CHECK: memref.view
// The second tensor is computed from the first. The third takes over the memory
// of the first, and the last one has another size.
// CHECK: llvm.call @posenc.allocate
// CHECK: llvm.inttoptr %[[FIRST]]
// CHECK: arith.addi
// CHECK: llvm.call @posenc.allocate
// CHECK-COUNT-3: llvm.call @posenc.enqueue(%[[CALL]],
// CHECK-NEXT: return
module attributes {gpu.container_module} {
  func.func @f(%x: memref<?x?xf32>) attributes {posenc.abi = #posenc.abi<inputs = [], outputs = [#posenc.arg<"x", tensor<?x?xf32>, [0, 1]>], sizes = [-1, -1], in_place = [-1]>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %m = memref.dim %x, %c0 : memref<?x?xf32>
    %n = memref.dim %x, %c1 : memref<?x?xf32>
    %sum = arith.addi %m, %n : index
    %0 = memref.alloc(%m) : memref<?x4xf32>
    %1 = memref.alloc(%m) : memref<?x4xf32>
    %2 = memref.alloc(%m) : memref<4x?xf32>
    %3 = memref.alloc(%sum) : memref<?x4xf32>
    %view = memref.cast %2 : memref<4x?xf32> to memref<?x?xf32>
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%0 : memref<?x4xf32>, %1 : memref<?x4xf32>)
    gpu.launch_func @kernels::@l blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%1 : memref<?x4xf32>, %view : memref<?x?xf32>)
    gpu.launch_func @kernels::@l blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%3 : memref<?x4xf32>, %view : memref<?x?xf32>)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%a: memref<?x4xf32>, %b: memref<?x4xf32>) kernel {
      gpu.return
    }
    gpu.func @l(%a: memref<?x4xf32>, %b: memref<?x?xf32>) kernel {
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @scalar(%n: index) attributes {posenc.abi = #posenc.abi<inputs = [#posenc.arg<"n", index, []>], outputs = [], sizes = [], in_place = []>} {
    %c1 = arith.constant 1 : index
    // expected-error @below {{cannot be in the workspace of 'scalar': its size depends on a scalar argument}}
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

// -----

// A launch has its dynamic shared memory; a kernel has the largest of its launches.
// CHECK-LABEL: func.func @shared
// CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i64)
// CHECK-DAG: %[[NONE:.*]] = llvm.mlir.constant(0 : i64)
// CHECK-DAG: %[[LITTLE:.*]] = llvm.mlir.constant(1024 : i64)
// CHECK-DAG: %[[MUCH:.*]] = llvm.mlir.constant(102400 : i64)
// CHECK: llvm.call @posenc.enqueue(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[LITTLE]], %{{.*}})
// CHECK: llvm.call @posenc.enqueue(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[MUCH]], %{{.*}})
// CHECK: llvm.call @posenc.enqueue(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[NONE]], %{{.*}})
// CHECK: llvm.mlir.global internal @posenc.kernel.k() {{.*}} !llvm.struct<(ptr, i64, array<64 x i64>)> {
// CHECK: %[[MAX:.*]] = llvm.mlir.constant(102400 : i64)
// CHECK: llvm.insertvalue %[[MAX]], %{{.*}}[1]
// CHECK: llvm.return
module attributes {gpu.container_module} {
  func.func @shared(%n: i64) attributes {posenc.abi = #posenc.abi<inputs = [#posenc.arg<"n", i64, []>], outputs = [], sizes = [], in_place = []>} {
    %c1 = arith.constant 1 : index
    %little = arith.constant 1024 : i32
    %much = arith.constant 102400 : i32
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) dynamic_shared_memory_size %little args(%n : i64)
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) dynamic_shared_memory_size %much args(%n : i64)
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%n : i64)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%n: i64) kernel {
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @unknown(%bytes: i32) attributes {posenc.abi = #posenc.abi<inputs = [#posenc.arg<"bytes", i32, []>], outputs = [], sizes = [], in_place = []>} {
    %c1 = arith.constant 1 : index
    // expected-error @below {{expected a constant size of dynamic shared memory}}
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) dynamic_shared_memory_size %bytes args(%bytes : i32)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%n: i32) kernel {
      gpu.return
    }
  }
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<8x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>

module attributes {gpu.container_module} {
  func.func @passed(%map: !map) {
    %c1 = arith.constant 1 : index
    // expected-error @below {{expected a tensor map that nvgpu.tma.create.descriptor creates}}
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%map : !map)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%map: !map) kernel {
      gpu.return
    }
  }
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<8x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>

func.func @returned(%x: memref<?x64xbf16>) -> !map {
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %tensor = memref.cast %x : memref<?x64xbf16> to memref<*xbf16>
  %map = nvgpu.tma.create.descriptor %tensor box[%c8, %c64] : memref<*xbf16> -> !map
  // expected-error @below {{expected launches only as users of a tensor map}}
  return %map : !map
}
