//===- split-accesses.mlir - unaligned accesses are split -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --pass-pipeline='builtin.module(gpu.module(posenc-split-accesses))' | FileCheck %s

// CHECK-LABEL: gpu.func @copy(
// CHECK:         vector.load %{{.*}} {alignment = 8 : i64} : memref<?xf16>, vector<4xf16>
// CHECK:         vector.store %{{.*}} {alignment = 8 : i64} : memref<?xf16>, vector<4xf16>
// CHECK-COUNT-4: vector.load %{{.*}} : memref<?xf16>, vector<1xf16>
// CHECK-COUNT-4: vector.store %{{.*}} : memref<?xf16>, vector<1xf16>
// CHECK:         gpu.return
gpu.module @kernels {
  gpu.func @copy(%x: memref<?xf16>, %y: memref<?xf16>, %i: index) kernel {
    %v = vector.load %x[%i] {alignment = 8 : i64} : memref<?xf16>, vector<4xf16>
    vector.store %v, %y[%i] {alignment = 8 : i64} : memref<?xf16>, vector<4xf16>
    %w = vector.load %x[%i] : memref<?xf16>, vector<4xf16>
    vector.store %w, %y[%i] : memref<?xf16>, vector<4xf16>
    gpu.return
  }
}
