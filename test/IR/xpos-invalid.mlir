//===- xpos-invalid.mlir - constraints of factors of positions ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{expected a finite base of at least 1 (xpos_c1)}}
#x = #posenc.xpos<base = 0.5, gamma = 0.4>

// -----

// expected-error @+1 {{expected a finite base of at least 1 (xpos_c1)}}
#x = #posenc.xpos<base = 0x7FF0000000000000, gamma = 0.4>

// -----

// expected-error @+1 {{expected a finite, positive gamma (xpos_c2)}}
#x = #posenc.xpos<base = 512.0, gamma = 0.0>

// -----

// expected-error @+1 {{missing parameter 'gamma'}}
#x = #posenc.xpos<base = 512.0>

// -----

func.func @axes(%x: tensor<?x8xf32>, %p: tensor<2x?xi64>) -> tensor<?x8xf32> {
  // expected-error @+1 {{'posenc.rope' op expected no axes with a scale (rope_c9)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8> axes #posenc.axes<contiguous, [2, 2]>
    scale #posenc.xpos<base = 512.0, gamma = 0.4>
    ins(%x : tensor<?x8xf32>) positions(%p : tensor<2x?xi64>) dims = [0] outs(%x : tensor<?x8xf32>)
  return %r : tensor<?x8xf32>
}

// -----

func.func @wide(%x: tensor<?x8xf64>, %p: tensor<?xi64>) -> tensor<?x8xf64> {
  // expected-error @+1 {{expected tensors of f32, f16 or bf16 with a scale, got 'tensor<?x8xf64>'; posenc-tabulate-ropes must run before bufferization (rope_c9)}}
  %r = posenc.rope half #posenc.frequencies<dim = 8> scale #posenc.xpos<base = 512.0, gamma = 0.4>
    ins(%x : tensor<?x8xf64>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x8xf64>)
  return %r : tensor<?x8xf64>
}

// -----

func.func @memref(%x: memref<?x8xf32>, %p: memref<?xi64>) {
  // expected-error @+1 {{expected tensors of f32, f16 or bf16 with a scale, got 'memref<?x8xf32>'; posenc-tabulate-ropes must run before bufferization (rope_c9)}}
  posenc.rope half #posenc.frequencies<dim = 8> scale #posenc.xpos<base = 512.0, gamma = 0.4>
    ins(%x : memref<?x8xf32>) positions(%p : memref<?xi64>) dims = [0] outs(%x : memref<?x8xf32>)
  return
}
