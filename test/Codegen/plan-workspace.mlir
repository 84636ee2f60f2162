//===- plan-workspace.mlir - memory between the loops of a kernel ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(func.func(posenc-plan-workspace))' | FileCheck %s
// RUN: posenc-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(func.func(posenc-plan-workspace,posenc-forall-to-tasks))' \
// RUN:   | FileCheck %s --check-prefix=SPLIT

// Buffers follow each other, aligned to cache lines; products of sizes are
// checked for overflow.
// CHECK-LABEL: func.func @dynamic
// CHECK-SAME: (%[[X:.*]]: memref<?x?xf32>, %[[O:.*]]: memref<?x?xf32>, %[[W:.*]]: memref<?xi8>, %[[B:.*]]: memref<1xi64>)
// CHECK-SAME: posenc.kernel = #posenc.kernel<measured = true, workspace = true>
// CHECK: arith.mului_extended
// CHECK: memref.view %[[W]][%c0{{.*}}][%{{.*}}, %{{.*}}] : memref<?xi8> to memref<?x?xf32>
// CHECK: memref.view %[[W]][%{{.*}}][%{{.*}}] : memref<?xi8> to memref<?x3xf16>
// CHECK: %[[TOTAL:.*]] = arith.select
// CHECK: memref.store %[[TOTAL]], %[[B]]
// CHECK-NOT: memref.alloc
// SPLIT-LABEL: func.func @dynamic
// SPLIT-SAME: phases = [true, true]
// SPLIT: %[[PHASE:.*]] = memref.load
// SPLIT: %[[ASKED:.*]] = arith.cmpi eq, %[[PHASE]], %c-1
// SPLIT-NEXT: scf.if %[[ASKED]] {
// SPLIT-NEXT: memref.store
#abi = #posenc.abi<inputs = [#posenc.arg<"x", tensor<?x?xf32>, [0, 1]>], outputs = [#posenc.arg<"o", tensor<?x?xf32>, [0, 1]>], sizes = [-1, -1], in_place = [-1]>
func.func @dynamic(%x: memref<?x?xf32>, %o: memref<?x?xf32>) attributes {posenc.abi = #abi} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 1.0 : f32
  %h = arith.constant 1.0 : f16
  %m = memref.dim %x, %c0 : memref<?x?xf32>
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  %a = memref.alloc(%m, %n) : memref<?x?xf32>
  %b = memref.alloc(%m) : memref<?x3xf16>
  scf.forall (%i) in (%m) {
    memref.store %f, %a[%i, %c0] : memref<?x?xf32>
    memref.store %h, %b[%i, %c0] : memref<?x3xf16>
  }
  scf.forall (%i) in (%m) {
    %y = memref.load %a[%i, %c0] : memref<?x?xf32>
    memref.store %y, %o[%i, %c0] : memref<?x?xf32>
  }
  return
}

// -----

// A buffer takes over the memory of one of the same bytes that is not needed any
// more. %b is needed together with %a and with %c; the memory of %c, too, is
// needed where its address is used.
// CHECK-LABEL: func.func @reuse
// CHECK-SAME: %[[W:[a-z0-9]+]]: memref<?xi8>
// CHECK: memref.view %[[W]][%[[A:.*]]][%{{.*}}] : memref<?xi8> to memref<?x4xf32>
// CHECK: memref.view %[[W]][%[[B:.*]]][%{{.*}}] : memref<?xi8> to memref<?x2x4xf16>
// CHECK: memref.view %[[W]][%[[A]]][%{{.*}}] : memref<?xi8> to memref<?x8xf16>
// CHECK: memref.view %[[W]][%[[B]]][%{{.*}}] : memref<?xi8> to memref<?x4xf32>
// CHECK-NOT: memref.view %[[W]][%[[A]]]
// CHECK-NOT: memref.view %[[W]][%[[B]]]
// CHECK: memref.view %[[W]]
// CHECK: return
#abi = #posenc.abi<inputs = [#posenc.arg<"x", tensor<?xf32>, [0]>], outputs = [#posenc.arg<"o", tensor<?xf32>, [0]>], sizes = [-1], in_place = [-1]>
func.func @reuse(%x: memref<?xf32>, %o: memref<?xf32>) attributes {posenc.abi = #abi} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 1.0 : f32
  %h = arith.constant 1.0 : f16
  %n = memref.dim %x, %c0 : memref<?xf32>
  %a = memref.alloc(%n) : memref<?x4xf32>
  %b = memref.alloc(%n) : memref<?x2x4xf16>
  %c = memref.alloc(%n) : memref<?x8xf16>
  %d = memref.alloc(%n) : memref<?x4xf32>
  %e = memref.alloc(%n) : memref<?x4xf32>
  scf.forall (%i) in (%n) {
    memref.store %f, %a[%i, %c0] : memref<?x4xf32>
  }
  %row = memref.subview %a[0, 0] [%n, 1] [1, 1] : memref<?x4xf32> to memref<?x1xf32, strided<[4, 1]>>
  scf.forall (%i) in (%n) {
    %y = memref.load %row[%i, %c0] : memref<?x1xf32, strided<[4, 1]>>
    memref.store %h, %b[%i, %c0, %c0] : memref<?x2x4xf16>
  }
  scf.forall (%i) in (%n) {
    %y = memref.load %b[%i, %c0, %c0] : memref<?x2x4xf16>
    memref.store %y, %c[%i, %c0] : memref<?x8xf16>
  }
  %address = memref.extract_aligned_pointer_as_index %c : memref<?x8xf16> -> index
  scf.forall (%i) in (%n) {
    memref.store %f, %d[%i, %c0] : memref<?x4xf32>
  }
  scf.forall (%i) in (%n) {
    %y = memref.load %d[%i, %c0] : memref<?x4xf32>
    memref.store %y, %e[%i, %c0] : memref<?x4xf32>
  }
  scf.forall (%i) in (%n) {
    %y = memref.load %e[%i, %c0] : memref<?x4xf32>
    %z = arith.index_cast %address : index to i32
    %u = arith.uitofp %z : i32 to f32
    %v = arith.addf %u, %y : f32
    memref.store %v, %o[%i] : memref<?xf32>
  }
  return
}

// -----

// Small buffers are on the stack, where phases share memory.
// CHECK-LABEL: func.func @small
// CHECK: memref.alloca() {alignment = 64 : i64, posenc.shared_buffer} : memref<64xf32>
// SPLIT-LABEL: func.func @small
// SPLIT-SAME: shared_bytes = 256
// SPLIT-NOT: memref.alloc
// SPLIT: return
#abi = #posenc.abi<inputs = [], outputs = [#posenc.arg<"o", tensor<64xf32>, []>], sizes = [], in_place = [-1]>
func.func @small(%o: memref<64xf32>) attributes {posenc.abi = #abi} {
  %f = arith.constant 1.0 : f32
  %a = memref.alloc() : memref<64xf32>
  scf.forall (%i) in (64) {
    memref.store %f, %a[%i] : memref<64xf32>
  }
  scf.forall (%i) in (64) {
    %y = memref.load %a[%i] : memref<64xf32>
    memref.store %y, %o[%i] : memref<64xf32>
  }
  return
}

// -----

// On the stack, too, a buffer takes over the memory of an earlier one.
// CHECK-LABEL: func.func @small_reuse
// CHECK-COUNT-2: memref.alloca()
// CHECK-NOT: memref.alloca()
// CHECK: return
#abi = #posenc.abi<inputs = [], outputs = [#posenc.arg<"o", tensor<64xf32>, []>], sizes = [], in_place = [-1]>
func.func @small_reuse(%o: memref<64xf32>) attributes {posenc.abi = #abi} {
  %f = arith.constant 1.0 : f32
  %a = memref.alloc() : memref<64xf32>
  %b = memref.alloc() : memref<64xf32>
  %c = memref.alloc() : memref<64xf32>
  scf.forall (%i) in (64) {
    memref.store %f, %a[%i] : memref<64xf32>
  }
  scf.forall (%i) in (64) {
    %y = memref.load %a[%i] : memref<64xf32>
    memref.store %y, %b[%i] : memref<64xf32>
  }
  scf.forall (%i) in (64) {
    %y = memref.load %b[%i] : memref<64xf32>
    memref.store %y, %c[%i] : memref<64xf32>
  }
  scf.forall (%i) in (64) {
    %y = memref.load %c[%i] : memref<64xf32>
    memref.store %y, %o[%i] : memref<64xf32>
  }
  return
}

// -----

// A size that is read from memory is not known before the call, so its buffer
// is not planned.
// CHECK-LABEL: func.func @unknown
// CHECK-NOT: posenc.kernel
// CHECK: memref.alloc
#abi = #posenc.abi<inputs = [#posenc.arg<"x", tensor<1xi64>, []>], outputs = [#posenc.arg<"o", tensor<64xf32>, []>], sizes = [], in_place = [-1]>
func.func @unknown(%x: memref<1xi64>, %o: memref<64xf32>) attributes {posenc.abi = #abi} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 1.0 : f32
  %l = memref.load %x[%c0] : memref<1xi64>
  %n = arith.index_cast %l : i64 to index
  %a = memref.alloc(%n) : memref<?xf32>
  memref.store %f, %a[%c0] : memref<?xf32>
  %y = memref.load %a[%c0] : memref<?xf32>
  memref.store %y, %o[%c0] : memref<64xf32>
  memref.dealloc %a : memref<?xf32>
  return
}

// -----

// Nothing is left to compute, as for empty tensors, but the workspace is asked for.
// SPLIT-LABEL: func.func @empty
// SPLIT-SAME: index, %{{[a-z0-9]+}}: index)
// SPLIT-SAME: phases = [false]
// SPLIT: %[[PHASE:.*]] = memref.load
// SPLIT: %[[NONE:.*]] = arith.constant -1
// SPLIT-NEXT: %[[ASKED:.*]] = arith.cmpi eq, %[[PHASE]], %[[NONE]]
// SPLIT-NEXT: scf.if %[[ASKED]] {
#abi = #posenc.abi<inputs = [#posenc.arg<"x", tensor<?x0xf32>, [0]>], outputs = [#posenc.arg<"o", tensor<?x0xf32>, [0]>], sizes = [-1], in_place = [-1]>
func.func @empty(%x: memref<?x0xf32>, %o: memref<?x0xf32>, %w: memref<?xi8>, %b: memref<1xi64>) attributes {posenc.abi = #abi, posenc.kernel = #posenc.kernel<measured = true, workspace = true>} {
  %c0 = arith.constant 0 : index
  %bytes = arith.constant 0 : i64
  memref.store %bytes, %b[%c0] : memref<1xi64>
  return
}
