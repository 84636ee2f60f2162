//===- math-to-intrinsics.mlir - math with PTX instructions ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-math-to-intrinsics | FileCheck %s

// CHECK-LABEL: func @f32
// CHECK-NEXT: llvm.call_intrinsic "llvm.sqrt.f32"(%{{.*}}) : (f32) -> f32
// CHECK-NEXT: llvm.call_intrinsic "llvm.maxnum.f32"(%{{.*}}, %{{.*}}) : (f32, f32) -> f32
// CHECK-NEXT: llvm.call_intrinsic "llvm.minnum.f32"(%{{.*}}, %{{.*}}) : (f32, f32) -> f32
// CHECK-NEXT: return
func.func @f32(%x: f32, %y: f32) -> f32 {
  %a = math.sqrt %x : f32
  %b = arith.maxnumf %a, %y : f32
  %c = arith.minnumf %b, %x : f32
  return %c : f32
}

// CHECK-LABEL: func @f64
// CHECK-NEXT: llvm.call_intrinsic "llvm.maxnum.f64"(%{{.*}}, %{{.*}}) : (f64, f64) -> f64
// CHECK-NEXT: return
func.func @f64(%x: f64, %y: f64) -> f64 {
  %a = arith.maxnumf %x, %y : f64
  return %a : f64
}

// CHECK-LABEL: func @others
// CHECK-NEXT: math.sqrt %{{.*}} : f16
// CHECK-NEXT: math.exp %{{.*}} : f32
// CHECK-NEXT: arith.maximumf %{{.*}} : f32
func.func @others(%x: f16, %y: f32) -> (f16, f32, f32) {
  %a = math.sqrt %x : f16
  %b = math.exp %y : f32
  %c = arith.maximumf %y, %b : f32
  return %a, %b, %c : f16, f32, f32
}
