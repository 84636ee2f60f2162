//===- expand-f8.mlir - f8 conversions as integer arithmetic --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-expand-f8 | FileCheck %s

// CHECK-LABEL: func @from_e5m2(
// CHECK-NEXT:    %[[B:.+]] = arith.bitcast %arg0 : vector<16xf8E5M2> to vector<16xi8>
// CHECK-NEXT:    %[[W:.+]] = arith.extui %[[B]] : vector<16xi8> to vector<16xi16>
// CHECK-NEXT:    %[[C:.+]] = arith.constant dense<8> : vector<16xi16>
// CHECK-NEXT:    %[[S:.+]] = arith.shli %[[W]], %[[C]]
// CHECK-NEXT:    %[[H:.+]] = arith.bitcast %[[S]] : vector<16xi16> to vector<16xf16>
// CHECK-NEXT:    %[[R:.+]] = arith.extf %[[H]] : vector<16xf16> to vector<16xf32>
// CHECK-NEXT:    return %[[R]]
func.func @from_e5m2(%x: vector<16xf8E5M2>) -> vector<16xf32> {
  %r = arith.extf %x : vector<16xf8E5M2> to vector<16xf32>
  return %r : vector<16xf32>
}

// The exponent bias of f16 is larger by 8.
// CHECK-LABEL: func @from_e4m3(
// CHECK-NOT:     f8E4M3FN to {{b?f}}
// CHECK:         arith.extf %{{.+}} : f16 to f32
// CHECK:         arith.mulf %{{.+}}, %cst
// CHECK:         arith.extf %{{.+}} : f32 to f64
func.func @from_e4m3(%x: f8E4M3FN) -> f64 {
  %r = arith.extf %x : f8E4M3FN to f64
  return %r : f64
}

// Other floats are widened first, so that they are rounded once.
// CHECK-LABEL: func @to_e4m3(
// CHECK:         arith.extf %arg0 : vector<4xbf16> to vector<4xf32>
// CHECK-NOT:     arith.truncf
// CHECK:         arith.bitcast %{{.+}} : vector<4xi8> to vector<4xf8E4M3FN>
func.func @to_e4m3(%x: vector<4xbf16>) -> vector<4xf8E4M3FN> {
  %r = arith.truncf %x : vector<4xbf16> to vector<4xf8E4M3FN>
  return %r : vector<4xf8E4M3FN>
}

// f64 would be rounded twice, so it is not changed; a later pass reports an
// error.
// CHECK-LABEL: func @left_alone(
// CHECK-NEXT:    arith.truncf %arg0 : f64 to f8E5M2
// CHECK-NEXT:    arith.truncf %arg1 : f32 to f8E8M0FNU
func.func @left_alone(%x: f64, %y: f32) -> (f8E5M2, f8E8M0FNU) {
  %r = arith.truncf %x : f64 to f8E5M2
  %s = arith.truncf %y : f32 to f8E8M0FNU
  return %r, %s : f8E5M2, f8E8M0FNU
}
