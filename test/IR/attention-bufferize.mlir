//===- attention-bufferize.mlir - bufferization of attention -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --mlir-print-local-scope \
// RUN:   --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   --cse --canonicalize | FileCheck %s

// The result is the buffer of the destination. Regions also read from buffers.
// CHECK-LABEL: func @attention(
// CHECK-SAME: %[[Q:[^:]+]]: memref<2x?x8x16xf32>, %[[T:[^:]+]]: memref<8xf32>, %[[D:[^:]+]]: memref<?xi32>, %[[O:[^:]+]]: memref<2x?x8x16xf32>, %[[L:[^:]+]]: memref<2x?x8xf32>
// CHECK-NEXT: posenc.attention causal query_rotation = {{.*}} ins(%[[Q]], %[[Q]], %[[Q]] : {{.*}} outs(%[[O]], %[[L]] : memref<2x?x8x16xf32>, memref<2x?x8xf32>) {test.note}
// CHECK-NEXT: score(%s, %b, %h, %i, %j) {
// CHECK-NEXT:   memref.load %[[T]][%h]
// CHECK:      where(%b, %h, %i, %j) {
// CHECK-NEXT:   memref.load %[[D]][%i]
// CHECK-NEXT:   memref.load %[[D]][%j]
// CHECK-NEXT:   arith.cmpi
// CHECK-NEXT:   posenc.yield
// CHECK-NEXT: }
// CHECK-NEXT: return %[[O]], %[[L]]
func.func @attention(%q: tensor<2x?x8x16xf32>, %t: tensor<8xf32>, %d: tensor<?xi32>, %o: tensor<2x?x8x16xf32>, %l: tensor<2x?x8xf32>)
    -> (tensor<2x?x8x16xf32>, tensor<2x?x8xf32>) {
  %r:2 = posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 16>>
    ins(%q, %q, %q : tensor<2x?x8x16xf32>, tensor<2x?x8x16xf32>, tensor<2x?x8x16xf32>)
    outs(%o, %l : tensor<2x?x8x16xf32>, tensor<2x?x8xf32>) {test.note}
    score(%s, %b, %h, %i, %j) {
      %w = tensor.extract %t[%h] : tensor<8xf32>
      %x = arith.mulf %s, %w : f32
      posenc.yield %x : f32
    }
    where(%b, %h, %i, %j) {
      %x = tensor.extract %d[%i] : tensor<?xi32>
      %y = tensor.extract %d[%j] : tensor<?xi32>
      %same = arith.cmpi eq, %x, %y : i32
      posenc.yield %same : i1
    }
  return %r#0, %r#1 : tensor<2x?x8x16xf32>, tensor<2x?x8xf32>
}

// Queries are not bufferized in place: others are read after the first write.
// CHECK-LABEL: func @not_in_place(
// CHECK-SAME: %[[Q:[^:]+]]: memref<2x5x8x16xf32>
// CHECK: %[[O:.+]] = memref.alloc
// CHECK: posenc.attention ins(%[[Q]], {{.*}} outs(%[[O]] :
func.func @not_in_place(%q: tensor<2x5x8x16xf32>) -> tensor<2x5x8x16xf32> {
  %r = posenc.attention ins(%q, %q, %q : tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>)
    outs(%q : tensor<2x5x8x16xf32>)
  return %r : tensor<2x5x8x16xf32>
}

// Neither are tensors that a region reads.
// CHECK-LABEL: func @region_reads_output(
// CHECK-SAME: %[[Q:[^:]+]]: memref<2x5x8x16xf32>, %[[L:[^:]+]]: memref<2x5x8xf32>, %[[O:[^:]+]]: memref<2x5x8x16xf32>
// CHECK: %[[M:.+]] = memref.alloc() {{.*}} : memref<2x5x8xf32>
// CHECK: posenc.attention {{.*}} outs(%[[O]], %[[M]] :
// CHECK: memref.load %[[L]]
func.func @region_reads_output(%q: tensor<2x5x8x16xf32>, %l: tensor<2x5x8xf32>, %o: tensor<2x5x8x16xf32>) -> (tensor<2x5x8x16xf32>, tensor<2x5x8xf32>) {
  %r:2 = posenc.attention ins(%q, %q, %q : tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>, tensor<2x5x8x16xf32>)
    outs(%o, %l : tensor<2x5x8x16xf32>, tensor<2x5x8xf32>)
    score(%s, %b, %h, %i, %j) {
      %w = tensor.extract %l[%b, %i, %h] : tensor<2x5x8xf32>
      %x = arith.addf %s, %w : f32
      posenc.yield %x : f32
    }
  return %r#0, %r#1 : tensor<2x5x8x16xf32>, tensor<2x5x8xf32>
}

// The destinations of online_attention and kv_append are read. A destination with
// later uses is copied with its elements.
// CHECK-LABEL: func @tile(
// CHECK-SAME: %[[Q:[^:]+]]: memref<4x5x8xf32>, %[[K:[^:]+]]: memref<7x8xf32>, %[[I:[^:]+]]: index, %[[A:[^:]+]]: memref<4x5x8xf32>, %[[M:[^:]+]]: memref<4x5xf32>, %[[S:[^:]+]]: memref<4x5xf32>
// CHECK: %[[C:.+]] = memref.alloc() {{.*}} : memref<4x5xf32>
// CHECK: memref.copy %[[M]], %[[C]]
// CHECK: posenc.online_attention at(%[[I]], %[[I]], %[[I]], %[[I]]) ins(%[[Q]], %[[K]], %[[K]] : {{.*}} outs(%[[A]], %[[C]], %[[S]] :
// CHECK: return %[[A]], %[[C]], %[[S]], %[[M]]
func.func @tile(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %i: index, %a: tensor<4x5x8xf32>, %m: tensor<4x5xf32>, %s: tensor<4x5xf32>)
    -> (tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>) {
  %r:3 = posenc.online_attention at(%i, %i, %i, %i) ins(%q, %k, %k : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>)
    outs(%a, %m, %s : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return %r#0, %r#1, %r#2, %m : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>
}

// CHECK-LABEL: func @append(
// CHECK-SAME: %[[K:[^:]+]]: memref<2x1x4x8xf32>, %[[N:[^:]+]]: memref<2xi64>, %[[A:[^:]+]]: memref<2x9x4x8xf32>, %[[B:[^:]+]]: memref<2x9x4x8xf32>
// CHECK-NEXT: posenc.kv_append ins(%[[K]], %[[K]] : {{.*}}) lengths(%[[N]] : memref<2xi64>) outs(%[[A]], %[[B]] :
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @append(%k: tensor<2x1x4x8xf32>, %n: tensor<2xi64>, %a: tensor<2x9x4x8xf32>, %b: tensor<2x9x4x8xf32>) -> (tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>) {
  %r:2 = posenc.kv_append ins(%k, %k : tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%a, %b : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>)
  return %r#0, %r#1 : tensor<2x9x4x8xf32>, tensor<2x9x4x8xf32>
}
