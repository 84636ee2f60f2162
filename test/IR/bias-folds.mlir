//===- bias-folds.mlir - constant folding of biases -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --canonicalize | FileCheck %s

// The row of query 0, keys 0 to 11.
// CHECK-LABEL: func @query_0(
// CHECK-NOT: posenc
// CHECK: return %c0, %c17, %c18, %c19, %c20, %c21, %c22, %c23, %c24, %c24, %c24, %c24 :
func.func @query_0() -> (index, index, index, index, index, index, index, index, index, index, index, index) {
  %c0 = arith.constant 0 : index
  %0 = posenc.t5_bucket bidirectional %c0 : index
  %c1 = arith.constant 1 : index
  %1 = posenc.t5_bucket bidirectional %c1 : index
  %c2 = arith.constant 2 : index
  %2 = posenc.t5_bucket bidirectional %c2 : index
  %c3 = arith.constant 3 : index
  %3 = posenc.t5_bucket bidirectional %c3 : index
  %c4 = arith.constant 4 : index
  %4 = posenc.t5_bucket bidirectional %c4 : index
  %c5 = arith.constant 5 : index
  %5 = posenc.t5_bucket bidirectional %c5 : index
  %c6 = arith.constant 6 : index
  %6 = posenc.t5_bucket bidirectional %c6 : index
  %c7 = arith.constant 7 : index
  %7 = posenc.t5_bucket bidirectional %c7 : index
  %c8 = arith.constant 8 : index
  %8 = posenc.t5_bucket bidirectional %c8 : index
  %c9 = arith.constant 9 : index
  %9 = posenc.t5_bucket bidirectional %c9 : index
  %c10 = arith.constant 10 : index
  %10 = posenc.t5_bucket bidirectional %c10 : index
  %c11 = arith.constant 11 : index
  %11 = posenc.t5_bucket bidirectional %c11 : index
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11 : index, index, index, index, index, index, index, index, index, index, index, index
}

// The row of query 5.
// CHECK-LABEL: func @query_5(
// CHECK-NOT: posenc
// CHECK: return %c5, %c4, %c3, %c2, %c1, %c0, %c17, %c18, %c19, %c20, %c21, %c22 :
func.func @query_5() -> (index, index, index, index, index, index, index, index, index, index, index, index) {
  %c0 = arith.constant -5 : index
  %0 = posenc.t5_bucket bidirectional %c0 : index
  %c1 = arith.constant -4 : index
  %1 = posenc.t5_bucket bidirectional %c1 : index
  %c2 = arith.constant -3 : index
  %2 = posenc.t5_bucket bidirectional %c2 : index
  %c3 = arith.constant -2 : index
  %3 = posenc.t5_bucket bidirectional %c3 : index
  %c4 = arith.constant -1 : index
  %4 = posenc.t5_bucket bidirectional %c4 : index
  %c5 = arith.constant 0 : index
  %5 = posenc.t5_bucket bidirectional %c5 : index
  %c6 = arith.constant 1 : index
  %6 = posenc.t5_bucket bidirectional %c6 : index
  %c7 = arith.constant 2 : index
  %7 = posenc.t5_bucket bidirectional %c7 : index
  %c8 = arith.constant 3 : index
  %8 = posenc.t5_bucket bidirectional %c8 : index
  %c9 = arith.constant 4 : index
  %9 = posenc.t5_bucket bidirectional %c9 : index
  %c10 = arith.constant 5 : index
  %10 = posenc.t5_bucket bidirectional %c10 : index
  %c11 = arith.constant 6 : index
  %11 = posenc.t5_bucket bidirectional %c11 : index
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11 : index, index, index, index, index, index, index, index, index, index, index, index
}

// Both sides of each threshold, including the exact ones 16, 32 and 64.
// CHECK-LABEL: func @bidirectional(
// CHECK-NOT: posenc
// CHECK: return %c7, %c8, %c8, %c9, %c9, %c10, %c10, %c11, %c11, %c12, %c12, %c13, %c13, %c14, %c14, %c15 :
func.func @bidirectional() -> (index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index) {
  %c0 = arith.constant -7 : index
  %0 = posenc.t5_bucket bidirectional %c0 : index
  %c1 = arith.constant -8 : index
  %1 = posenc.t5_bucket bidirectional %c1 : index
  %c2 = arith.constant -11 : index
  %2 = posenc.t5_bucket bidirectional %c2 : index
  %c3 = arith.constant -12 : index
  %3 = posenc.t5_bucket bidirectional %c3 : index
  %c4 = arith.constant -15 : index
  %4 = posenc.t5_bucket bidirectional %c4 : index
  %c5 = arith.constant -16 : index
  %5 = posenc.t5_bucket bidirectional %c5 : index
  %c6 = arith.constant -22 : index
  %6 = posenc.t5_bucket bidirectional %c6 : index
  %c7 = arith.constant -23 : index
  %7 = posenc.t5_bucket bidirectional %c7 : index
  %c8 = arith.constant -31 : index
  %8 = posenc.t5_bucket bidirectional %c8 : index
  %c9 = arith.constant -32 : index
  %9 = posenc.t5_bucket bidirectional %c9 : index
  %c10 = arith.constant -45 : index
  %10 = posenc.t5_bucket bidirectional %c10 : index
  %c11 = arith.constant -46 : index
  %11 = posenc.t5_bucket bidirectional %c11 : index
  %c12 = arith.constant -63 : index
  %12 = posenc.t5_bucket bidirectional %c12 : index
  %c13 = arith.constant -64 : index
  %13 = posenc.t5_bucket bidirectional %c13 : index
  %c14 = arith.constant -90 : index
  %14 = posenc.t5_bucket bidirectional %c14 : index
  %c15 = arith.constant -91 : index
  %15 = posenc.t5_bucket bidirectional %c15 : index
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15 : index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index
}

// CHECK-LABEL: func @plain(
// CHECK-NOT: posenc
// CHECK: return %c15_i64, %c16_i64, %c16_i64, %c17_i64, %c17_i64, %c18_i64, %c18_i64, %c19_i64, %c19_i64, %c20_i64, %c20_i64, %c21_i64, %c21_i64, %c22_i64, %c22_i64, %c23_i64, %c23_i64, %c24_i64, %c24_i64, %c25_i64, %c25_i64, %c26_i64, %c26_i64, %c27_i64, %c27_i64, %c28_i64, %c28_i64, %c29_i64, %c29_i64, %c30_i64, %c30_i64, %c31_i64 :
func.func @plain() -> (i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64) {
  %c0 = arith.constant -15 : i64
  %0 = posenc.t5_bucket %c0 : i64
  %c1 = arith.constant -16 : i64
  %1 = posenc.t5_bucket %c1 : i64
  %c2 = arith.constant -18 : i64
  %2 = posenc.t5_bucket %c2 : i64
  %c3 = arith.constant -19 : i64
  %3 = posenc.t5_bucket %c3 : i64
  %c4 = arith.constant -20 : i64
  %4 = posenc.t5_bucket %c4 : i64
  %c5 = arith.constant -21 : i64
  %5 = posenc.t5_bucket %c5 : i64
  %c6 = arith.constant -23 : i64
  %6 = posenc.t5_bucket %c6 : i64
  %c7 = arith.constant -24 : i64
  %7 = posenc.t5_bucket %c7 : i64
  %c8 = arith.constant -26 : i64
  %8 = posenc.t5_bucket %c8 : i64
  %c9 = arith.constant -27 : i64
  %9 = posenc.t5_bucket %c9 : i64
  %c10 = arith.constant -30 : i64
  %10 = posenc.t5_bucket %c10 : i64
  %c11 = arith.constant -31 : i64
  %11 = posenc.t5_bucket %c11 : i64
  %c12 = arith.constant -34 : i64
  %12 = posenc.t5_bucket %c12 : i64
  %c13 = arith.constant -35 : i64
  %13 = posenc.t5_bucket %c13 : i64
  %c14 = arith.constant -39 : i64
  %14 = posenc.t5_bucket %c14 : i64
  %c15 = arith.constant -40 : i64
  %15 = posenc.t5_bucket %c15 : i64
  %c16 = arith.constant -45 : i64
  %16 = posenc.t5_bucket %c16 : i64
  %c17 = arith.constant -46 : i64
  %17 = posenc.t5_bucket %c17 : i64
  %c18 = arith.constant -51 : i64
  %18 = posenc.t5_bucket %c18 : i64
  %c19 = arith.constant -52 : i64
  %19 = posenc.t5_bucket %c19 : i64
  %c20 = arith.constant -58 : i64
  %20 = posenc.t5_bucket %c20 : i64
  %c21 = arith.constant -59 : i64
  %21 = posenc.t5_bucket %c21 : i64
  %c22 = arith.constant -66 : i64
  %22 = posenc.t5_bucket %c22 : i64
  %c23 = arith.constant -67 : i64
  %23 = posenc.t5_bucket %c23 : i64
  %c24 = arith.constant -76 : i64
  %24 = posenc.t5_bucket %c24 : i64
  %c25 = arith.constant -77 : i64
  %25 = posenc.t5_bucket %c25 : i64
  %c26 = arith.constant -86 : i64
  %26 = posenc.t5_bucket %c26 : i64
  %c27 = arith.constant -87 : i64
  %27 = posenc.t5_bucket %c27 : i64
  %c28 = arith.constant -98 : i64
  %28 = posenc.t5_bucket %c28 : i64
  %c29 = arith.constant -99 : i64
  %29 = posenc.t5_bucket %c29 : i64
  %c30 = arith.constant -112 : i64
  %30 = posenc.t5_bucket %c30 : i64
  %c31 = arith.constant -113 : i64
  %31 = posenc.t5_bucket %c31 : i64
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31 : i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64
}

// Keys after the query, without buckets of their own.
// CHECK-LABEL: func @after(
// CHECK-NOT: posenc
// CHECK: return %c0_i64, %c0_i64, %c31_i64, %c31_i64 :
func.func @after() -> (i64, i64, i64, i64) {
  %c0 = arith.constant 7 : i64
  %0 = posenc.t5_bucket %c0 : i64
  %c1 = arith.constant 9223372036854775807 : i64
  %1 = posenc.t5_bucket %c1 : i64
  %c2 = arith.constant 9223372036854775807 : i64
  %2 = posenc.t5_bucket bidirectional %c2 : i64
  %c3 = arith.constant -9223372036854775807 : i64
  %3 = posenc.t5_bucket %c3 : i64
  return %0, %1, %2, %3 : i64, i64, i64, i64
}

// Other sizes, in i32.
// CHECK-LABEL: func @others(
// CHECK-NOT: posenc
// CHECK: return %c1_i32, %c1_i32, %c1_i32, %c1_i32, %c1_i32, %c1_i32, %c1_i32, %c1_i32, %c1_i32, %c2_i32, %c8_i32, %c8_i32 :
func.func @others() -> (i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32) {
  %c0 = arith.constant -1 : i32
  %0 = posenc.t5_bucket %c0 buckets = 2 max_distance = 2 : i32
  %c1 = arith.constant -2 : i32
  %1 = posenc.t5_bucket %c1 buckets = 2 max_distance = 2 : i32
  %c2 = arith.constant -5 : i32
  %2 = posenc.t5_bucket %c2 buckets = 2 max_distance = 2 : i32
  %c3 = arith.constant -2147483647 : i32
  %3 = posenc.t5_bucket %c3 buckets = 2 max_distance = 2 : i32
  %c4 = arith.constant -1 : i32
  %4 = posenc.t5_bucket bidirectional %c4 buckets = 4 max_distance = 2147483647 : i32
  %c5 = arith.constant -2 : i32
  %5 = posenc.t5_bucket bidirectional %c5 buckets = 4 max_distance = 2147483647 : i32
  %c6 = arith.constant -5 : i32
  %6 = posenc.t5_bucket bidirectional %c6 buckets = 4 max_distance = 2147483647 : i32
  %c7 = arith.constant -2147483647 : i32
  %7 = posenc.t5_bucket bidirectional %c7 buckets = 4 max_distance = 2147483647 : i32
  %c8 = arith.constant -1 : i32
  %8 = posenc.t5_bucket %c8 buckets = 9 max_distance = 5 : i32
  %c9 = arith.constant -2 : i32
  %9 = posenc.t5_bucket %c9 buckets = 9 max_distance = 5 : i32
  %c10 = arith.constant -5 : i32
  %10 = posenc.t5_bucket %c10 buckets = 9 max_distance = 5 : i32
  %c11 = arith.constant -2147483647 : i32
  %11 = posenc.t5_bucket %c11 buckets = 9 max_distance = 5 : i32
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11 : i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32
}

// 1024 buckets up to 2^31.
// CHECK-LABEL: func @many(
// CHECK-NOT: posenc
// CHECK: return %c256_i64, %c257_i64, %c400_i64, %c401_i64, %c510_i64, %c511_i64 :
func.func @many() -> (i64, i64, i64, i64, i64, i64) {
  %c0 = arith.constant -272 : i64
  %0 = posenc.t5_bucket bidirectional %c0 buckets = 1024 max_distance = 2147483647 : i64
  %c1 = arith.constant -273 : i64
  %1 = posenc.t5_bucket bidirectional %c1 buckets = 1024 max_distance = 2147483647 : i64
  %c2 = arith.constant -2137278 : i64
  %2 = posenc.t5_bucket bidirectional %c2 buckets = 1024 max_distance = 2147483647 : i64
  %c3 = arith.constant -2137279 : i64
  %3 = posenc.t5_bucket bidirectional %c3 buckets = 1024 max_distance = 2147483647 : i64
  %c4 = arith.constant -2017828267 : i64
  %4 = posenc.t5_bucket bidirectional %c4 buckets = 1024 max_distance = 2147483647 : i64
  %c5 = arith.constant -2017828268 : i64
  %5 = posenc.t5_bucket bidirectional %c5 buckets = 1024 max_distance = 2147483647 : i64
  return %0, %1, %2, %3, %4, %5 : i64, i64, i64, i64, i64, i64
}

// Slopes of 8 heads are 2^-1 to 2^-8; heads 8 and 9 of 12 have 2^-0.5 and
// 2^-1.5.
// CHECK-LABEL: func @alibi(
// CHECK-DAG: %[[A:.+]] = arith.constant -1.000000e+01 : f32
// CHECK-DAG: %[[B:.+]] = arith.constant -7.812500e-02 : f32
// CHECK-DAG: %[[C:.+]] = arith.constant -14.1421356 : f32
// CHECK-DAG: %[[D:.+]] = arith.constant -7.0710678118654755 : f64
// CHECK-DAG: %[[E:.+]] = arith.constant -0.000000e+00 : f32
// CHECK-NOT: posenc
// CHECK: return %[[A]], %[[A]], %[[B]], %[[C]], %[[D]], %[[E]] :
func.func @alibi() -> (f32, f32, f32, f32, f64, f32) {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %c27 = arith.constant 27 : index
  %c28 = arith.constant 28 : index
  %0 = posenc.alibi(%c0, %c27, %c7) heads = 8 : f32
  %1 = posenc.alibi(%c0, %c7, %c27) heads = 8 : f32
  %2 = posenc.alibi(%c7, %c8, %c28) heads = 8 : f32
  %3 = posenc.alibi(%c8, %c8, %c28) heads = 12 : f32
  %4 = posenc.alibi(%c9, %c8, %c28) heads = 12 : f64
  %5 = posenc.alibi(%c9, %c8, %c8) heads = 12 : f32
  return %0, %1, %2, %3, %4, %5 : f32, f32, f32, f32, f64, f32
}

// Heads out of range and unknown operands are not folded.
// CHECK-LABEL: func @not_folded(
// CHECK: posenc.alibi({{.*}}) heads = 8
// CHECK: posenc.alibi({{.*}}) heads = 9
// CHECK: posenc.t5_bucket %arg0
func.func @not_folded(%i: index) -> (f32, f32, index) {
  %c8 = arith.constant 8 : index
  %0 = posenc.alibi(%c8, %c8, %c8) heads = 8 : f32
  %1 = posenc.alibi(%c8, %c8, %i) heads = 9 : f32
  %2 = posenc.t5_bucket %i : index
  return %0, %1, %2 : f32, f32, index
}
