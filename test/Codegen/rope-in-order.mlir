//===- rope-in-order.mlir - ropes of contiguous rows ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-decompose-rotations="prefetch-cache=2 prefetch-distance=4096 prefetch-in-order=0 streams-in-order=1 prefetch-from=1000 stream-from=5000" --posenc-vectorize-tiles="prefetch-cache=2 prefetch-distance=4096 prefetch-in-order=0 streams-in-order=1 prefetch-from=1000 stream-from=5000" --convert-posenc-tables-to-vector="prefetch-cache=2 prefetch-distance=4096 prefetch-in-order=0 streams-in-order=1 prefetch-from=1000 stream-from=5000" | FileCheck %s
// RUN: posenc-opt %s --posenc-decompose-rotations="prefetch-distance=4096 prefetch-in-order=2048 streams-in-order=1 prefetch-from=1000 stream-from=5000" --posenc-vectorize-tiles="prefetch-distance=4096 prefetch-in-order=2048 streams-in-order=1 prefetch-from=1000 stream-from=5000" --convert-posenc-tables-to-vector="prefetch-distance=4096 prefetch-in-order=2048 streams-in-order=1 prefetch-from=1000 stream-from=5000" | FileCheck %s --check-prefix=OWN
// RUN: posenc-opt %s --posenc-decompose-rotations="prefetch-distance=0 prefetch-in-order=0 streams-in-order=1 stream-from=5000" --posenc-vectorize-tiles="prefetch-distance=0 prefetch-in-order=0 streams-in-order=1 stream-from=5000" --convert-posenc-tables-to-vector="prefetch-distance=0 prefetch-in-order=0 streams-in-order=1 stream-from=5000" | FileCheck %s --check-prefix=NONE --implicit-check-not=memref.prefetch

// Large tensors that are rotated in place without gaps between rows have no
// prefetches. Others have prefetches, and may use non-temporal stores.
// CHECK-LABEL: func.func @rope
// CHECK-SAME: (%[[X:[^:]*]]: memref<?x8x64xf32, strided<[?, ?, 1]>>, %{{.*}}: memref<?xi64>, %[[O:[^:]*]]: memref
// CHECK: scf.if
// CHECK: memref.extract_strided_metadata %[[O]]
// CHECK: arith.cmpi eq
// CHECK: memref.extract_aligned_pointer_as_index %[[X]]
// CHECK: memref.extract_aligned_pointer_as_index %[[O]]
// CHECK: arith.cmpi eq
// CHECK: scf.if
// CHECK-NOT: memref.prefetch
// CHECK: vector.store {{.*}}, %[[O]]
// CHECK: } else {
// CHECK: scf.if
// CHECK: memref.prefetch %[[X]]{{.*}} locality<2>
// CHECK: vector.store {{.*}}, %[[O]]{{.*}} {alignment = 32 : i64, nontemporal = true}
// CHECK: } else {
// CHECK: memref.prefetch %[[X]]{{.*}} locality<2>
// CHECK-NOT: nontemporal
// CHECK: } else {
// CHECK-NOT: memref.prefetch
// CHECK: return

// Contiguous rows have their own prefetch distance: 8 positions of 256 bytes.
// OWN-LABEL: func.func @rope
// OWN: scf.if
// OWN: scf.if
// OWN: arith.constant 8 : index
// OWN: memref.prefetch {{.*}} locality<3>
// OWN: } else {
// OWN: arith.constant 16 : index
// OWN: memref.prefetch {{.*}} locality<3>

// Without prefetches, large results still use non-temporal stores.
// NONE-LABEL: func.func @rope
// NONE: nontemporal = true
// NONE: return
func.func @rope(%x: memref<?x8x64xf32, strided<[?, ?, 1]>>, %p: memref<?xi64>, %o: memref<?x8x64xf32, strided<[?, ?, 1]>>) {
  posenc.rope half #posenc.frequencies<dim = 64> ins(%x : memref<?x8x64xf32, strided<[?, ?, 1]>>) positions(%p : memref<?xi64>) dims = [0] outs(%o : memref<?x8x64xf32, strided<[?, ?, 1]>>)
  return
}

// Elements outside of the rotary window are gaps.
// CHECK-LABEL: func.func @window
// CHECK-NOT: extract_aligned_pointer
// CHECK: memref.prefetch
// CHECK: } else {
// CHECK: return
func.func @window(%x: memref<?x8x64xf32>, %p: memref<?xi64>) {
  posenc.rope half #posenc.frequencies<dim = 32> ins(%x : memref<?x8x64xf32>) positions(%p : memref<?xi64>) dims = [0] outs(%x : memref<?x8x64xf32>)
  return
}
