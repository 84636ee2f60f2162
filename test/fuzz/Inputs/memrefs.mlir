//===- memrefs.mlir - ops on memrefs --------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @rope(%x: memref<?x4x16xf32>, %y: memref<?x4x16xf32, strided<[?, 32, 1], offset: ?>>, %p: memref<?xi64>) {
  posenc.rope half #posenc.frequencies<dim = 8> ins(%x : memref<?x4x16xf32>) positions(%p : memref<?xi64>) dims = [0] offset = 4
    outs(%y : memref<?x4x16xf32, strided<[?, 32, 1], offset: ?>>)
  return
}
// -----
func.func @rope(%x: memref<3x?x20xbf16>, %p: i32) {
  posenc.rope interleaved inverse #posenc.frequencies<dim = 20> ins(%x : memref<3x?x20xbf16>) positions(%p : i32) dims = [1]
    outs(%x : memref<3x?x20xbf16>)
  return
}
// -----
func.func @rotate(%x: memref<?x6xf64>, %c: memref<?x3xf32>, %s: memref<?x3xf32, strided<[8, 1]>>) {
  posenc.rotate half ins(%x : memref<?x6xf64>) tables(%c, %s : memref<?x3xf32>, memref<?x3xf32, strided<[8, 1]>>) dims = [0]
    outs(%x : memref<?x6xf64>)
  return
}
// -----
func.func @sincos(%p: memref<2x?xi32>, %c: memref<?x5xf16>, %s: memref<?x5xf16>) {
  posenc.sincos #posenc.frequencies<dim = 10> axes <contiguous, [1, 4]> positions(%p : memref<2x?xi32>)
    outs(%c, %s : memref<?x5xf16>, memref<?x5xf16>)
  return
}
// -----
func.func @sinusoidal(%p: memref<?xindex>, %t: memref<?x34xf64>) {
  posenc.sinusoidal sin_cos #posenc.frequencies<dim = 34> positions(%p : memref<?xindex>) outs(%t : memref<?x34xf64>)
  return
}
// -----
func.func @scalar(%p: memref<i64>, %t: memref<4xf32>) {
  posenc.sinusoidal interleaved #posenc.frequencies<dim = 4> positions(%p : memref<i64>) outs(%t : memref<4xf32>)
  return
}
// -----
func.func @copy(%x: memref<?x8xf32, strided<[?, 1], offset: ?>>, %y: memref<?x8xf32>) {
  memref.copy %x, %y : memref<?x8xf32, strided<[?, 1], offset: ?>> to memref<?x8xf32>
  return
}
// -----
func.func @truncation(%x: tensor<?x8xf32>, %y: vector<[4]xf32>, %z: f32) -> (tensor<?x8xbf16>, vector<[4]xbf16>, bf16) {
  %a = arith.truncf %x : tensor<?x8xf32> to tensor<?x8xbf16>
  %b = arith.truncf %y : vector<[4]xf32> to vector<[4]xbf16>
  %c = arith.truncf %z : f32 to bf16
  %d = arith.extf %a : tensor<?x8xbf16> to tensor<?x8xf32>
  return %a, %b, %c : tensor<?x8xbf16>, vector<[4]xbf16>, bf16
}
