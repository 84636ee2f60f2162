//===- gpu-forms.mlir - variants of GPU kernels ---------------------------===//
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
func.func @sin_zeros_f32(%p: tensor<?xi64>, %o: tensor<?x65xf32>) -> tensor<?x65xf32> {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 64, scaling = #posenc.geometric<shift = 1>> zero_pad padding_position = 1 positions(%p : tensor<?xi64>) outs(%o : tensor<?x65xf32>)
  return %r : tensor<?x65xf32>
}
func.func @sin_padding_bf16(%p: tensor<?xi64>, %o: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 64, scaling = #posenc.geometric<shift = 0.5, scale = 1000>> padding_position = 0 positions(%p : tensor<?xi64>) outs(%o : tensor<?x64xbf16>)
  return %r : tensor<?x64xbf16>
}
func.func @sin_axes_f32(%p: tensor<2x?xi64>, %o: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 64> axes <axial, [16, 16]> positions(%p : tensor<2x?xi64>) outs(%o : tensor<?x64xf32>)
  return %r : tensor<?x64xf32>
}
func.func @sin_axes_bf16(%p: tensor<3x?xi64>, %o: tensor<?x61xbf16>) -> tensor<?x61xbf16> {
  %r = posenc.sinusoidal cos_sin #posenc.frequencies<dim = 60> axes <axial, [6, 11, 13]> zero_pad positions(%p : tensor<3x?xi64>) outs(%o : tensor<?x61xbf16>)
  return %r : tensor<?x61xbf16>
}
func.func @sin_axes_interleaved_f16(%p: tensor<2x?xi64>, %o: tensor<?x24xf16>) -> tensor<?x24xf16> {
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 24> axes <axial, [4, 8]> positions(%p : tensor<2x?xi64>) outs(%o : tensor<?x24xf16>)
  return %r : tensor<?x24xf16>
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

// Operations between those of posenc: allocations, copies, constants and loops.
func.func @between(%x: tensor<?x4x16xbf16>, %p: tensor<?xi64>) -> (tensor<?x4x16xbf16>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4x16xbf16>
  %e = tensor.empty(%n) : tensor<?x4x16xbf16>
  %0 = posenc.rope half #posenc.frequencies<dim = 16> ins(%x : tensor<?x4x16xbf16>) positions(%p : tensor<?xi64>) dims = [0] outs(%e : tensor<?x4x16xbf16>)
  %1 = posenc.rope interleaved #posenc.frequencies<dim = 8> ins(%0 : tensor<?x4x16xbf16>) positions(%p : tensor<?xi64>) dims = [0] outs(%e : tensor<?x4x16xbf16>)
  return %1 : tensor<?x4x16xbf16>
}
func.func @added(%x: tensor<?x16xf32>, %y: tensor<?x16xbf16>, %p: tensor<?xi64>) -> (tensor<?x16xf32>, tensor<?x16xbf16>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %f = tensor.empty(%n) : tensor<?x16xbf16>
  %s = posenc.sinusoidal interleaved #posenc.frequencies<dim = 16> positions(%p : tensor<?xi64>) outs(%e : tensor<?x16xf32>)
  %t = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 16> positions(%p : tensor<?xi64>) outs(%f : tensor<?x16xbf16>)
  %0 = arith.addf %x, %s : tensor<?x16xf32>
  %c = arith.constant dense<3.0> : tensor<16xbf16>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%y, %t, %c : tensor<?x16xbf16>, tensor<?x16xbf16>, tensor<16xbf16>) outs(%f : tensor<?x16xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %d: bf16, %o: bf16):
    %2 = arith.mulf %a, %d : bf16
    %3 = arith.addf %2, %b : bf16
    linalg.yield %3 : bf16
  } -> tensor<?x16xbf16>
  return %0, %1 : tensor<?x16xf32>, tensor<?x16xbf16>
}
func.func @same_twice(%x: tensor<?x3x8xf32>, %p: tensor<?xi64>) -> (tensor<?x3x8xf32>, tensor<?x3x8xf32>) {
  %0 = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<?x3x8xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x3x8xf32>)
  return %0, %0 : tensor<?x3x8xf32>, tensor<?x3x8xf32>
}
func.func @of_some_heads(%x: tensor<?x4x16xf16>, %p: tensor<?xi64>) -> (tensor<?x4x16xf16>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4x16xf16>
  %0 = tensor.extract_slice %x[0, 1, 0] [%n, 2, 16] [1, 1, 1] : tensor<?x4x16xf16> to tensor<?x2x16xf16>
  %1 = posenc.rope half #posenc.frequencies<dim = 16> ins(%0 : tensor<?x2x16xf16>) positions(%p : tensor<?xi64>) dims = [0] outs(%0 : tensor<?x2x16xf16>)
  %2 = tensor.insert_slice %1 into %x[0, 1, 0] [%n, 2, 16] [1, 1, 1] : tensor<?x2x16xf16> into tensor<?x4x16xf16>
  return %2 : tensor<?x4x16xf16>
}
func.func @at_constants(%x: tensor<5x2x16xf32>) -> (tensor<5x2x16xf32>) {
  %p = arith.constant dense<[5, -6, 700, 8, 2147483647]> : tensor<5xi64>
  %r = posenc.rope half #posenc.frequencies<dim = 16> ins(%x : tensor<5x2x16xf32>) positions(%p : tensor<5xi64>) dims = [0] outs(%x : tensor<5x2x16xf32>)
  return %r : tensor<5x2x16xf32>
}
func.func @squared(%x: tensor<?x2x16xf32>, %q: tensor<?xindex>) -> (tensor<?x2x16xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x2x16xf32>
  %e = tensor.empty(%n) : tensor<?xindex>
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%q : tensor<?xindex>) outs(%e : tensor<?xindex>) {
  ^bb0(%a: index, %o: index):
    %k = arith.muli %a, %a : index
    linalg.yield %k : index
  } -> tensor<?xindex>
  %r = posenc.rope half #posenc.frequencies<dim = 16> ins(%x : tensor<?x2x16xf32>) positions(%p : tensor<?xindex>) dims = [0] outs(%x : tensor<?x2x16xf32>)
  return %r : tensor<?x2x16xf32>
}
func.func @by_indices(%x: tensor<?x2x16xf32>, %q: tensor<?xi64>, %first: i64) -> (tensor<?x2x16xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x2x16xf32>
  %far = arith.constant 123456789012 : index
  %e = tensor.empty(%n) : tensor<?xi64>
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%q : tensor<?xi64>) outs(%e : tensor<?xi64>) {
  ^bb0(%a: i64, %o: i64):
    %b = arith.addi %a, %first : i64
    %i = arith.index_cast %b : i64 to index
    %j = linalg.index 0 : index
    %k = arith.muli %i, %far : index
    %l = arith.addi %k, %j : index
    %m = arith.index_cast %l : index to i64
    linalg.yield %m : i64
  } -> tensor<?xi64>
  %r = posenc.rope half #posenc.frequencies<dim = 16> ins(%x : tensor<?x2x16xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x2x16xf32>)
  return %r : tensor<?x2x16xf32>
}
func.func @numbered(%x: tensor<?x2x16xf64>, %first: i64) -> (tensor<2x?x16xf64>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x2x16xf64>
  %e = tensor.empty(%n) : tensor<?xi64>
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<?xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i64
    %k = arith.addi %j, %first : i64
    linalg.yield %k : i64
  } -> tensor<?xi64>
  %r = posenc.rope half #posenc.frequencies<dim = 16> ins(%x : tensor<?x2x16xf64>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x2x16xf64>)
  %f = tensor.empty(%n) : tensor<2x?x16xf64>
  %t = linalg.transpose ins(%r : tensor<?x2x16xf64>) outs(%f : tensor<2x?x16xf64>) permutation = [1, 0, 2]
  return %t : tensor<2x?x16xf64>
}
func.func @indices(%x: tensor<?x2x16xf32>, %p: tensor<?xindex>) -> (tensor<?x2x16xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 16> ins(%x : tensor<?x2x16xf32>) positions(%p : tensor<?xindex>) dims = [0] outs(%x : tensor<?x2x16xf32>)
  return %r : tensor<?x2x16xf32>
}

func.func @longrope_at_run_time(%n: i64, %x: tensor<?x4x64xbf16>, %p: tensor<?xi64>) -> tensor<?x4x64xbf16> {
  %high, %low = posenc.turns #posenc.frequencies<dim = 8, scaling = #posenc.longrope<short_factors = [1, 1, 1, 1], long_factors = [1, 1.1, 4, 16], original_max_position = 512>>
    length(%n : i64)
  %r = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<?x4x64xbf16>) positions(%p : tensor<?xi64>) turns(%high, %low : tensor<4xi64>, tensor<4xi64>) dims = [0]
    outs(%x : tensor<?x4x64xbf16>)
  return %r : tensor<?x4x64xbf16>
}

func.func @coordinates(%x: tensor<?x2x16xbf16>, %p: tensor<2x?xf32>) -> tensor<?x2x16xbf16> {
  %r = posenc.rope interleaved #posenc.frequencies<dim = 16, base = 100.0, scaling = #posenc.geometric<shift = 0, scale = 100.5>> axes <axial, [4, 4]> ins(%x : tensor<?x2x16xbf16>)
    positions(%p : tensor<2x?xf32>) dims = [0] outs(%x : tensor<?x2x16xbf16>)
  return %r : tensor<?x2x16xbf16>
}
func.func @time_steps(%p: tensor<?xf64>, %t: tensor<?x64xf64>) -> tensor<?x64xf64> {
  %r = posenc.sinusoidal cos_sin #posenc.frequencies<dim = 64> positions(%p : tensor<?xf64>) outs(%t : tensor<?x64xf64>)
  return %r : tensor<?x64xf64>
}
func.func @rounded_angles(%p: tensor<?xi64>, %t: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %c, %s = posenc.sincos #posenc.frequencies<dim = 64, precision = hf_f32> positions(%p : tensor<?xi64>) outs(%t, %t : tensor<?x32xf32>, tensor<?x32xf32>)
  return %c, %s : tensor<?x32xf32>, tensor<?x32xf32>
}

// Pads, concatenations and packs are copies.
func.func @pad(%x: tensor<?x70xf32>) -> tensor<?x96xf32> {
  %zero = arith.constant 0.0 : f32
  %r = tensor.pad %x low[0, 3] high[0, 23] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<?x70xf32> to tensor<?x96xf32>
  return %r : tensor<?x96xf32>
}
func.func @concat(%x: tensor<?x7x4xf16>, %y: tensor<?x8x4xf16>) -> tensor<?x15x4xf16> {
  %r = tensor.concat dim(1) %x, %y : (tensor<?x7x4xf16>, tensor<?x8x4xf16>) -> tensor<?x15x4xf16>
  return %r : tensor<?x15x4xf16>
}
func.func @pack(%x: tensor<70x100xbf16>) -> tensor<4x70x32xbf16> {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<4x70x32xbf16>
  %r = linalg.pack %x padding_value(%zero : bf16) outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [32] into %e : tensor<70x100xbf16> -> tensor<4x70x32xbf16>
  return %r : tensor<4x70x32xbf16>
}
func.func @unpack(%x: tensor<4x70x32xbf16>) -> tensor<70x100xbf16> {
  %e = tensor.empty() : tensor<70x100xbf16>
  %r = linalg.unpack %x outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [32] into %e : tensor<4x70x32xbf16> -> tensor<70x100xbf16>
  return %r : tensor<70x100xbf16>
}
