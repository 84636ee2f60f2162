//===- bias-ops.mlir - syntax of biases -----------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-roundtrip | FileCheck %s
// RUN: posenc-opt %s --mlir-print-op-generic | posenc-opt | FileCheck %s
// RUN: posenc-opt %s --emit-bytecode | posenc-opt | FileCheck %s
// RUN: posenc-opt %s --mlir-print-op-generic \
// RUN:   | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: func @alibi(
// CHECK-NEXT: posenc.alibi(%arg0, %arg1, %arg2) heads = 12 : f32
// CHECK-NEXT: posenc.alibi(%arg0, %arg1, %arg2) heads = 1 {test.note} : f64
// GENERIC-LABEL: sym_name = "alibi"
// GENERIC: "posenc.alibi"(%{{.*}}, %{{.*}}, %{{.*}}) <{heads = 12 : i64}> : (index, index, index) -> f32
func.func @alibi(%h: index, %i: index, %j: index) {
  %0 = posenc.alibi(%h, %i, %j) heads = 12 : f32
  %1 = posenc.alibi(%h, %i, %j) heads = 1 {test.note} : f64
  return
}

// CHECK-LABEL: func @t5_bucket(
// CHECK-NEXT: posenc.t5_bucket bidirectional %arg0 : index
// CHECK-NEXT: posenc.t5_bucket %arg1 buckets = 64 max_distance = 256 : i64
// CHECK-NEXT: posenc.t5_bucket %arg2 buckets = 2 {test.note} : i32
// CHECK-NEXT: posenc.t5_bucket bidirectional %arg2 max_distance = 2147483647 : i32
// GENERIC-LABEL: sym_name = "t5_bucket"
// GENERIC: "posenc.t5_bucket"(%{{.*}}) <{bidirectional, buckets = 32 : i64, max_distance = 128 : i64}> : (index) -> index
func.func @t5_bucket(%r: index, %r64: i64, %r32: i32) {
  %0 = posenc.t5_bucket bidirectional %r buckets = 32 max_distance = 128 : index
  %1 = posenc.t5_bucket %r64 buckets = 64 max_distance = 256 : i64
  %2 = posenc.t5_bucket %r32 buckets = 2 {test.note} : i32
  %3 = posenc.t5_bucket bidirectional %r32 max_distance = 2147483647 : i32
  return
}

// Biases are pure: unused ones are removed.
// RUN: posenc-opt %s --canonicalize | FileCheck %s --check-prefix=UNUSED
// UNUSED-NOT: posenc.
