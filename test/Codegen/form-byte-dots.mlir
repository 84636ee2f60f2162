//===- form-byte-dots.mlir - dot products of bytes by VPDPBUSD ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --pass-pipeline='builtin.module(func.func(posenc-form-byte-dots,canonicalize))' --split-input-file | FileCheck %s

// The lowest byte of a word with a mask may be one mask.
// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[A:.*]]: vector<32xi32>, %[[B:.*]]: vector<32xi32>, %[[C:.*]]: vector<32xi32>)
// CHECK: %[[CODES:.*]] = arith.andi %[[B]], %{{.*}} : vector<32xi32>
// CHECK: %[[SUM:.*]] = vector.extract_strided_slice %[[C]] {offsets = [0], sizes = [16]
// CHECK-NEXT: %[[U:.*]] = vector.bitcast
// CHECK-NEXT: %[[S:.*]] = vector.bitcast
// CHECK-NEXT: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%[[SUM]], %[[U]], %[[S]])
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK-NOT: arith.muli
func.func @product(%a: vector<32xi32>, %b: vector<32xi32>, %c: vector<32xi32>) -> vector<32xi32> {
  %c8 = arith.constant dense<8> : vector<32xi32>
  %c15 = arith.constant dense<15> : vector<32xi32>
  %c16 = arith.constant dense<16> : vector<32xi32>
  %c24 = arith.constant dense<24> : vector<32xi32>
  %c255 = arith.constant dense<255> : vector<32xi32>
  %mask = arith.constant dense<0x0F0F0F0F> : vector<32xi32>
  %codes = arith.andi %b, %mask : vector<32xi32>
  %l0 = arith.shli %a, %c24 : vector<32xi32>
  %x0 = arith.shrsi %l0, %c24 : vector<32xi32>
  %y0 = arith.andi %b, %c15 : vector<32xi32>
  %p0 = arith.muli %x0, %y0 : vector<32xi32>
  %s0 = arith.addi %c, %p0 : vector<32xi32>
  %l1 = arith.shli %a, %c16 : vector<32xi32>
  %x1 = arith.shrsi %l1, %c24 : vector<32xi32>
  %r1 = arith.shrui %codes, %c8 : vector<32xi32>
  %y1 = arith.andi %r1, %c255 : vector<32xi32>
  %p1 = arith.muli %x1, %y1 : vector<32xi32>
  %s1 = arith.addi %s0, %p1 : vector<32xi32>
  %l2 = arith.shli %a, %c8 : vector<32xi32>
  %x2 = arith.shrsi %l2, %c24 : vector<32xi32>
  %r2 = arith.shrui %codes, %c16 : vector<32xi32>
  %y2 = arith.andi %r2, %c255 : vector<32xi32>
  %p2 = arith.muli %x2, %y2 : vector<32xi32>
  %s2 = arith.addi %s1, %p2 : vector<32xi32>
  %x3 = arith.shrsi %a, %c24 : vector<32xi32>
  %y3 = arith.shrui %codes, %c24 : vector<32xi32>
  %p3 = arith.muli %x3, %y3 : vector<32xi32>
  %s3 = arith.addi %s2, %p3 : vector<32xi32>
  return %s3 : vector<32xi32>
}

// -----

// Left alone: a byte of another place.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: llvm.call_intrinsic
func.func @others(%a: vector<16xi32>, %b: vector<16xi32>, %c: vector<16xi32>) -> vector<16xi32> {
  %c8 = arith.constant dense<8> : vector<16xi32>
  %c16 = arith.constant dense<16> : vector<16xi32>
  %c24 = arith.constant dense<24> : vector<16xi32>
  %c255 = arith.constant dense<255> : vector<16xi32>
  %l0 = arith.shli %a, %c24 : vector<16xi32>
  %x0 = arith.shrsi %l0, %c24 : vector<16xi32>
  %y0 = arith.andi %b, %c255 : vector<16xi32>
  %p0 = arith.muli %x0, %y0 : vector<16xi32>
  %s0 = arith.addi %c, %p0 : vector<16xi32>
  %l1 = arith.shli %a, %c16 : vector<16xi32>
  %x1 = arith.shrsi %l1, %c24 : vector<16xi32>
  %r1 = arith.shrui %b, %c8 : vector<16xi32>
  %y1 = arith.andi %r1, %c255 : vector<16xi32>
  %p1 = arith.muli %x1, %y1 : vector<16xi32>
  %s1 = arith.addi %s0, %p1 : vector<16xi32>
  %l2 = arith.shli %a, %c8 : vector<16xi32>
  %x2 = arith.shrsi %l2, %c24 : vector<16xi32>
  %p2 = arith.muli %x2, %y1 : vector<16xi32>
  %s2 = arith.addi %s1, %p2 : vector<16xi32>
  %x3 = arith.shrsi %a, %c24 : vector<16xi32>
  %y3 = arith.shrui %b, %c24 : vector<16xi32>
  %p3 = arith.muli %x3, %y3 : vector<16xi32>
  %s3 = arith.addi %s2, %p3 : vector<16xi32>
  return %s3 : vector<16xi32>
}
