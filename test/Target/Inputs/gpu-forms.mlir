//===- gpu-forms.mlir - the forms that kernels for GPUs have ===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @half_f32(%x0: tensor<?x?x32x128xf32>, %x1: tensor<?x?x8x128xf32>, %p: tensor<?x?xi64>) -> (tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 128> ins(%x0, %x1 : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%x0, %x1 : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>)
  return %r#0, %r#1 : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>
}
func.func @half_bf16(%x0: tensor<?x?x32x128xbf16>, %x1: tensor<?x?x8x128xbf16>, %p: tensor<?x?xi64>) -> (tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 128> ins(%x0, %x1 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%x0, %x1 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>)
  return %r#0, %r#1 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>
}
func.func @half_f16(%x0: tensor<?x?x32x128xf16>, %x1: tensor<?x?x8x128xf16>, %p: tensor<?x?xi64>) -> (tensor<?x?x32x128xf16>, tensor<?x?x8x128xf16>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 128> ins(%x0, %x1 : tensor<?x?x32x128xf16>, tensor<?x?x8x128xf16>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%x0, %x1 : tensor<?x?x32x128xf16>, tensor<?x?x8x128xf16>)
  return %r#0, %r#1 : tensor<?x?x32x128xf16>, tensor<?x?x8x128xf16>
}
func.func @half_f64(%x0: tensor<?x?x32x128xf64>, %x1: tensor<?x?x8x128xf64>, %p: tensor<?x?xi64>) -> (tensor<?x?x32x128xf64>, tensor<?x?x8x128xf64>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 128> ins(%x0, %x1 : tensor<?x?x32x128xf64>, tensor<?x?x8x128xf64>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%x0, %x1 : tensor<?x?x32x128xf64>, tensor<?x?x8x128xf64>)
  return %r#0, %r#1 : tensor<?x?x32x128xf64>, tensor<?x?x8x128xf64>
}
func.func @interleaved_f32(%x0: tensor<?x?x32x128xf32>, %x1: tensor<?x?x8x128xf32>, %p: tensor<?x?xi64>) -> (tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>) {
  %r:2 = posenc.rope interleaved #posenc.frequencies<dim = 128> ins(%x0, %x1 : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%x0, %x1 : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>)
  return %r#0, %r#1 : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>
}
func.func @interleaved_bf16(%x0: tensor<?x?x32x128xbf16>, %x1: tensor<?x?x8x128xbf16>, %p: tensor<?x?xi64>) -> (tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>) {
  %r:2 = posenc.rope interleaved #posenc.frequencies<dim = 128> ins(%x0, %x1 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%x0, %x1 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>)
  return %r#0, %r#1 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>
}
func.func @interleaved_f16(%x0: tensor<?x?x32x128xf16>, %x1: tensor<?x?x8x128xf16>, %p: tensor<?x?xi64>) -> (tensor<?x?x32x128xf16>, tensor<?x?x8x128xf16>) {
  %r:2 = posenc.rope interleaved #posenc.frequencies<dim = 128> ins(%x0, %x1 : tensor<?x?x32x128xf16>, tensor<?x?x8x128xf16>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%x0, %x1 : tensor<?x?x32x128xf16>, tensor<?x?x8x128xf16>)
  return %r#0, %r#1 : tensor<?x?x32x128xf16>, tensor<?x?x8x128xf16>
}
func.func @interleaved_f64(%x0: tensor<?x?x32x128xf64>, %x1: tensor<?x?x8x128xf64>, %p: tensor<?x?xi64>) -> (tensor<?x?x32x128xf64>, tensor<?x?x8x128xf64>) {
  %r:2 = posenc.rope interleaved #posenc.frequencies<dim = 128> ins(%x0, %x1 : tensor<?x?x32x128xf64>, tensor<?x?x8x128xf64>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%x0, %x1 : tensor<?x?x32x128xf64>, tensor<?x?x8x128xf64>)
  return %r#0, %r#1 : tensor<?x?x32x128xf64>, tensor<?x?x8x128xf64>
}
func.func @window(%x0: tensor<?x?x32x80xf32>, %p: tensor<?x?xi64>) -> (tensor<?x?x32x80xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 32> ins(%x0 : tensor<?x?x32x80xf32>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%x0 : tensor<?x?x32x80xf32>)
  return %r : tensor<?x?x32x80xf32>
}
func.func @window_bf16(%x0: tensor<?x?x16x256xbf16>, %p: tensor<?x?xi64>) -> (tensor<?x?x16x256xbf16>) {
  %r = posenc.rope half #posenc.frequencies<dim = 64> ins(%x0 : tensor<?x?x16x256xbf16>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%x0 : tensor<?x?x16x256xbf16>)
  return %r : tensor<?x?x16x256xbf16>
}
func.func @window_il(%x0: tensor<?x?x5x80xf16>, %p: tensor<?x?xi64>) -> (tensor<?x?x5x80xf16>) {
  %r = posenc.rope interleaved #posenc.frequencies<dim = 32> ins(%x0 : tensor<?x?x5x80xf16>) positions(%p : tensor<?x?xi64>) dims = [0, 1] offset = 16 outs(%x0 : tensor<?x?x5x80xf16>)
  return %r : tensor<?x?x5x80xf16>
}
func.func @odd(%x0: tensor<?x?x3x6xf32>, %p: tensor<?x?xi64>) -> (tensor<?x?x3x6xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 6> ins(%x0 : tensor<?x?x3x6xf32>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%x0 : tensor<?x?x3x6xf32>)
  return %r : tensor<?x?x3x6xf32>
}
func.func @odd_il(%x0: tensor<?x?x3x7xbf16>, %p: tensor<?x?xi64>) -> (tensor<?x?x3x7xbf16>) {
  %r = posenc.rope interleaved #posenc.frequencies<dim = 4> ins(%x0 : tensor<?x?x3x7xbf16>) positions(%p : tensor<?x?xi64>) dims = [0, 1] offset = 1 outs(%x0 : tensor<?x?x3x7xbf16>)
  return %r : tensor<?x?x3x7xbf16>
}
func.func @one_head(%x0: tensor<?x?x1x64xbf16>, %p: tensor<?x?xi64>) -> (tensor<?x?x1x64xbf16>) {
  %r = posenc.rope interleaved #posenc.frequencies<dim = 64> ins(%x0 : tensor<?x?x1x64xbf16>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%x0 : tensor<?x?x1x64xbf16>)
  return %r : tensor<?x?x1x64xbf16>
}
func.func @dyn(%x0: tensor<?x?x?x128xbf16>, %x1: tensor<?x?x?x128xbf16>, %p: tensor<?x?xi64>) -> (tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 128> ins(%x0, %x1 : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%x0, %x1 : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>)
  return %r#0, %r#1 : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>
}
func.func @big(%x0: tensor<?x?x128x256xf32>, %p: tensor<?x?xi64>) -> (tensor<?x?x128x256xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 256> ins(%x0 : tensor<?x?x128x256xf32>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%x0 : tensor<?x?x128x256xf32>)
  return %r : tensor<?x?x128x256xf32>
}
func.func @i32(%x0: tensor<?x?x32x128xbf16>, %x1: tensor<?x?x8x128xbf16>, %p: tensor<?x?xi32>) -> (tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 128> ins(%x0, %x1 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>) positions(%p : tensor<?x?xi32>) dims = [0, 1] outs(%x0, %x1 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>)
  return %r#0, %r#1 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>
}
func.func @scalar(%x0: tensor<?x32x128xbf16>, %x1: tensor<?x8x128xbf16>, %p: i64) -> (tensor<?x32x128xbf16>, tensor<?x8x128xbf16>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 128> ins(%x0, %x1 : tensor<?x32x128xbf16>, tensor<?x8x128xbf16>) positions(%p : i64) dims = [0] outs(%x0, %x1 : tensor<?x32x128xbf16>, tensor<?x8x128xbf16>)
  return %r#0, %r#1 : tensor<?x32x128xbf16>, tensor<?x8x128xbf16>
}
func.func @axial(%x0: tensor<?x3x8xf32>, %p: tensor<2x?xi64>) -> (tensor<?x3x8xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 8> axes #posenc.axes<axial, [2, 2]> ins(%x0 : tensor<?x3x8xf32>) positions(%p : tensor<2x?xi64>) dims = [0] outs(%x0 : tensor<?x3x8xf32>)
  return %r : tensor<?x3x8xf32>
}
func.func @sincos(%p: tensor<?xi64>, %c: tensor<?x64xf32>, %s: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %r:2 = posenc.sincos <dim = 128> positions(%p : tensor<?xi64>) outs(%c, %s : tensor<?x64xf32>, tensor<?x64xf32>)
  return %r#0, %r#1 : tensor<?x64xf32>, tensor<?x64xf32>
}
func.func @rotate(%x: tensor<?x32x128xbf16>, %c: tensor<?x64xf32>, %s: tensor<?x64xf32>) -> tensor<?x32x128xbf16> {
  %r = posenc.rotate half ins(%x : tensor<?x32x128xbf16>) tables(%c, %s : tensor<?x64xf32>) dims = [0] outs(%x : tensor<?x32x128xbf16>)
  return %r : tensor<?x32x128xbf16>
}
func.func @sin_sin_cos_f32(%p: tensor<?xi64>, %o: tensor<?x512xf32>) -> tensor<?x512xf32> {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 512> positions(%p : tensor<?xi64>) outs(%o : tensor<?x512xf32>)
  return %r : tensor<?x512xf32>
}
func.func @sin_cos_sin_f16(%p: tensor<?xi64>, %o: tensor<?x512xf16>) -> tensor<?x512xf16> {
  %r = posenc.sinusoidal cos_sin #posenc.frequencies<dim = 512> positions(%p : tensor<?xi64>) outs(%o : tensor<?x512xf16>)
  return %r : tensor<?x512xf16>
}
func.func @sin_interleaved_bf16(%p: tensor<?xi64>, %o: tensor<?x512xbf16>) -> tensor<?x512xbf16> {
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 512> positions(%p : tensor<?xi64>) outs(%o : tensor<?x512xbf16>)
  return %r : tensor<?x512xbf16>
}
func.func @sin_interleaved_f32(%p: tensor<?xi64>, %o: tensor<?x512xf32>) -> tensor<?x512xf32> {
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 512> positions(%p : tensor<?xi64>) outs(%o : tensor<?x512xf32>)
  return %r : tensor<?x512xf32>
}
func.func @sin_sin_cos_bf16(%p: tensor<?xi64>, %o: tensor<?x512xbf16>) -> tensor<?x512xbf16> {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 512> positions(%p : tensor<?xi64>) outs(%o : tensor<?x512xbf16>)
  return %r : tensor<?x512xbf16>
}
func.func @sin_interleaved_f16(%p: tensor<?xi64>, %o: tensor<?x512xf16>) -> tensor<?x512xf16> {
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 512> positions(%p : tensor<?xi64>) outs(%o : tensor<?x512xf16>)
  return %r : tensor<?x512xf16>
}
func.func @sin_sin_cos_f64(%p: tensor<?xi64>, %o: tensor<?x512xf64>) -> tensor<?x512xf64> {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 512> positions(%p : tensor<?xi64>) outs(%o : tensor<?x512xf64>)
  return %r : tensor<?x512xf64>
}

func.func @slice(%x: tensor<?x3x24xf32>, %p: tensor<?xi64>) -> tensor<?x3x8xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3x24xf32>
  %0 = tensor.extract_slice %x[0, 0, 8] [%n, 3, 8] [1, 1, 1] : tensor<?x3x24xf32> to tensor<?x3x8xf32>
  %e = tensor.empty(%n) : tensor<?x3x8xf32>
  %r = posenc.rope half #posenc.frequencies<dim = 8> ins(%0 : tensor<?x3x8xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%e : tensor<?x3x8xf32>)
  return %r : tensor<?x3x8xf32>
}
func.func @two(%x: tensor<?x3x8xf32>, %y: tensor<?x2x16xbf16>, %p: tensor<?xi64>) -> (tensor<?x3x8xf32>, tensor<?x2x16xbf16>) {
  %0 = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<?x3x8xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x3x8xf32>)
  %r = posenc.rope half #posenc.frequencies<dim = 16> ins(%y : tensor<?x2x16xbf16>) positions(%p : tensor<?xi64>) dims = [0] outs(%y : tensor<?x2x16xbf16>)
  return %0, %r : tensor<?x3x8xf32>, tensor<?x2x16xbf16>
}
func.func @no_heads(%x: tensor<?x0x8xf32>, %y: tensor<?x1x8xf32>, %p: tensor<?xi64>) -> (tensor<?x0x8xf32>, tensor<?x1x8xf32>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 8> ins(%x, %y : tensor<?x0x8xf32>, tensor<?x1x8xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x, %y : tensor<?x0x8xf32>, tensor<?x1x8xf32>)
  return %r#0, %r#1 : tensor<?x0x8xf32>, tensor<?x1x8xf32>
}
func.func @twice(%x: tensor<?x3x8xbf16>, %p: tensor<?xi64>, %q: tensor<?xi64>) -> tensor<?x3x8xbf16> {
  %0 = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<?x3x8xbf16>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x3x8xbf16>)
  %r = posenc.rope half #posenc.frequencies<dim = 8> ins(%0 : tensor<?x3x8xbf16>) positions(%q : tensor<?xi64>) dims = [0] outs(%x : tensor<?x3x8xbf16>)
  return %r : tensor<?x3x8xbf16>
}
