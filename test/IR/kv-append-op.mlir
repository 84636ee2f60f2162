//===- kv-append-op.mlir - syntax of kv_append ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-roundtrip --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --mlir-print-op-generic \
// RUN:   | posenc-opt --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --emit-bytecode \
// RUN:   | posenc-opt --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --mlir-print-op-generic --mlir-print-local-scope \
// RUN:   | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: func @lengths(
// CHECK-NEXT: posenc.kv_append ins(%arg0, %arg1 : tensor<?x?x8x64xf16>, tensor<?x?x8x32xf16>) lengths(%arg2 : tensor<?xi64>)
// CHECK-SAME: outs(%arg3, %arg4 : tensor<?x?x8x64xf16>, tensor<?x?x8x32xf16>){{$}}
// GENERIC-LABEL: sym_name = "lengths"
// GENERIC: <{cache_layout = #posenc<head_layout token_major>, layout = #posenc<head_layout token_major>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 1, 0, 0, 0, 0, 2>}>
func.func @lengths(%k: tensor<?x?x8x64xf16>, %v: tensor<?x?x8x32xf16>, %n: tensor<?xi64>, %kc: tensor<?x?x8x64xf16>, %vc: tensor<?x?x8x32xf16>) {
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<?x?x8x64xf16>, tensor<?x?x8x32xf16>)
    lengths(%n : tensor<?xi64>)
    outs(%kc, %vc : tensor<?x?x8x64xf16>, tensor<?x?x8x32xf16>)
  return
}

// CHECK-LABEL: func @all(
// CHECK-NEXT: posenc.kv_append layout = head_major cache_layout = head_major norm_eps = 1.000000e-03 rotation = <pairing = interleaved, frequencies = <dim = 32, base = 1.000000e+04>, offset = 32>
// CHECK-SAME: ins(%arg0, %arg0 : memref<2x8x3x64xf32>, memref<2x8x3x64xf32>)
// CHECK-SAME: positions(%arg1 : memref<2x3xi32>) norm(%arg2 : memref<64xf32>) lengths(%arg3 : memref<2xi32>)
// CHECK-SAME: outs(%arg4, %arg4 : memref<2x8x9x64xf32>, memref<2x8x9x64xf32>) {test.note}{{$}}
// GENERIC-LABEL: sym_name = "all"
// GENERIC: norm_eps = 1.000000e-03 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 0, 2>, rotation = #posenc.rotation<
func.func @all(%k: memref<2x8x3x64xf32>, %p: memref<2x3xi32>, %w: memref<64xf32>, %n: memref<2xi32>, %c: memref<2x8x9x64xf32>) {
  posenc.kv_append norm_eps = 0.001 rotation = <pairing = interleaved, frequencies = <dim = 32>, offset = 32>
    cache_layout = head_major layout = head_major
    ins(%k, %k : memref<2x8x3x64xf32>, memref<2x8x3x64xf32>)
    norm(%w : memref<64xf32>) lengths(%n : memref<2xi32>) positions(%p : memref<2x3xi32>)
    outs(%c, %c : memref<2x8x9x64xf32>, memref<2x8x9x64xf32>) {test.note}
  return
}

// Rows without a batch are appended to pages.
// CHECK-LABEL: func @pages(
// CHECK-NEXT: posenc.kv_append rotation = <pairing = half, frequencies = <dim = 64, base = 1.000000e+04>, axes = <axial, [16, 16]>>
// CHECK-SAME: positions(%arg1 : tensor<2x?xi64>) slots(%arg2 : tensor<?xi64>) outs(
// GENERIC-LABEL: sym_name = "pages"
// GENERIC: array<i32: 1, 1, 1, 0, 0, 1, 0, 0, 0, 2>
func.func @pages(%k: tensor<?x8x64xbf16>, %p: tensor<2x?xi64>, %s: tensor<?xi64>, %c: tensor<?x16x8x64xbf16>) {
  %r:2 = posenc.kv_append rotation = <pairing = half, frequencies = <dim = 64>, axes = <axial, [16, 16]>>
    ins(%k, %k : tensor<?x8x64xbf16>, tensor<?x8x64xbf16>)
    slots(%s : tensor<?xi64>) positions(%p : tensor<2x?xi64>)
    outs(%c, %c : tensor<?x16x8x64xbf16>, tensor<?x16x8x64xbf16>)
  return
}

// CHECK-LABEL: func @batch_of_slots(
// CHECK-NEXT: posenc.kv_append cache_layout = head_major ins(
// CHECK-SAME: slots(%arg1 : tensor<2x3xi64>) outs(
func.func @batch_of_slots(%k: tensor<2x3x8x64xf64>, %s: tensor<2x3xi64>, %c: tensor<5x8x16x64xf64>) {
  %r:2 = posenc.kv_append cache_layout = head_major
    ins(%k, %k : tensor<2x3x8x64xf64>, tensor<2x3x8x64xf64>) slots(%s : tensor<2x3xi64>)
    outs(%c, %c : tensor<5x8x16x64xf64>, tensor<5x8x16x64xf64>)
  return
}

// Quantized caches have scales. Other caches may have another type than the rows.
// CHECK-LABEL: func @quantized(
// CHECK: %{{.*}}:4 = posenc.kv_append ins(%arg0, %arg0 : tensor<?x?x4x8xbf16>, tensor<?x?x4x8xbf16>) lengths(%arg1 : tensor<?xi64>) outs(%arg2, %arg2, %arg3, %arg3 : tensor<?x?x4x8xf8E5M2>, tensor<?x?x4x8xf8E5M2>, tensor<?x4x?xf32>, tensor<?x4x?xf32>)
// CHECK: %{{.*}}:2 = posenc.kv_append ins(%arg0, %arg0 : tensor<?x?x4x8xbf16>, tensor<?x?x4x8xbf16>) lengths(%arg1 : tensor<?xi64>) outs(%arg4, %arg4 : tensor<?x?x4x8xf16>, tensor<?x?x4x8xf16>)
func.func @quantized(%k: tensor<?x?x4x8xbf16>, %n: tensor<?xi64>, %c: tensor<?x?x4x8xf8E5M2>, %s: tensor<?x4x?xf32>, %h: tensor<?x?x4x8xf16>) {
  %0:4 = posenc.kv_append
    ins(%k, %k : tensor<?x?x4x8xbf16>, tensor<?x?x4x8xbf16>) lengths(%n : tensor<?xi64>)
    outs(%c, %c, %s, %s : tensor<?x?x4x8xf8E5M2>, tensor<?x?x4x8xf8E5M2>, tensor<?x4x?xf32>, tensor<?x4x?xf32>)
  %1:2 = posenc.kv_append
    ins(%k, %k : tensor<?x?x4x8xbf16>, tensor<?x?x4x8xbf16>) lengths(%n : tensor<?xi64>)
    outs(%h, %h : tensor<?x?x4x8xf16>, tensor<?x?x4x8xf16>)
  return
}

// Scales of all heads, and of each head.
// CHECK-LABEL: func @given_scales(
// CHECK: posenc.kv_append ins(%arg0, %arg0 : tensor<?x4x8xbf16>, tensor<?x4x8xbf16>) slots(%arg1 : tensor<?xi64>)
// CHECK-SAME: key_scales(%arg2 : tensor<1x1x1xf32>) value_scales(%arg3 : tensor<1x4x1xf32>) outs(%arg4, %arg4 : tensor<?x?x4x8xf8E4M3FN>, tensor<?x?x4x8xf8E4M3FN>)
func.func @given_scales(%k: tensor<?x4x8xbf16>, %s: tensor<?xi64>, %ks: tensor<1x1x1xf32>, %vs: tensor<1x4x1xf32>, %c: tensor<?x?x4x8xf8E4M3FN>) {
  %0:2 = posenc.kv_append
    ins(%k, %k : tensor<?x4x8xbf16>, tensor<?x4x8xbf16>) slots(%s : tensor<?xi64>)
    value_scales(%vs : tensor<1x4x1xf32>) key_scales(%ks : tensor<1x1x1xf32>)
    outs(%c, %c : tensor<?x?x4x8xf8E4M3FN>, tensor<?x?x4x8xf8E4M3FN>)
  return
}
