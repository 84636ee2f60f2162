//===- reify.mlir - result shapes -----------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --resolve-ranked-shaped-type-result-dims --canonicalize \
// RUN:   | FileCheck %s

// The sizes of a result are those of its destination, so no operation is
// computed for them.
// CHECK-LABEL: func @rope(
// CHECK-SAME: %[[O:[^:]+]]: tensor<?x?x8xf32>, %[[L:[^:]+]]: tensor<?x4x8xf32>
// CHECK-DAG: %[[A:.+]] = tensor.dim %[[O]], %c0
// CHECK-DAG: %[[B:.+]] = tensor.dim %[[O]], %c1
// CHECK-DAG: %[[C:.+]] = tensor.dim %[[L]], %c0
// CHECK-NOT: posenc
// CHECK: return %[[A]], %[[B]], %c8, %[[C]], %c4
func.func @rope(%o: tensor<?x?x8xf32>, %l: tensor<?x4x8xf32>, %x: tensor<?x?x8xf32>, %y: tensor<?x4x8xf32>, %p: tensor<?xi64>)
    -> (index, index, index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r:2 = posenc.rope half <dim = 8> ins(%x, %y : tensor<?x?x8xf32>, tensor<?x4x8xf32>) positions(%p : tensor<?xi64>)
    dims = [0] outs(%o, %l : tensor<?x?x8xf32>, tensor<?x4x8xf32>)
  %0 = tensor.dim %r#0, %c0 : tensor<?x?x8xf32>
  %1 = tensor.dim %r#0, %c1 : tensor<?x?x8xf32>
  %2 = tensor.dim %r#0, %c2 : tensor<?x?x8xf32>
  %3 = tensor.dim %r#1, %c0 : tensor<?x4x8xf32>
  %4 = tensor.dim %r#1, %c1 : tensor<?x4x8xf32>
  return %0, %1, %2, %3, %4 : index, index, index, index, index
}

// CHECK-LABEL: func @rotate(
// CHECK-SAME: %[[O:[^:]+]]: tensor<?x8xf32>
// CHECK: %[[A:.+]] = tensor.dim %[[O]], %c0
// CHECK-NOT: posenc
// CHECK: return %[[A]]
func.func @rotate(%o: tensor<?x8xf32>, %x: tensor<?x8xf32>, %c: tensor<?x4xf32>) -> index {
  %c0 = arith.constant 0 : index
  %r = posenc.rotate half ins(%x : tensor<?x8xf32>) tables(%c, %c : tensor<?x4xf32>) dims = [0] outs(%o : tensor<?x8xf32>)
  %0 = tensor.dim %r, %c0 : tensor<?x8xf32>
  return %0 : index
}

// CHECK-LABEL: func @sincos(
// CHECK-SAME: %[[C:[^:]+]]: tensor<?x?x4xf32>, %[[S:[^:]+]]: tensor<?x?x4xf32>
// CHECK-DAG: %[[A:.+]] = tensor.dim %[[C]], %c1
// CHECK-DAG: %[[B:.+]] = tensor.dim %[[S]], %c0
// CHECK-NOT: posenc
// CHECK: return %[[A]], %[[B]]
func.func @sincos(%c: tensor<?x?x4xf32>, %s: tensor<?x?x4xf32>, %p: tensor<2x?x?xi64>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = posenc.sincos <dim = 8> axes <axial, [2, 2]> positions(%p : tensor<2x?x?xi64>)
    outs(%c, %s : tensor<?x?x4xf32>, tensor<?x?x4xf32>)
  %0 = tensor.dim %r#0, %c1 : tensor<?x?x4xf32>
  %1 = tensor.dim %r#1, %c0 : tensor<?x?x4xf32>
  return %0, %1 : index, index
}

// CHECK-LABEL: func @sinusoidal(
// CHECK-SAME: %[[T:[^:]+]]: tensor<?x8xf32>
// CHECK: %[[A:.+]] = tensor.dim %[[T]], %c0
// CHECK-NOT: posenc
// CHECK: return %[[A]], %c8
func.func @sinusoidal(%t: tensor<?x8xf32>, %p: i64) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = posenc.sinusoidal interleaved <dim = 8> positions(%p : i64) outs(%t : tensor<?x8xf32>)
  %0 = tensor.dim %r, %c0 : tensor<?x8xf32>
  %1 = tensor.dim %r, %c1 : tensor<?x8xf32>
  return %0, %1 : index, index
}

// The chain of destinations ends at a function argument.
// CHECK-LABEL: func @chain(
// CHECK-SAME: %[[X:[^:]+]]: tensor<?x8xf32>
// CHECK: %[[A:.+]] = tensor.dim %[[X]], %c0
// CHECK-NOT: posenc
// CHECK: return %[[A]]
func.func @chain(%x: tensor<?x8xf32>, %p: i64) -> index {
  %c0 = arith.constant 0 : index
  %0 = posenc.rope half <dim = 8> ins(%x : tensor<?x8xf32>) positions(%p : i64) dims = [0] outs(%x : tensor<?x8xf32>)
  %1 = posenc.rope half <dim = 8> ins(%0 : tensor<?x8xf32>) positions(%p : i64) dims = [0] outs(%0 : tensor<?x8xf32>)
  %2 = tensor.dim %1, %c0 : tensor<?x8xf32>
  return %2 : index
}

// CHECK-LABEL: func @attention(
// CHECK-SAME: %[[O:[^:]+]]: tensor<?x?x8x8xf32>, %[[L:[^:]+]]: tensor<?x?x8xf32>
// CHECK-DAG: %[[A:.+]] = tensor.dim %[[O]], %c1
// CHECK-DAG: %[[B:.+]] = tensor.dim %[[L]], %c0
// CHECK-NOT: posenc
// CHECK: return %[[A]], %[[B]]
func.func @attention(%o: tensor<?x?x8x8xf32>, %l: tensor<?x?x8xf32>, %q: tensor<?x?x8x8xf32>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = posenc.attention ins(%q, %q, %q : tensor<?x?x8x8xf32>, tensor<?x?x8x8xf32>, tensor<?x?x8x8xf32>)
    outs(%o, %l : tensor<?x?x8x8xf32>, tensor<?x?x8xf32>)
  %0 = tensor.dim %r#0, %c1 : tensor<?x?x8x8xf32>
  %1 = tensor.dim %r#1, %c0 : tensor<?x?x8xf32>
  return %0, %1 : index, index
}

// CHECK-LABEL: func @online_attention(
// CHECK-SAME: %[[A:[^:]+]]: tensor<1x?x8xf32>
// CHECK: %[[D:.+]] = tensor.dim %[[A]], %c1
// CHECK-NOT: posenc
// CHECK: return %[[D]]
func.func @online_attention(%a: tensor<1x?x8xf32>, %k: tensor<?x8xf32>, %m: tensor<1x?xf32>) -> index {
  %c1 = arith.constant 1 : index
  %r:3 = posenc.online_attention at(%c1, %c1, %c1, %c1) ins(%a, %k, %k : tensor<1x?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
    outs(%a, %m, %m : tensor<1x?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
  %0 = tensor.dim %r#0, %c1 : tensor<1x?x8xf32>
  return %0 : index
}

// CHECK-LABEL: func @kv_append(
// CHECK-SAME: %[[C:[^:]+]]: tensor<2x?x8x8xf32>
// CHECK: %[[D:.+]] = tensor.dim %[[C]], %c1
// CHECK-NOT: posenc
// CHECK: return %[[D]]
func.func @kv_append(%c: tensor<2x?x8x8xf32>, %k: tensor<2x1x8x8xf32>, %n: tensor<2xi64>) -> index {
  %c1 = arith.constant 1 : index
  %r:2 = posenc.kv_append ins(%k, %k : tensor<2x1x8x8xf32>, tensor<2x1x8x8xf32>) lengths(%n : tensor<2xi64>)
    outs(%c, %c : tensor<2x?x8x8xf32>, tensor<2x?x8x8xf32>)
  %0 = tensor.dim %r#1, %c1 : tensor<2x?x8x8xf32>
  return %0 : index
}
