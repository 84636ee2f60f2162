// ===- cases.mlir - functions of the GPU benchmark -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ===----------------------------------------------------------------------===//

// ../cases.txt lists the sizes.

func.func @half_bf16(%q: tensor<?x?x32x128xbf16>, %k: tensor<?x?x8x128xbf16>, %p: tensor<?x?xi64>) -> (tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 128, base = 5.0e+05>
    ins(%q, %k : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>)
    positions(%p : tensor<?x?xi64>) dims = [0, 1]
    outs(%q, %k : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>)
  return %r#0, %r#1 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>
}

func.func @half_f16(%q: tensor<?x?x32x128xf16>, %k: tensor<?x?x8x128xf16>, %p: tensor<?x?xi64>) -> (tensor<?x?x32x128xf16>, tensor<?x?x8x128xf16>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 128, base = 5.0e+05>
    ins(%q, %k : tensor<?x?x32x128xf16>, tensor<?x?x8x128xf16>)
    positions(%p : tensor<?x?xi64>) dims = [0, 1]
    outs(%q, %k : tensor<?x?x32x128xf16>, tensor<?x?x8x128xf16>)
  return %r#0, %r#1 : tensor<?x?x32x128xf16>, tensor<?x?x8x128xf16>
}

func.func @half_f32(%q: tensor<?x?x32x128xf32>, %k: tensor<?x?x8x128xf32>, %p: tensor<?x?xi64>) -> (tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 128, base = 5.0e+05>
    ins(%q, %k : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>)
    positions(%p : tensor<?x?xi64>) dims = [0, 1]
    outs(%q, %k : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>)
  return %r#0, %r#1 : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>
}

func.func @interleaved_bf16(%q: tensor<?x?x32x128xbf16>, %k: tensor<?x?x8x128xbf16>, %p: tensor<?x?xi64>) -> (tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>) {
  %r:2 = posenc.rope interleaved #posenc.frequencies<dim = 128, base = 5.0e+05>
    ins(%q, %k : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>)
    positions(%p : tensor<?x?xi64>) dims = [0, 1]
    outs(%q, %k : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>)
  return %r#0, %r#1 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>
}

func.func @interleaved_f16(%q: tensor<?x?x32x128xf16>, %k: tensor<?x?x8x128xf16>, %p: tensor<?x?xi64>) -> (tensor<?x?x32x128xf16>, tensor<?x?x8x128xf16>) {
  %r:2 = posenc.rope interleaved #posenc.frequencies<dim = 128, base = 5.0e+05>
    ins(%q, %k : tensor<?x?x32x128xf16>, tensor<?x?x8x128xf16>)
    positions(%p : tensor<?x?xi64>) dims = [0, 1]
    outs(%q, %k : tensor<?x?x32x128xf16>, tensor<?x?x8x128xf16>)
  return %r#0, %r#1 : tensor<?x?x32x128xf16>, tensor<?x?x8x128xf16>
}

func.func @interleaved_f32(%q: tensor<?x?x32x128xf32>, %k: tensor<?x?x8x128xf32>, %p: tensor<?x?xi64>) -> (tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>) {
  %r:2 = posenc.rope interleaved #posenc.frequencies<dim = 128, base = 5.0e+05>
    ins(%q, %k : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>)
    positions(%p : tensor<?x?xi64>) dims = [0, 1]
    outs(%q, %k : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>)
  return %r#0, %r#1 : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>
}

func.func @packed_bf16(%q: tensor<?x32x128xbf16>, %k: tensor<?x8x128xbf16>, %p: tensor<?xi64>) -> (tensor<?x32x128xbf16>, tensor<?x8x128xbf16>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 128, base = 5.0e+05>
    ins(%q, %k : tensor<?x32x128xbf16>, tensor<?x8x128xbf16>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%q, %k : tensor<?x32x128xbf16>, tensor<?x8x128xbf16>)
  return %r#0, %r#1 : tensor<?x32x128xbf16>, tensor<?x8x128xbf16>
}

func.func @packed_f32(%q: tensor<?x32x128xf32>, %k: tensor<?x8x128xf32>, %p: tensor<?xi64>) -> (tensor<?x32x128xf32>, tensor<?x8x128xf32>) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 128, base = 5.0e+05>
    ins(%q, %k : tensor<?x32x128xf32>, tensor<?x8x128xf32>)
    positions(%p : tensor<?xi64>) dims = [0]
    outs(%q, %k : tensor<?x32x128xf32>, tensor<?x8x128xf32>)
  return %r#0, %r#1 : tensor<?x32x128xf32>, tensor<?x8x128xf32>
}

func.func @few_bf16(%q: tensor<?x?x8x64xbf16>, %p: tensor<?x?xi64>) -> (tensor<?x?x8x64xbf16>) {
  %r = posenc.rope half #posenc.frequencies<dim = 64, base = 5.0e+05>
    ins(%q : tensor<?x?x8x64xbf16>)
    positions(%p : tensor<?x?xi64>) dims = [0, 1]
    outs(%q : tensor<?x?x8x64xbf16>)
  return %r : tensor<?x?x8x64xbf16>
}

func.func @few_f16(%q: tensor<?x?x8x64xf16>, %p: tensor<?x?xi64>) -> (tensor<?x?x8x64xf16>) {
  %r = posenc.rope half #posenc.frequencies<dim = 64, base = 5.0e+05>
    ins(%q : tensor<?x?x8x64xf16>)
    positions(%p : tensor<?x?xi64>) dims = [0, 1]
    outs(%q : tensor<?x?x8x64xf16>)
  return %r : tensor<?x?x8x64xf16>
}

func.func @few_f32(%q: tensor<?x?x8x64xf32>, %p: tensor<?x?xi64>) -> (tensor<?x?x8x64xf32>) {
  %r = posenc.rope half #posenc.frequencies<dim = 64, base = 5.0e+05>
    ins(%q : tensor<?x?x8x64xf32>)
    positions(%p : tensor<?x?xi64>) dims = [0, 1]
    outs(%q : tensor<?x?x8x64xf32>)
  return %r : tensor<?x?x8x64xf32>
}

func.func @sinusoidal_f32(%p: tensor<?xi64>) -> tensor<?x4096xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %p, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x4096xf32>
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 4096, base = 5.0e+05>
    positions(%p : tensor<?xi64>) outs(%e : tensor<?x4096xf32>)
  return %r : tensor<?x4096xf32>
}

func.func @sinusoidal_bf16(%p: tensor<?xi64>) -> tensor<?x4096xbf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %p, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x4096xbf16>
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 4096, base = 5.0e+05>
    positions(%p : tensor<?xi64>) outs(%e : tensor<?x4096xbf16>)
  return %r : tensor<?x4096xbf16>
}

func.func @sinusoidal_f16(%p: tensor<?xi64>) -> tensor<?x4096xf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %p, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x4096xf16>
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 4096, base = 5.0e+05>
    positions(%p : tensor<?xi64>) outs(%e : tensor<?x4096xf16>)
  return %r : tensor<?x4096xf16>
}
