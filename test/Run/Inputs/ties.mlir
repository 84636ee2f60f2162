//===- ties.mlir - products halfway between two numbers -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// At position 0, rope only multiplies by its attention factor.
#by_1_5 = #posenc.frequencies<dim = 4, scaling = #posenc.explicit<values = [1.0, 1.0], attention_factor = 1.5>>

func.func @bf16(%x: tensor<?x?x4xbf16>, %p: tensor<?xi64>) -> tensor<?x?x4xbf16> {
  %r = posenc.rope half #by_1_5 ins(%x : tensor<?x?x4xbf16>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%x : tensor<?x?x4xbf16>)
  return %r : tensor<?x?x4xbf16>
}

func.func @bf16_interleaved(%x: tensor<?x?x4xbf16>, %p: tensor<?xi64>) -> tensor<?x?x4xbf16> {
  %r = posenc.rope interleaved #by_1_5 ins(%x : tensor<?x?x4xbf16>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%x : tensor<?x?x4xbf16>)
  return %r : tensor<?x?x4xbf16>
}

func.func @f16(%x: tensor<?x?x4xf16>, %p: tensor<?xi64>) -> tensor<?x?x4xf16> {
  %r = posenc.rope half #by_1_5 ins(%x : tensor<?x?x4xf16>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%x : tensor<?x?x4xf16>)
  return %r : tensor<?x?x4xf16>
}
