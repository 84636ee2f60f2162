//===- rope-streaming.mlir - ropes of tensors larger than the cache -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-decompose-rotations="prefetch-distance=6144 prefetch-in-order=6144 prefetch-from=1000 stream-from=5000" --posenc-vectorize-tiles="prefetch-distance=6144 prefetch-in-order=6144 prefetch-from=1000 stream-from=5000" --convert-posenc-tables-to-vector="prefetch-distance=6144 prefetch-in-order=6144 prefetch-from=1000 stream-from=5000" | FileCheck %s

// The size of the whole tensor selects one of three loops: for tensors in the
// cache, for tensors in memory, and with non-temporal stores if the output is
// not an input and is aligned to vectors.
// CHECK-LABEL: func.func @out_of_place
// CHECK-SAME: (%[[X:.*]]: memref<?x8x64xf32, strided<[?, ?, 1]>>, %{{.*}}: memref<?xi64>, %[[O:.*]]: memref<?x8x64xf32, strided<[?, ?, 1]>>)
// CHECK: %[[ONE:.*]] = arith.constant 1000 : index
// CHECK: %[[LARGE:.*]] = arith.cmpi uge, %[[BYTES:.*]], %[[ONE]]
// CHECK: scf.if %[[LARGE]]
// CHECK: %[[FIVE:.*]] = arith.constant 5000 : index
// CHECK: arith.cmpi uge, %[[BYTES]], %[[FIVE]]
// CHECK: memref.extract_strided_metadata %[[O]]
// CHECK: arith.cmpi ne
// CHECK: scf.if
// The prefetch distance is 24 rows of 256 bytes.
// CHECK: %[[AHEAD:.*]] = arith.constant 24 : index
// CHECK: arith.addi %{{.*}}, %[[AHEAD]] : index
// CHECK: memref.prefetch %[[X]]
// CHECK-NEXT: vector.load %[[X]]
// Both vectors of a cache line are processed together.
// CHECK: vector.store %{{.*}}, %[[O]][%[[T:.*]], %[[H:.*]], %[[LANE:.*]]] {alignment = 32 : i64, nontemporal = true}
// CHECK-NEXT: vector.store %{{.*}}, %[[O]][%[[T]], %[[H]], %{{.*}}] {alignment = 32 : i64, nontemporal = true}
// CHECK-NEXT: vector.store %{{.*}}, %[[O]][%[[T]], %[[H]], %{{.*}}] {alignment = 32 : i64, nontemporal = true}
// CHECK-NEXT: vector.store %{{.*}}, %[[O]][%[[T]], %[[H]], %{{.*}}] {alignment = 32 : i64, nontemporal = true}
// CHECK: } else {
// CHECK: memref.prefetch %[[X]]
// CHECK-NEXT: vector.load %[[X]]
// CHECK-NOT: nontemporal
// CHECK: vector.store %{{.*}}, %[[O]]
// CHECK: } else {
// CHECK-NOT: memref.prefetch
// CHECK: vector.store %{{.*}}, %[[O]]
func.func @out_of_place(%x: memref<?x8x64xf32, strided<[?, ?, 1]>>, %p: memref<?xi64>, %o: memref<?x8x64xf32, strided<[?, ?, 1]>>) {
  posenc.rope half #posenc.frequencies<dim = 64> ins(%x : memref<?x8x64xf32, strided<[?, ?, 1]>>) positions(%p : memref<?xi64>) dims = [0] outs(%o : memref<?x8x64xf32, strided<[?, ?, 1]>>)
  return
}

// No non-temporal stores: the second half of a row is not aligned, or the
// destination is the input.
// CHECK-LABEL: func.func @never
// CHECK: memref.prefetch
// CHECK-NOT: nontemporal
// CHECK: return
func.func @never(%x: memref<?x72xf32>, %y: memref<?x64xf32>, %p: memref<?xi64>, %o: memref<?x72xf32>) {
  posenc.rope half #posenc.frequencies<dim = 72> ins(%x : memref<?x72xf32>) positions(%p : memref<?xi64>) dims = [0] outs(%o : memref<?x72xf32>)
  posenc.rope half #posenc.frequencies<dim = 64> ins(%y : memref<?x64xf32>) positions(%p : memref<?xi64>) dims = [0] outs(%y : memref<?x64xf32>)
  return
}
