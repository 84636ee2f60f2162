//===- rope-to-gpu.mlir - rotations as GPU kernels ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --split-input-file --pass-pipeline='builtin.module(convert-posenc-rope-to-gpu,posenc-vectorize-tiles{vector-bytes=16 zip=false},cse,posenc-promote-allocs-to-registers,gpu.module(posenc-split-accesses),canonicalize,cse)' | FileCheck %s
// RUN: posenc-opt %s --convert-posenc-rope-to-gpu --canonicalize --cse --split-input-file | FileCheck %s --check-prefix=LINALG

// Before vectorization, rotations are linalg ops on views.
// LINALG-LABEL: gpu.func @half(
// LINALG: %[[LANES:.*]] = memref.alloca() : memref<8xbf16>
// LINALG: linalg.copy ins(%{{.*}} : memref<8xbf16, strided<[1], offset: ?>>) outs(%{{.*}} : memref<8xbf16
// LINALG: gpu.barrier
// LINALG: linalg.generic
// LINALG-SAME: ins({{.*}} : memref<8xbf16{{.*}}>, memref<8xbf16{{.*}}>, memref<8xf32{{.*}}>, memref<8xf32{{.*}}>)
// LINALG: math.fma

// Accesses have 16 bytes where addresses and strides are aligned.
// CHECK-LABEL: func.func @half
// CHECK: %[[REST:.*]] = arith.andi %{{.*}}, %c15
// CHECK: %[[ALIGNED:.*]] = arith.cmpi eq, %[[REST]], %c0
// CHECK: scf.if %[[ALIGNED]]
// CHECK: gpu.launch_func @kernels::@half blocks in (%{{.*}}, %c1, %c1) threads in (%c64, %c1, %c1)
// CHECK: else
// CHECK: gpu.launch_func @kernels::@half_narrow
// CHECK-LABEL: gpu.module @kernels
// CHECK: memref.global "private" constant @steps : memref<2048xf32>

// 40 rows of 8 columns are 5 per thread of a block of 64. All rows are loaded
// before the table is filled, and stored after it.
// CHECK: gpu.func @half(
// CHECK-SAME: workgroup(%{{.*}} : memref<64xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}
// CHECK-SAME: known_block_size = array<i32: 64, 1, 1>
// CHECK-COUNT-10: vector.load %{{.*}} {alignment = 16 : i64} : memref<?xbf16>, vector<8xbf16>
// CHECK-NOT: vector.store
// CHECK: nvvm.bar.warp.sync
// CHECK-NOT: vector.store
// CHECK: scf.for
// CHECK: scf.if
// CHECK: vector.store %{{.*}} : memref<64xf32, #gpu.address_space<workgroup>>, vector<1xf32>
// CHECK: gpu.barrier
// CHECK-COUNT-10: vector.store %{{.*}} {alignment = 16 : i64} : memref<?xbf16>, vector<8xbf16>
// CHECK: gpu.return

// CHECK: gpu.func @half_narrow(
// CHECK: vector.load %{{.*}} : memref<?xbf16>, vector<1xbf16>
func.func @half(%q: memref<?x32x128xbf16, strided<[?, ?, 1]>>, %k: memref<?x8x128xbf16, strided<[?, ?, 1]>>, %p: memref<?xi64>) {
  posenc.rope half #posenc.frequencies<dim = 128> ins(%q, %k : memref<?x32x128xbf16, strided<[?, ?, 1]>>, memref<?x8x128xbf16, strided<[?, ?, 1]>>) positions(%p : memref<?xi64>) dims = [0] outs(%q, %k : memref<?x32x128xbf16, strided<[?, ?, 1]>>, memref<?x8x128xbf16, strided<[?, ?, 1]>>)
  return
}

// -----

// A dynamic number of rows is a loop after the barrier. Elements outside of the
// window are copied, unless the rotation is in place.
// CHECK-LABEL: gpu.func @window(
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK-COUNT-4: vector.load %{{.*}} {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
// CHECK: %[[COPIES:.*]] = arith.cmpi ne
// CHECK: scf.if %[[COPIES]]
// CHECK: scf.for
// CHECK: vector.load
// CHECK: vector.store
func.func @window(%x: memref<?x?x80xf32>, %o: memref<?x?x80xf32>, %p: memref<?xi64>) {
  posenc.rope interleaved #posenc.frequencies<dim = 32> ins(%x : memref<?x?x80xf32>) positions(%p : memref<?xi64>) dims = [0] outs(%o : memref<?x?x80xf32>)
  return
}

// -----

// With table operands, no table is computed.
// CHECK-LABEL: gpu.func @tables(
// CHECK-NOT: math.fma %{{.*}} : vector<1xf64>
// CHECK: vector.load %{{.*}} : memref<?xf16>, vector<1xf16>
// CHECK: gpu.barrier
func.func @tables(%x: memref<?x4x16xf16>, %c: memref<?x8xf16>, %p: memref<?xi64>) {
  posenc.rotate half ins(%x : memref<?x4x16xf16>) tables(%c, %c : memref<?x8xf16>) dims = [0] outs(%x : memref<?x4x16xf16>)
  return
}

// -----

// Rows of two elements have no wide accesses. The kernels of the second
// operation have other names.
// CHECK: gpu.launch_func @kernels::@two_narrow blocks
// CHECK: gpu.launch_func @kernels::@two_narrow_0 blocks
func.func @two(%x: memref<1x1x2xf32>, %y: memref<1x1x2xf64>, %p: memref<1xi64>) {
  posenc.rope half #posenc.frequencies<dim = 2> ins(%x : memref<1x1x2xf32>) positions(%p : memref<1xi64>) dims = [0] outs(%x : memref<1x1x2xf32>)
  posenc.rope half #posenc.frequencies<dim = 2> ins(%y : memref<1x1x2xf64>) positions(%p : memref<1xi64>) dims = [0] outs(%y : memref<1x1x2xf64>)
  return
}
