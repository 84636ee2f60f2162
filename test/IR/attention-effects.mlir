//===- attention-effects.mlir - memory effects of attention ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --cse --canonicalize | FileCheck %s

// Attention on tensors is pure: equal ones are merged, and unused ones removed.
// CHECK-LABEL: func @pure(
// CHECK-NEXT: %[[R:.+]] = posenc.attention ins(
// CHECK-NEXT: return %[[R]], %[[R]]
func.func @pure(%q: tensor<2x5x8x16xf32>) -> (tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>) {
  %r = posenc.attention ins(%q, %q, %q : tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>) outs(%q : tensor<2x5x8x16xf32>)
  %t = posenc.attention ins(%q, %q, %q : tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>) outs(%q : tensor<2x5x8x16xf32>)
  %u = posenc.attention scale = 2 ins(%q, %q, %q : tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>) outs(%q : tensor<2x5x8x16xf32>)
  return %r, %t : tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>
}

// Attentions with different score regions are not merged.
// CHECK-LABEL: func @regions_differ(
// CHECK-COUNT-2: posenc.attention
// CHECK: return
func.func @regions_differ(%q: tensor<2x5x8x16xf32>) -> (tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>) {
  %r = posenc.attention ins(%q, %q, %q : tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>) outs(%q : tensor<2x5x8x16xf32>)
    score(%s, %b, %h, %i, %j) {
      %x = math.tanh %s : f32
      posenc.yield %x : f32
    }
  %t = posenc.attention ins(%q, %q, %q : tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>) outs(%q : tensor<2x5x8x16xf32>)
    score(%s, %b, %h, %i, %j) {
      %x = math.exp %s : f32
      posenc.yield %x : f32
    }
  return %r, %t : tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>
}

// Attentions whose regions read memory are not merged across a write.
// CHECK-LABEL: func @region_reads(
// CHECK: posenc.attention
// CHECK: memref.store
// CHECK: posenc.attention
func.func @region_reads(%q: tensor<2x5x8x16xf32>, %m: memref<8xf32>, %i: index, %f: f32) -> (tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>) {
  %r = posenc.attention ins(%q, %q, %q : tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>) outs(%q : tensor<2x5x8x16xf32>)
    score(%s, %b, %h, %x, %y) {
      %t = memref.load %m[%h] : memref<8xf32>
      posenc.yield %t : f32
    }
  memref.store %f, %m[%i] : memref<8xf32>
  %u = posenc.attention ins(%q, %q, %q : tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>) outs(%q : tensor<2x5x8x16xf32>)
    score(%s, %b, %h, %x, %y) {
      %t = memref.load %m[%h] : memref<8xf32>
      posenc.yield %t : f32
    }
  return %r, %u : tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>
}

// Attention on memrefs writes to memory and is kept.
// CHECK-LABEL: func @memrefs(
// CHECK-NEXT: posenc.attention
// CHECK-NEXT: posenc.online_attention
// CHECK-NEXT: posenc.kv_append
// CHECK-NEXT: return
func.func @memrefs(%q: memref<2x5x8x16xf32>, %t: memref<8x5x16xf32>, %k: memref<5x16xf32>, %m: memref<8x5xf32>, %i: index, %n: memref<2xi64>) {
  posenc.attention ins(%q, %q, %q : memref<2x5x8x16xf32>, memref<2x5x8x16xf32>, memref<2x5x8x16xf32>) outs(%q : memref<2x5x8x16xf32>)
  posenc.online_attention at(%i, %i, %i, %i) ins(%t, %k, %k : memref<8x5x16xf32>, memref<5x16xf32>, memref<5x16xf32>)
    outs(%t, %m, %m : memref<8x5x16xf32>, memref<8x5xf32>, memref<8x5xf32>)
  posenc.kv_append ins(%q, %q : memref<2x5x8x16xf32>, memref<2x5x8x16xf32>) lengths(%n : memref<2xi64>)
    outs(%q, %q : memref<2x5x8x16xf32>, memref<2x5x8x16xf32>)
  return
}
