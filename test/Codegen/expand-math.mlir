//===- expand-math.mlir - math functions as arithmetic --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-expand-math --allow-unregistered-dialect | FileCheck %s \
// RUN:   --implicit-check-not='math.{{(a?cosh?|a?sinh?|a?tanh?|atan2|cbrt|erfc?|exp[2m]?1?|log[0-9]*p?|fpowi|ipowi|powf|rsqrt|sincos|clampf)}}'
// RUN: posenc-opt %s --posenc-expand-math=avx512 --allow-unregistered-dialect | FileCheck %s --check-prefix=AVX512


// CHECK-LABEL: func.func @functions
func.func @functions(%x: f64, %y: vector<8xf32>, %n: i32) -> (f64, f64, f64, f64, vector<8xf32>, vector<8xf32>) {
  %a = math.sin %x : f64
  %b, %c = math.sincos %a : f64
  %d = math.atan2 %b, %c : f64
  %e = math.fpowi %d, %n : f64, i32
  %f = math.powf %y, %y : vector<8xf32>
  %g = math.erf %f : vector<8xf32>
  %h = math.clampf %g to [%y, %f] : vector<8xf32>
  return %b, %c, %d, %e, %g, %h : f64, f64, f64, f64, vector<8xf32>, vector<8xf32>
}

// Functions of 16-bit types are computed in f32 and rounded once.
// CHECK-LABEL: func.func @narrow
func.func @narrow(%x: bf16) -> bf16 {
  // CHECK: arith.extf %{{.*}} : bf16 to f32
  // CHECK: arith.extf %{{.*}} : f32 to f64
  // CHECK: arith.truncf %{{.*}} : f64 to f32
  // CHECK: arith.truncf %{{.*}} : f32 to bf16
  %r = math.cos %x : bf16
  return %r : bf16
}

// Powers with small constant exponents become products.
// CHECK-LABEL: func.func @cube
// CHECK-NEXT: arith.constant
// CHECK-NEXT: %[[SQUARE:.*]] = arith.mulf %arg0, %arg0 : f32
// CHECK-NEXT: %[[CUBE:.*]] = arith.mulf %arg0, %[[SQUARE]] : f32
// CHECK-NEXT: return %[[CUBE]]
func.func @cube(%x: f32) -> f32 {
  %three = arith.constant 3.0 : f32
  %r = math.powf %x, %three : f32
  return %r : f32
}

// CHECK-LABEL: func.func @integers
// CHECK-COUNT-4: arith.muli
// CHECK: math.ctpop
func.func @integers(%x: i32) -> (i32, i32) {
  %five = arith.constant 5 : i32
  %r = math.ipowi %x, %five : i32
  %s = math.ctpop %r : i32
  return %r, %s : i32, i32
}

// Fast-math flags of functions are dropped. Sums and products keep the flags
// that allow reordering and contraction.
// CHECK-LABEL: func.func @fast
// CHECK: %[[ROOT:.*]] = math.sqrt %arg0 : f32
// CHECK: arith.divf %{{.*}}, %[[ROOT]] : f32
// CHECK: math.floor %{{.*}} : f32
// CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : f32
func.func @fast(%x: f32) -> f32 {
  %a = math.rsqrt %x fastmath<fast> : f32
  %b = math.floor %a fastmath<afn> : f32
  %c = arith.addf %b, %a fastmath<fast> : f32
  return %c : f32
}

// Functions with a machine instruction are not changed.
// CHECK-LABEL: func.func @instructions
// CHECK-NEXT: math.sqrt
// CHECK-NEXT: math.fma
// CHECK-NEXT: math.roundeven
// CHECK-NEXT: math.trunc
func.func @instructions(%x: f64) -> f64 {
  %a = math.sqrt %x : f64
  %b = math.fma %a, %x, %x : f64
  %c = math.roundeven %b : f64
  %d = math.trunc %c : f64
  return %d : f64
}

// A number may be normal in f32 but subnormal in f16.
// CHECK-LABEL: func.func @normal
// CHECK: %[[X:.*]] = arith.extf %arg0 : f16 to f32
// CHECK: %[[SIZE:.*]] = math.absf %[[X]] : f32
// CHECK: %[[LEAST:.*]] = arith.constant 6.10351563E-5 : f32
// CHECK: arith.cmpf oge, %[[SIZE]], %[[LEAST]] : f32
// CHECK: arith.cmpf olt, %[[SIZE]], %{{.*}} : f32
// CHECK: arith.andi
func.func @normal(%x: f16) -> i1 {
  %r = math.isnormal %x : f16
  return %r : i1
}

// Unregistered operations are ignored.
// CHECK-LABEL: func.func @unknown
func.func @unknown(%x: bf16) -> bf16 {
  %y = "other.op"(%x) : (bf16) -> bf16
  %z = math.exp %y : bf16
  return %z : bf16
}

// AVX-512 has an instruction that scales 64-byte vectors by powers of two.
// AVX512-LABEL: func.func @exponentials
// AVX512:         %[[LOW:.*]] = vector.extract_strided_slice %{{.*}} {offsets = [0], sizes = [16]
// AVX512:         llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"(%[[LOW]],
// AVX512:         llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// AVX512-NOT:     llvm.call_intrinsic
// AVX512:         return
// CHECK-LABEL:  func.func @exponentials
// CHECK-NOT:      llvm.call_intrinsic
func.func @exponentials(%x: vector<32xf32>, %y: vector<8xf32>) -> (vector<32xf32>, vector<8xf32>) {
  %p = math.exp %x : vector<32xf32>
  %q = math.exp %y : vector<8xf32>
  return %p, %q : vector<32xf32>, vector<8xf32>
}

// MLIR lowers these only for vectors of one dimension.
// CHECK-LABEL: func.func @rows
// CHECK-COUNT-2: math.absi %{{.*}} : vector<4xi32>
// CHECK: math.ctlz %{{.*}} : vector<4xi32>
// CHECK: math.ctlz %{{.*}} : vector<4xi32>
func.func @rows(%x: vector<2x4xi32>) -> (vector<2x4xi32>, vector<2x4xi32>) {
  %0 = math.absi %x : vector<2x4xi32>
  %1 = math.ctlz %x : vector<2x4xi32>
  return %0, %1 : vector<2x4xi32>, vector<2x4xi32>
}
