//===- expand.mlir - conversions, copies and scratch memory ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --pass-pipeline='builtin.module(posenc-expand-bf16,func.func(posenc-copy-to-loops,posenc-promote-allocs-to-stack))' | FileCheck %s

// NaNs are selected on 32-bit lanes.
// CHECK-LABEL: func.func @truncate
// CHECK: %[[NAN:.*]] = arith.cmpf uno
// CHECK: arith.select %[[NAN]], %{{.*}}, %{{.*}} : vector<8xi1>, vector<8xi32>
// CHECK: arith.trunci %{{.*}} : vector<8xi32> to vector<8xi16>
// CHECK: arith.bitcast %{{.*}} : vector<8xi16> to vector<8xbf16>
func.func @truncate(%x: vector<8xf32>) -> vector<8xbf16> {
  %r = arith.truncf %x : vector<8xf32> to vector<8xbf16>
  return %r : vector<8xbf16>
}

// CHECK-LABEL: func.func @extend
// CHECK: arith.extui %{{.*}} : i16 to i32
// CHECK: arith.shli
func.func @extend(%x: bf16) -> f32 {
  %r = arith.extf %x : bf16 to f32
  return %r : f32
}

// Odd elements are converted before even ones. Subnormal numbers become 0, also
// as intermediate results.
// CHECK-LABEL: func.func @dot
// CHECK-SAME: (%[[S:.*]]: vector<16xf32>, %[[A:.*]]: vector<32xbf16>, %[[B:.*]]: vector<32xbf16>)
// CHECK: %[[AW:.*]] = vector.bitcast %[[A]] : vector<32xbf16> to vector<16xi32>
// CHECK: %[[AE:.*]] = arith.shli %[[AW]]
// CHECK: %[[AO:.*]] = arith.andi %[[AW]]
// CHECK: %[[AEF:.*]] = arith.bitcast %[[AE]]
// CHECK: %[[AOF:.*]] = arith.bitcast %[[AO]]
// CHECK: %[[BW:.*]] = vector.bitcast %[[B]] : vector<32xbf16> to vector<16xi32>
// CHECK: %[[SA:.*]] = math.absf %[[S]]
// CHECK: %[[SMALL:.*]] = arith.cmpf olt, %[[SA]]
// CHECK: %[[START:.*]] = arith.select %[[SMALL]], %{{.*}}, %[[S]]
// CHECK: %[[X:.*]] = arith.select %{{.*}}, %{{.*}}, %[[AOF]]
// CHECK: %[[ODD:.*]] = math.fma %[[X]], %{{.*}}, %[[START]]
// CHECK: %[[FLUSHED:.*]] = arith.select %{{.*}}, %{{.*}}, %[[ODD]]
// CHECK: %[[Y:.*]] = arith.select %{{.*}}, %{{.*}}, %[[AEF]]
// CHECK: %[[ALL:.*]] = math.fma %[[Y]], %{{.*}}, %[[FLUSHED]]
// CHECK: %[[R:.*]] = arith.select %{{.*}}, %{{.*}}, %[[ALL]]
// CHECK: return %[[R]]
func.func @dot(%s: vector<16xf32>, %a: vector<32xbf16>, %b: vector<32xbf16>) -> vector<16xf32> {
  %r = x86vector.avx512.dot %s, %a, %b : vector<32xbf16> -> vector<16xf32>
  return %r : vector<16xf32>
}

// CHECK-LABEL: func.func @f16
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @f16(%x: f32) -> f16 {
  %r = arith.truncf %x : f32 to f16
  return %r : f16
}

// Copies of tensors with dynamic sizes become loops first.
// CHECK-LABEL: func.func private @tensors
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: arith.extf
func.func private @tensors(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = arith.truncf %x : tensor<?xf32> to tensor<?xbf16>
  %s = arith.extf %r : tensor<?xbf16> to tensor<?xf32>
  return %s : tensor<?xf32>
}

// Rows are copied by vectors, and their remainders by elements.
// CHECK-LABEL: func.func @copy
// CHECK-SAME: %[[A:.*]]: memref<4x8xf32, {{.*}}>, %[[B:.*]]: memref<4x8xf32>
// CHECK: scf.for
// CHECK: scf.for
// CHECK: %[[X:.*]] = vector.load %[[A]]{{.*}} vector<8xf32>
// CHECK: vector.store %[[X]], %[[B]]{{.*}} vector<8xf32>
// CHECK: scf.for
// CHECK: memref.store %{{.*}}, %[[B]]
func.func @copy(%a: memref<4x8xf32, strided<[16, 1]>>, %b: memref<4x8xf32>) {
  memref.copy %a, %b : memref<4x8xf32, strided<[16, 1]>> to memref<4x8xf32>
  return
}

// A copy whose operands may be the same memory compares their addresses first.
// CHECK-LABEL: func.func @same
// CHECK: %[[DIFFER:.*]] = arith.cmpi ne
// CHECK: scf.if %[[DIFFER]]
// CHECK: vector.store
func.func @same(%a: memref<?x8xf32>, %b: memref<?x8xf32>) {
  linalg.copy ins(%a : memref<?x8xf32>) outs(%b : memref<?x8xf32>)
  return
}

// Two different offsets in a buffer are not the same memory.
// CHECK-LABEL: func.func @parts
// CHECK-SAME: %[[A:[a-z0-9]+]]: memref<4xf32, {{.*}}>, %[[B:[a-z0-9]+]]: memref<4xf32, {{.*}}>)
// CHECK: %{{[^,]+}}, %[[A0:[^,]+]], {{.*}} = memref.extract_strided_metadata %[[A]]
// CHECK: %[[ABYTES:.*]] = arith.muli %[[A0]], %c4
// CHECK: %[[APLACE:.*]] = arith.addi %{{.*}}, %[[ABYTES]]
// CHECK: %{{[^,]+}}, %[[B0:[^,]+]], {{.*}} = memref.extract_strided_metadata %[[B]]
// CHECK: %[[BBYTES:.*]] = arith.muli %[[B0]], %c4
// CHECK: %[[BPLACE:.*]] = arith.addi %{{.*}}, %[[BBYTES]]
// CHECK: %[[DIFFER:.*]] = arith.cmpi ne, %[[APLACE]], %[[BPLACE]]
// CHECK: scf.if %[[DIFFER]]
func.func @parts(%a: memref<4xf32, strided<[1], offset: ?>>, %b: memref<4xf32, strided<[1], offset: ?>>) {
  linalg.copy ins(%a : memref<4xf32, strided<[1], offset: ?>>) outs(%b : memref<4xf32, strided<[1], offset: ?>>)
  return
}

// Stack memory is not deallocated.
// CHECK-LABEL: func.func @freed
// CHECK: memref.alloca() {posenc.shared_buffer} : memref<4xi64>
// CHECK: return
func.func @freed(%v: i64) {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<4xi64>
  memref.store %v, %a[%c0] : memref<4xi64>
  memref.dealloc %a : memref<4xi64>
  return
}

// CHECK-LABEL: func.func @scratch
// CHECK-NEXT: memref.alloca() : memref<4xi64>
// CHECK: scf.for
// CHECK-NOT: memref.alloc()
func.func @scratch(%n: index, %v: i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.alloc() : memref<4xi64>
    memref.store %v, %a[%c0] : memref<4xi64>
  }
  return
}

// Buffers that escape their block and large buffers stay on the heap.
// CHECK-LABEL: func.func @kept
// CHECK: memref.alloc()
// CHECK: memref.alloc()
func.func @kept(%v: i64) -> memref<4xi64> {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<4xi64>
  %b = memref.alloc() : memref<8193xi64>
  memref.store %v, %b[%c0] : memref<8193xi64>
  return %a : memref<4xi64>
}

// A dynamic size counts as its upper bound; buffers without one stay on the
// heap.
// CHECK-LABEL: func.func @bounded
// CHECK-NEXT: %[[MEMORY:.*]] = memref.alloca() {alignment = 64 : i64} : memref<512xi8>
// CHECK: %[[SIZE:.*]] = affine.min
// CHECK: memref.view %[[MEMORY]][%{{.*}}][%[[SIZE]]] : memref<512xi8> to memref<?x4xf32>
// CHECK: memref.alloc(%{{.*}}) : memref<?x4xf32>
func.func @bounded(%n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %n step %c32 {
    %size = affine.min affine_map<(d0, d1) -> (d0 - d1, 32)>(%n, %i)
    %a = memref.alloc(%size) : memref<?x4xf32>
    memref.store %v, %a[%c0, %c0] : memref<?x4xf32>
    %b = memref.alloc(%n) : memref<?x4xf32>
    memref.store %v, %b[%c0, %c0] : memref<?x4xf32>
  }
  return
}

// Buffers move to the stack while there is room for all of them. Buffers
// outside of loops may be used by several loops, so they are marked `shared`.
// CHECK-LABEL: func.func @many
// CHECK-COUNT-8: memref.alloca() {posenc.shared_buffer} : memref<65536xi8>
// CHECK-NOT: memref.alloca()
// CHECK: memref.alloc() : memref<65536xi8>
func.func @many(%v: i8) {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<65536xi8>
  memref.store %v, %a[%c0] : memref<65536xi8>
  %b = memref.alloc() : memref<65536xi8>
  memref.store %v, %b[%c0] : memref<65536xi8>
  %c = memref.alloc() : memref<65536xi8>
  memref.store %v, %c[%c0] : memref<65536xi8>
  %d = memref.alloc() : memref<65536xi8>
  memref.store %v, %d[%c0] : memref<65536xi8>
  %e = memref.alloc() : memref<65536xi8>
  memref.store %v, %e[%c0] : memref<65536xi8>
  %f = memref.alloc() : memref<65536xi8>
  memref.store %v, %f[%c0] : memref<65536xi8>
  %g = memref.alloc() : memref<65536xi8>
  memref.store %v, %g[%c0] : memref<65536xi8>
  %h = memref.alloc() : memref<65536xi8>
  memref.store %v, %h[%c0] : memref<65536xi8>
  %i = memref.alloc() : memref<65536xi8>
  memref.store %v, %i[%c0] : memref<65536xi8>
  return
}
