//===- attention-to-vector-left.mlir - attention that is not vectorized ---===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --convert-posenc-attention-to-vector --split-input-file --remarks-filter-missed=posenc 2>&1 | FileCheck %s
// RUN: not posenc-opt %s --convert-posenc-attention-to-vector=vector-bytes=24 --split-input-file 2>&1 | FileCheck %s --check-prefix=BYTES

// CHECK: remark: {{.*}}elements are not f32, f16 or bf16
// CHECK: posenc.attention
func.func @f64(%x: memref<1x2x3x8xf64>) {
  posenc.attention ins(%x, %x, %x : memref<1x2x3x8xf64>, memref<1x2x3x8xf64>, memref<1x2x3x8xf64>) outs(%x : memref<1x2x3x8xf64>)
  return
}

// -----

// CHECK: remark: {{.*}}a head of 577 is wider than 576
// CHECK: posenc.attention
func.func @head(%x: memref<1x2x3x577xf32>) {
  posenc.attention ins(%x, %x, %x : memref<1x2x3x577xf32>, memref<1x2x3x577xf32>, memref<1x2x3x577xf32>) outs(%x : memref<1x2x3x577xf32>)
  return
}

// -----

// CHECK: remark: {{.*}}the number of heads is dynamic
// CHECK: posenc.attention
func.func @heads(%x: memref<1x2x?x8xf32>) {
  posenc.attention ins(%x, %x, %x : memref<1x2x?x8xf32>, memref<1x2x?x8xf32>, memref<1x2x?x8xf32>) outs(%x : memref<1x2x?x8xf32>)
  return
}

// -----

// CHECK: remark: {{.*}}its region contains arith.remf
// CHECK: posenc.attention
func.func @region(%x: memref<1x2x3x8xf32>) {
  posenc.attention ins(%x, %x, %x : memref<1x2x3x8xf32>, memref<1x2x3x8xf32>, memref<1x2x3x8xf32>) outs(%x : memref<1x2x3x8xf32>)
    score(%s, %b, %h, %i, %j) {
      %y = arith.remf %s, %s : f32
      posenc.yield %y : f32
    }
  return
}

// -----

// BYTES: error: 'posenc.attention' op cannot use vectors of 24 bytes: expected 16, 32 or 64
func.func @bytes(%x: memref<1x2x3x8xf32>) {
  posenc.attention ins(%x, %x, %x : memref<1x2x3x8xf32>, memref<1x2x3x8xf32>, memref<1x2x3x8xf32>) outs(%x : memref<1x2x3x8xf32>)
  return
}
