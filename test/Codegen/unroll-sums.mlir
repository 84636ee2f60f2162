//===- unroll-sums.mlir - unrolled loops of register tiles ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --pass-pipeline='builtin.module(func.func(posenc-unroll-sums{vector-bytes=64 product-unroll=4}))' | FileCheck %s
// RUN: posenc-opt %s --pass-pipeline='builtin.module(func.func(posenc-unroll-sums{vector-bytes=64 product-unroll=1}))' | FileCheck %s --check-prefix=ONE
// RUN: posenc-opt %s --pass-pipeline='builtin.module(func.func(posenc-unroll-sums{vector-bytes=32 product-unroll=4}))' | FileCheck %s --check-prefix=AVX2
// ONE-NOT: llvm.inline_asm
// ONE-COUNT-8: llvm.fence
// ONE-NOT: llvm.fence

// Four steps make an iteration; statements keep the sums of each row in their place,
// also those that another operation used before the fence.
// CHECK-LABEL: func.func @tile(
// CHECK:         scf.for %[[K:.*]] = %c0 to %c64 step %c4{{.*}} iter_args(%[[S0:[a-z0-9]+]] = %{{[a-z0-9]+}}, %[[S1:[a-z0-9]+]] = 
// CHECK:           %[[F0:.*]] = math.fma %{{.*}}, %{{.*}}, %[[S0]]
// CHECK-NEXT:      %[[A0:.*]] = llvm.inline_asm has_side_effects "", "=v,0,~{memory}" %[[F0]] : (vector<16xf32>) -> vector<16xf32>
// CHECK-NEXT:      arith.negf %[[A0]]
// CHECK:           %[[F1:.*]] = math.fma %{{.*}}, %{{.*}}, %[[S1]]
// CHECK-NEXT:      %[[A1:.*]] = llvm.inline_asm has_side_effects "", "=v,0,~{memory}" %[[F1]]
// CHECK:           arith.addi %[[K]], %
// CHECK:           math.fma %{{.*}}, %{{.*}}, %[[A0]]
// CHECK:           math.fma %{{.*}}, %{{.*}}, %[[A1]]
// CHECK-COUNT-4:   math.fma
// CHECK-NOT:       math.fma
// CHECK-NOT:       llvm.fence
// CHECK:           scf.yield
func.func @tile(%a: memref<2x64xf32>, %b: memref<64x16xf32>, %s: vector<16xf32>) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %r:3 = scf.for %k = %c0 to %c64 step %c1 iter_args(%s0 = %s, %s1 = %s, %s2 = %s) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>) {
    %y = vector.load %b[%k, %c0] : memref<64x16xf32>, vector<16xf32>
    %a0 = memref.load %a[%c0, %k] : memref<2x64xf32>
    %x0 = vector.broadcast %a0 : f32 to vector<16xf32>
    %t0 = math.fma %x0, %y, %s0 : vector<16xf32>
    %m = arith.negf %t0 : vector<16xf32>
    llvm.fence syncscope("singlethread") acquire
    %a1 = memref.load %a[%c1, %k] : memref<2x64xf32>
    %x1 = vector.broadcast %a1 : f32 to vector<16xf32>
    %t1 = math.fma %x1, %y, %s1 : vector<16xf32>
    llvm.fence syncscope("singlethread") acquire
    scf.yield %t0, %t1, %m : vector<16xf32>, vector<16xf32>, vector<16xf32>
  }
  return %r#0, %r#1, %r#2 : vector<16xf32>, vector<16xf32>, vector<16xf32>
}

// A sum of two registers is an operand for each. A second loop computes the steps that
// are left of an unknown number.
// CHECK-LABEL: func.func @wide(
// CHECK:         %[[FOURS:.*]] = scf.for %{{.*}} to %{{.*}} step %c4
// CHECK:           %[[F:.*]] = math.fma
// CHECK-NEXT:      %[[LOW:.*]] = vector.extract_strided_slice %[[F]] {offsets = [0], sizes = [16]
// CHECK-NEXT:      %[[HIGH:.*]] = vector.extract_strided_slice %[[F]] {offsets = [16], sizes = [16]
// CHECK-NEXT:      %[[BOTH:.*]] = llvm.inline_asm has_side_effects "", "=v,=v,0,1,~{memory}" %[[LOW]], %[[HIGH]]
// CHECK:           llvm.extractvalue %[[BOTH]][0]
// CHECK-NEXT:      vector.insert_strided_slice
// CHECK:           math.fma
// CHECK:           math.fma
// CHECK:           math.fma
// CHECK:         scf.for %{{.*}} step %c1{{.*}} iter_args(%{{.*}} = %[[FOURS]])
// AVX2-LABEL: func.func @wide(
// AVX2:           llvm.inline_asm has_side_effects "", "=x,=x,=x,=x,0,1,2,3,~{memory}"
func.func @wide(%a: memref<?xf32>, %b: memref<?x32xf32>, %s: vector<32xf32>, %n: index) -> vector<32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %s) -> (vector<32xf32>) {
    %y = vector.load %b[%k, %c0] : memref<?x32xf32>, vector<32xf32>
    %a0 = memref.load %a[%k] : memref<?xf32>
    %x = vector.broadcast %a0 : f32 to vector<32xf32>
    %t = math.fma %x, %y, %sum : vector<32xf32>
    llvm.fence syncscope("singlethread") acquire
    scf.yield %t : vector<32xf32>
  }
  return %r : vector<32xf32>
}

// Left alone: a sum that is smaller than a register, and few steps.
// CHECK-LABEL: func.func @small(
// CHECK-NOT:     llvm.inline_asm
// AVX2-LABEL: func.func @small(
func.func @small(%a: memref<?xf32>, %b: memref<?x16xf32>, %s: vector<8xf32>, %w: vector<16xf32>, %n: index) -> (vector<8xf32>, vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %s) -> (vector<8xf32>) {
    %y = vector.load %b[%k, %c0] : memref<?x16xf32>, vector<8xf32>
    %t = math.fma %y, %y, %sum : vector<8xf32>
    llvm.fence syncscope("singlethread") acquire
    scf.yield %t : vector<8xf32>
  }
  %q = scf.for %k = %c0 to %c7 step %c1 iter_args(%sum = %w) -> (vector<16xf32>) {
    %y = vector.load %b[%k, %c0] : memref<?x16xf32>, vector<16xf32>
    %t = math.fma %y, %y, %sum : vector<16xf32>
    llvm.fence syncscope("singlethread") acquire
    scf.yield %t : vector<16xf32>
  }
  return %r, %q : vector<8xf32>, vector<16xf32>
}

// A sum of another sum, a write, and numbers of 16 bits, which are no operands of
// statements, are left alone, too.
// CHECK-LABEL: func.func @others(
// CHECK-NOT:     llvm.inline_asm
func.func @others(%b: memref<64x16xf32>, %s: vector<16xf32>, %h: vector<32xf16>) -> (vector<16xf32>, vector<16xf32>, vector<32xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %p = scf.for %k = %c0 to %c64 step %c1 iter_args(%sum = %s) -> (vector<16xf32>) {
    %y = vector.load %b[%k, %c0] : memref<64x16xf32>, vector<16xf32>
    %t = math.fma %y, %y, %sum : vector<16xf32>
    %u = math.fma %y, %y, %t : vector<16xf32>
    llvm.fence syncscope("singlethread") acquire
    scf.yield %u : vector<16xf32>
  }
  %q = scf.for %k = %c0 to %c64 step %c1 iter_args(%sum = %s) -> (vector<16xf32>) {
    %y = vector.load %b[%k, %c0] : memref<64x16xf32>, vector<16xf32>
    %t = math.fma %y, %y, %sum : vector<16xf32>
    vector.store %t, %b[%k, %c0] : memref<64x16xf32>, vector<16xf32>
    llvm.fence syncscope("singlethread") acquire
    scf.yield %t : vector<16xf32>
  }
  %r = scf.for %k = %c0 to %c64 step %c1 iter_args(%sum = %h) -> (vector<32xf16>) {
    %t = math.fma %sum, %sum, %sum : vector<32xf16>
    llvm.fence syncscope("singlethread") acquire
    scf.yield %t : vector<32xf16>
  }
  return %p, %q, %r : vector<16xf32>, vector<16xf32>, vector<32xf16>
}
