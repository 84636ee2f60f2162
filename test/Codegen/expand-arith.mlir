//===- expand-arith.mlir - arith ops that need no library calls -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-expand-arith | FileCheck %s

// f64 is rounded to odd in f32, and from there to nearest.
// CHECK-LABEL: func.func @truncate
// CHECK-SAME: (%[[X:.*]]: f64)
// CHECK: %[[NEAREST:.*]] = arith.truncf %[[X]] : f64 to f32
// CHECK: %[[BACK:.*]] = arith.extf %[[NEAREST]] : f32 to f64
// CHECK: arith.cmpf one, %[[BACK]], %[[X]]
// CHECK: %[[ODD:.*]] = arith.bitcast %{{.*}} : i32 to f32
// CHECK: arith.truncf %[[ODD]] : f32 to f16
func.func @truncate(%x: f64) -> f16 {
  %r = arith.truncf %x : f64 to f16
  return %r : f16
}

// CHECK-LABEL: func.func @vector
// CHECK-NOT: vector<4xf64> to vector<4xbf16>
// CHECK: arith.truncf %{{.*}} : vector<4xf32> to vector<4xbf16>
// CHECK: return
func.func @vector(%x: vector<4xf64>) -> vector<4xbf16> {
  %r = arith.truncf %x : vector<4xf64> to vector<4xbf16>
  return %r : vector<4xbf16>
}

// CHECK-LABEL: func.func @integer
// CHECK: arith.sitofp %{{.*}} : i64 to f64
// CHECK: arith.truncf %{{.*}} : f32 to bf16
func.func @integer(%x: i64) -> bf16 {
  %r = arith.sitofp %x : i64 to bf16
  return %r : bf16
}

// f32 represents all 16-bit integers exactly.
// CHECK-LABEL: func.func @short
// CHECK: arith.sitofp %{{.*}} : i16 to bf16
func.func @short(%x: i16) -> bf16 {
  %r = arith.sitofp %x : i16 to bf16
  return %r : bf16
}

// CHECK-LABEL: func.func @extension
// CHECK-SAME: (%[[X:.*]]: i64)
// CHECK: arith.uitofp %[[X]] : i64 to f32
func.func @extension(%x: i64) -> f32 {
  %wide = arith.extui %x : i64 to i128
  %r = arith.uitofp %wide : i128 to f32
  return %r : f32
}

// CHECK-LABEL: func.func @larger
// CHECK-NOT: arith.maxnumf
// CHECK: return
func.func @larger(%x: f16, %y: f16) -> f16 {
  %r = arith.maxnumf %x, %y : f16
  return %r : f16
}

// CHECK-LABEL: func.func @remainder
// CHECK: scf.for
// CHECK: math.copysign
// CHECK-NOT: arith.remf
// CHECK: return
func.func @remainder(%x: vector<8xf32>, %y: vector<8xf32>) -> vector<8xf32> {
  %r = arith.remf %x, %y : vector<8xf32>
  return %r : vector<8xf32>
}

// CHECK-LABEL: func.func @others
// CHECK:      arith.truncf
// CHECK-NEXT: arith.maxnumf
// CHECK:      arith.divsi %{{.*}}, %c7
// CHECK-NEXT: arith.divui
// CHECK-NEXT: return
func.func @others(%x: f64, %y: f32, %i: i64, %n: index) -> (f32, f32, i64, index) {
  %c7 = arith.constant 7 : i64
  %a = arith.truncf %x : f64 to f32
  %b = arith.maxnumf %a, %y : f32
  %c = arith.divsi %i, %c7 : i64
  %d = arith.divui %n, %n : index
  return %a, %b, %c, %d : f32, f32, i64, index
}

// Divisions that would trap get a defined result.
// CHECK-LABEL: func.func @quotient
// CHECK-SAME:    %[[X:.*]]: i64, %[[Y:.*]]: i64
// CHECK:         %[[ZERO:.*]] = arith.cmpi eq, %[[Y]], %c0
// CHECK:         %[[SOME:.*]] = arith.select %[[ZERO]], %c1{{.*}}, %[[Y]]
// CHECK:         %[[MINUS:.*]] = arith.cmpi eq, %[[Y]], %c-1
// CHECK:         %[[SAFE:.*]] = arith.select %[[MINUS]], %c1{{.*}}, %[[SOME]]
// CHECK:         %[[Q:.*]] = arith.divsi %[[X]], %[[SAFE]]
// CHECK:         %[[NEGATED:.*]] = arith.subi %c0{{.*}}, %[[X]]
// CHECK:         %[[R:.*]] = arith.select %[[MINUS]], %[[NEGATED]], %[[Q]]
// CHECK:         arith.select %[[ZERO]], %c-1{{.*}}, %[[R]]
func.func @quotient(%x: i64, %y: i64) -> i64 {
  %q = arith.divsi %x, %y : i64
  return %q : i64
}

// CHECK-LABEL: func.func @unsigned
// CHECK-SAME:    %[[X:.*]]: vector<4xi32>, %[[Y:.*]]: vector<4xi32>
// CHECK:         %[[ZERO:.*]] = arith.cmpi eq
// CHECK:         %[[SAFE:.*]] = arith.select %[[ZERO]]
// CHECK:         %[[R:.*]] = arith.remui %[[X]], %[[SAFE]]
// CHECK:         arith.select %[[ZERO]], %[[X]], %[[R]]
func.func @unsigned(%x: vector<4xi32>, %y: vector<4xi32>) -> vector<4xi32> {
  %r = arith.remui %x, %y : vector<4xi32>
  return %r : vector<4xi32>
}
