//===- ops.mlir - every op in a public function ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @rope(%q: tensor<?x?x32x128xf32>, %k: tensor<?x?x8x128xf32>, %p: tensor<?x?xi64>)
    -> (tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 128, base = 5.000000e+05>
    ins(%q, %k : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>)
    positions(%p : tensor<?x?xi64>) dims = [0, 1]
    outs(%q, %k : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>)
  return %r#0, %r#1 : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>
}
// -----
func.func @rope(%x: tensor<?x24xbf16> {posenc.name = "x"}, %p: tensor<?xi32>) -> (tensor<?x24xbf16> {posenc.name = "y"}) {
  %r = posenc.rope interleaved inverse #posenc.frequencies<dim = 8> ins(%x : tensor<?x24xbf16>)
    positions(%p : tensor<?xi32>) dims = [0] offset = 4 outs(%x : tensor<?x24xbf16>)
  return %r : tensor<?x24xbf16>
}
// -----
func.func @rope(%x: tensor<2x?x4x16xf64>, %p: index) -> tensor<2x?x4x16xf64> {
  %r = posenc.rope half #posenc.frequencies<dim = 12, base = 1.000000e+02> ins(%x : tensor<2x?x4x16xf64>)
    positions(%p : index) dims = [1] outs(%x : tensor<2x?x4x16xf64>)
  return %r : tensor<2x?x4x16xf64>
}
// -----
func.func @axes(%x: tensor<?x4x16xf16>, %p: tensor<3x?xi64>) -> tensor<?x4x16xf16> {
  %r = posenc.rope half #posenc.frequencies<dim = 16> axes <contiguous, [2, 3, 3]>
    ins(%x : tensor<?x4x16xf16>) positions(%p : tensor<3x?xi64>) dims = [0] outs(%x : tensor<?x4x16xf16>)
  return %r : tensor<?x4x16xf16>
}
// -----
func.func @rotate(%x: tensor<?x8x64xf32>, %cos: tensor<?x32xf32>, %sin: tensor<?x32xf32>) -> tensor<?x8x64xf32> {
  %r = posenc.rotate half ins(%x : tensor<?x8x64xf32>) tables(%cos, %sin : tensor<?x32xf32>) dims = [0]
    outs(%x : tensor<?x8x64xf32>)
  return %r : tensor<?x8x64xf32>
}
// -----
func.func @rotate(%x: tensor<6x?x20xf16>, %y: tensor<?x?x9xf16>, %cos: tensor<?x6x4xbf16>, %sin: tensor<?x6x4xbf16>)
    -> (tensor<6x?x20xf16>, tensor<?x?x9xf16>) {
  %r:2 = posenc.rotate interleaved inverse ins(%x, %y : tensor<6x?x20xf16>, tensor<?x?x9xf16>)
    tables(%cos, %sin : tensor<?x6x4xbf16>) dims = [1, 0] offset = 1
    outs(%x, %y : tensor<6x?x20xf16>, tensor<?x?x9xf16>)
  return %r#0, %r#1 : tensor<6x?x20xf16>, tensor<?x?x9xf16>
}
// -----
func.func @sincos(%p: tensor<?xi64>, %c: tensor<?x64xf32>, %s: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 128, base = 1.000000e+04>
    positions(%p : tensor<?xi64>) outs(%c, %s : tensor<?x64xf32>, tensor<?x64xf32>)
  return %cos, %sin : tensor<?x64xf32>, tensor<?x64xf32>
}
// -----
func.func @sincos(%p: tensor<2x?x3xindex>, %n: index) -> (tensor<?x3x8xf64>, tensor<?x3x8xf64>) {
  %c = tensor.empty(%n) : tensor<?x3x8xf64>
  %r:2 = posenc.sincos #posenc.frequencies<dim = 16> axes <axial, [3, 5]>
    positions(%p : tensor<2x?x3xindex>) outs(%c, %c : tensor<?x3x8xf64>, tensor<?x3x8xf64>)
  return %r#0, %r#1 : tensor<?x3x8xf64>, tensor<?x3x8xf64>
}
// -----
func.func @table(%first: i64, %t: tensor<?x512xf32>) -> tensor<?x512xf32> {
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 512, base = 1.000000e+04>
    positions(%first : i64) outs(%t : tensor<?x512xf32>)
  return %r : tensor<?x512xf32>
}
// -----
func.func @table(%p: tensor<?x7xi32>) -> tensor<?x7x10xbf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %p, %c0 : tensor<?x7xi32>
  %t = tensor.empty(%n) : tensor<?x7x10xbf16>
  %r = posenc.sinusoidal cos_sin #posenc.frequencies<dim = 10> positions(%p : tensor<?x7xi32>) outs(%t : tensor<?x7x10xbf16>)
  return %r : tensor<?x7x10xbf16>
}
// -----
func.func @fairseq(%p: tensor<?xi64>, %t: tensor<?x17xf32>) -> tensor<?x17xf32> {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 16, scaling = #posenc.geometric<shift = 1.0>> zero_pad padding_position = 1
    positions(%p : tensor<?xi64>) outs(%t : tensor<?x17xf32>)
  return %r : tensor<?x17xf32>
}
// -----
func.func @patches(%p: tensor<2x?xi64>, %t: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 16> axes <axial, [4, 4]>
    positions(%p : tensor<2x?xi64>) outs(%t : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}
