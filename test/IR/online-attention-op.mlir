//===- online-attention-op.mlir - syntax of online_attention --------------===//
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

// CHECK-LABEL: func @plain(
// CHECK-NEXT: %0:3 = posenc.online_attention at(%arg3, %arg3, %arg3, %arg3)
// CHECK-SAME: ins(%arg0, %arg1, %arg2 : tensor<4x?x64xf16>, tensor<?x64xf16>, tensor<?x32xf16>)
// CHECK-SAME: outs(%arg4, %arg5, %arg5 : tensor<4x?x32xf32>, tensor<4x?xf32>, tensor<4x?xf32>){{$}}
// GENERIC-LABEL: sym_name = "plain"
// GENERIC: "posenc.online_attention"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 1, 1, 0, 3>}>
func.func @plain(%q: tensor<4x?x64xf16>, %k: tensor<?x64xf16>, %v: tensor<?x32xf16>, %i: index, %a: tensor<4x?x32xf32>, %m: tensor<4x?xf32>) {
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x?x64xf16>, tensor<?x64xf16>, tensor<?x32xf16>)
    outs(%a, %m, %m : tensor<4x?x32xf32>, tensor<4x?xf32>, tensor<4x?xf32>)
  return
}

// CHECK-LABEL: func @all(
// CHECK-NEXT: posenc.online_attention causal window_left = 7 window_right = 3 scale = 5.000000e-01 at(%arg2, %arg3, %arg4, %arg5) keys(%arg6)
// CHECK-SAME: ins(%arg0, %arg1, %arg1 : memref<1x8x16xf64>, memref<8x16xf64>, memref<8x16xf64>)
// CHECK-SAME: mask(%arg7 : memref<1x8x1xi1>)
// CHECK-SAME: outs(%arg0, %arg8, %arg8 : memref<1x8x16xf64>, memref<1x8xf64>, memref<1x8xf64>) {test.note}{{$}}
// CHECK-NEXT: score(%s, %b, %h, %i, %j) {
// CHECK-NEXT:   posenc.yield %s : f64
// CHECK-NEXT: }
// CHECK-NEXT: where(%b, %h, %i, %j) {
// CHECK-NEXT:   %{{.*}} = arith.cmpi ne, %i, %j : index
// CHECK-NEXT:   posenc.yield %{{.*}} : i1
// CHECK-NEXT: }
// GENERIC-LABEL: sym_name = "all"
// GENERIC: <{causal, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 3>, scale = 5.000000e-01 : f64, window_left = 7 : i64, window_right = 3 : i64}>
func.func @all(%q: memref<1x8x16xf64>, %k: memref<8x16xf64>, %b: index, %h: index, %i: index, %j: index, %n: index, %mask: memref<1x8x1xi1>, %m: memref<1x8xf64>) {
  posenc.online_attention scale = 0.5 window_left = 7 causal window_right = 3 at(%b, %h, %i, %j) keys(%n)
    ins(%q, %k, %k : memref<1x8x16xf64>, memref<8x16xf64>, memref<8x16xf64>)
    mask(%mask : memref<1x8x1xi1>)
    outs(%q, %m, %m : memref<1x8x16xf64>, memref<1x8xf64>, memref<1x8xf64>) {test.note}
    score(%s, %x, %y, %z, %w) {
      posenc.yield %s : f64
    }
    where(%x, %y, %z, %w) {
      %t = arith.cmpi ne, %z, %w : index
      posenc.yield %t : i1
    }
  return
}
