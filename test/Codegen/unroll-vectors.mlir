//===- unroll-vectors.mlir - kernels in a form for SPIR-V -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// REQUIRES: spirv
// RUN: posenc-opt %s --posenc-unroll-vectors --split-input-file | FileCheck %s
// RUN: posenc-opt %s --posenc-unroll-vectors=fused-fma --split-input-file \
// RUN:   | FileCheck %s --check-prefix=FUSED \
// RUN:   --implicit-check-not='spirv.FunctionCall'

// Host code is removed. The parameters of a launch are the first block, the
// offsets of both memrefs, and the size.
// CHECK: module attributes
// CHECK-SAME: posenc.kernel_constants = array<i32: 0, 1072693248, 0, 1073741824, 7, 8>
// CHECK-SAME: spirv.target_env
// CHECK-NOT: func.func
// CHECK: spirv.func @fma.f64
// CHECK-NOT: memref.global
// CHECK-LABEL: gpu.func @k
// CHECK-SAME: %[[X:[^:]*]]: memref<?xvector<4xi32>, #spirv.storage_class<StorageBuffer>>
// CHECK-SAME: %[[Y:[^:]*]]: memref<?xi16, #spirv.storage_class<StorageBuffer>>
// CHECK-SAME: %[[C:[^:]*]]: memref<?xi32, #spirv.storage_class<StorageBuffer>>
// CHECK-SAME: %[[W:[^:]*]]: memref<4xi32, #spirv.storage_class<PushConstant>>
// CHECK-SAME: posenc.kernel_type = (memref<?xbf16>, memref<?xf16>, index) -> ()
// CHECK-SAME: spirv.entry_point_abi = #spirv.entry_point_abi<workgroup_size = [64, 1, 1]>
// CHECK: memref.load %[[W]][%c0
// CHECK: memref.alloc() : memref<32xf64, #spirv.storage_class<Workgroup>>
// CHECK: %[[ID:.*]] = gpu.block_id x
// CHECK: arith.addi %{{.*}}, %[[ID]]
// Eight bf16 are one access.
// CHECK: %[[AT:.*]] = arith.shrui %{{.*}}, %c3
// CHECK: memref.load %[[X]][%[[AT]]] : memref<?xvector<4xi32>
// CHECK-COUNT-8: arith.bitcast %{{.*}} : i32 to f32
// CHECK-NOT: vector<8x
// The second f64 of the constants.
// CHECK: memref.load %[[C]]
// CHECK: memref.load %[[C]]
// CHECK: vector.bitcast %{{.*}} : vector<2xi32> to vector<1xf64>
// CHECK: spirv.FunctionCall @fma.f64
// CHECK: memref.store %{{.*}} : memref<32xf64, #spirv.storage_class<Workgroup>>
// CHECK: gpu.barrier
// CHECK: memref.store %{{.*}}, %[[Y]][%{{.*}}] : memref<?xi16
// CHECK: gpu.return
// FUSED: math.fma
module attributes {gpu.container_module} {
  func.func @host() {
    return
  }
  gpu.module @kernels {
    memref.global "private" constant @ones : memref<2xf64> = dense<[1.0, 2.0]>
    memref.global "private" constant @seven : memref<2xi32> = dense<[7, 8]>
    gpu.func @k(%x: memref<?xbf16>, %y: memref<?xf16>, %n: index) workgroup(%s: memref<32xf64, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c1 = arith.constant 1 : index
      %b = gpu.block_id x
      %at = arith.muli %b, %n : index
      %v = vector.load %x[%at] {alignment = 16 : i64} : memref<?xbf16>, vector<8xbf16>
      %f = arith.extf %v : vector<8xbf16> to vector<8xf32>
      %e = vector.extract_strided_slice %f {offsets = [3], sizes = [1], strides = [1]} : vector<8xf32> to vector<1xf32>
      %d = arith.extf %e : vector<1xf32> to vector<1xf64>
      %ones = memref.get_global @ones : memref<2xf64>
      %one = vector.load %ones[%c1] : memref<2xf64>, vector<1xf64>
      %r = math.fma %d, %one, %d : vector<1xf64>
      vector.store %r, %s[%b] : memref<32xf64, #gpu.address_space<workgroup>>, vector<1xf64>
      gpu.barrier
      %t = vector.extract %e[0] : f32 from vector<1xf32>
      %h = arith.truncf %t : f32 to f16
      memref.store %h, %y[%b] : memref<?xf16>
      gpu.return
    }
  }
}

// -----

// Vector values pass through loops and branches. Parameters that exceed the
// push constants are in a buffer.
// CHECK-LABEL: gpu.func @control
// CHECK-SAME: %[[X:[^:]*]]: memref<?xvector<2xi32>, #spirv.storage_class<StorageBuffer>>
// CHECK-SAME: %[[W:[^:]*]]: memref<34xi32, #spirv.storage_class<StorageBuffer>>
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (f32, f32)
// CHECK: scf.if {{.*}} -> (f32, f32)
// CHECK: scf.yield %{{.*}}, %{{.*}} : f32, f32
// CHECK: scf.while {{.*}} : (f32, f32) -> (f32, f32)
// CHECK: memref.store %{{.*}}, %[[X]][%{{.*}}] : memref<?xvector<2xi32>
gpu.module @kernels {
  gpu.func @control(%x: memref<?xf32, strided<[1], offset: ?>>, %n: index, %0: i64, %1: i64, %2: i64, %3: i64, %4: i64, %5: i64, %6: i64, %7: i64, %8: i64, %9: i64, %10: i64, %11: i64, %12: i64, %13: i64, %14: f64, %15: i16) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %v = vector.load %x[%c0] {alignment = 8 : i64} : memref<?xf32, strided<[1], offset: ?>>, vector<2xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %v) -> vector<2xf32> {
      %c = arith.cmpi ult, %i, %c1 : index
      %q = scf.if %c -> vector<2xf32> {
        %b = arith.addf %a, %v : vector<2xf32>
        scf.yield %b : vector<2xf32>
      } else {
        scf.yield %a : vector<2xf32>
      }
      scf.yield %q : vector<2xf32>
    }
    %w = scf.while (%a = %r) : (vector<2xf32>) -> vector<2xf32> {
      %sum = vector.reduction <add>, %a : vector<2xf32> into f32
      %c = arith.cmpf olt, %sum, %zero : f32
      scf.condition(%c) %a : vector<2xf32>
    } do {
    ^bb0(%a: vector<2xf32>):
      %b = arith.subf %a, %v : vector<2xf32>
      scf.yield %b : vector<2xf32>
    }
    %l, %h = vector.deinterleave %w : vector<2xf32> -> vector<1xf32>
    %z = vector.interleave %h, %l : vector<1xf32> -> vector<2xf32>
    %s = vector.shuffle %z, %w [2, 1] : vector<2xf32>, vector<2xf32>
    vector.store %s, %x[%c0] {alignment = 8 : i64} : memref<?xf32, strided<[1], offset: ?>>, vector<2xf32>
    gpu.return
  }
}
