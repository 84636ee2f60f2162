//===- posenc-to-cpu.mlir - from tensors to the LLVM dialect --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-to-cpu | FileCheck %s \
// RUN:   --implicit-check-not='malloc' \
// RUN:   --implicit-check-not='llvm.call @'
// RUN: posenc-compile %s --emit=vector -o - | FileCheck %s --check-prefix=VECTOR

// A kernel has no allocations, copies or calls.
// CHECK: llvm.func @compose
// CHECK: llvm.intr.fma

// Two ropes are merged, and positions are added where they are used.
// VECTOR-LABEL: func.func @compose
// VECTOR-NOT: memref.alloc()
// VECTOR: memref.alloca() {alignment = 64 : i64} : memref<1xi64>
// VECTOR-NOT: memref.copy
// VECTOR: arith.addi %{{.*}}, %{{.*}} : i64
// VECTOR: math.fma
func.func @compose(%x: tensor<?x4x8xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>) -> tensor<?x4x8xf32> {
  %0 = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<?x4x8xf32>) positions(%p : tensor<?xi32>) dims = [0] outs(%x : tensor<?x4x8xf32>)
  %1 = posenc.rope half #posenc.frequencies<dim = 8> ins(%0 : tensor<?x4x8xf32>) positions(%s : tensor<?xi32>) dims = [0] outs(%x : tensor<?x4x8xf32>)
  return %1 : tensor<?x4x8xf32>
}

// A rotation by the tables of sincos becomes a rope, and two ropes of the same
// positions share a loop.
// VECTOR-LABEL: func.func @shared
// VECTOR-COUNT-1: memref.load %{{.*}} : memref<?xi64, strided<[1], offset: ?>>
// VECTOR-NOT: memref.load %{{.*}} : memref<?xi64
func.func @shared(%q: tensor<?x4x8xf32>, %k: tensor<?x2x8xf32>, %p: tensor<?xi64>) -> (tensor<?x4x8xf32>, tensor<?x2x8xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %p, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %c, %s = posenc.sincos #posenc.frequencies<dim = 8> positions(%p : tensor<?xi64>) outs(%e, %e : tensor<?x4xf32>, tensor<?x4xf32>)
  %a = posenc.rotate half ins(%q : tensor<?x4x8xf32>) tables(%c, %s : tensor<?x4xf32>) dims = [0] outs(%q : tensor<?x4x8xf32>)
  %b = posenc.rotate half ins(%k : tensor<?x2x8xf32>) tables(%c, %s : tensor<?x4xf32>) dims = [0] outs(%k : tensor<?x2x8xf32>)
  return %a, %b : tensor<?x4x8xf32>, tensor<?x2x8xf32>
}
