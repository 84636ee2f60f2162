//===- rope.mlir - functions that the C programs call ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#frequencies = #posenc.frequencies<dim = 64, base = 10000.0>

func.func @rope(%q: tensor<?x?x4x64xf32> {posenc.name = "q"},
                %k: tensor<?x?x4x64xf32> {posenc.name = "k"},
                %positions: tensor<?x?xi64> {posenc.name = "positions"})
    -> (tensor<?x?x4x64xf32> {posenc.name = "q_out"},
        tensor<?x?x4x64xf32> {posenc.name = "k_out"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %batch = tensor.dim %q, %c0 : tensor<?x?x4x64xf32>
  %sequence = tensor.dim %q, %c1 : tensor<?x?x4x64xf32>
  %q_empty = tensor.empty(%batch, %sequence) : tensor<?x?x4x64xf32>
  %k_empty = tensor.empty(%batch, %sequence) : tensor<?x?x4x64xf32>
  %r:2 = posenc.rope half #frequencies
    ins(%q, %k : tensor<?x?x4x64xf32>, tensor<?x?x4x64xf32>)
    positions(%positions : tensor<?x?xi64>) dims = [0, 1]
    outs(%q_empty, %k_empty : tensor<?x?x4x64xf32>, tensor<?x?x4x64xf32>)
  return %r#0, %r#1 : tensor<?x?x4x64xf32>, tensor<?x?x4x64xf32>
}

func.func @interleaved(%x: tensor<?x64xf64> {posenc.name = "x"},
                       %positions: tensor<?xi32> {posenc.name = "positions"})
    -> (tensor<?x64xf64> {posenc.name = "x_out"}) {
  %c0 = arith.constant 0 : index
  %tokens = tensor.dim %x, %c0 : tensor<?x64xf64>
  %empty = tensor.empty(%tokens) : tensor<?x64xf64>
  %r = posenc.rope interleaved #frequencies
    ins(%x : tensor<?x64xf64>) positions(%positions : tensor<?xi32>) dims = [0]
    outs(%empty : tensor<?x64xf64>)
  return %r : tensor<?x64xf64>
}

func.func @sincos(%positions: tensor<?xi64> {posenc.name = "positions"})
    -> (tensor<?x32xf32> {posenc.name = "cos"},
        tensor<?x32xf32> {posenc.name = "sin"}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %positions, %c0 : tensor<?xi64>
  %cos_empty = tensor.empty(%n) : tensor<?x32xf32>
  %sin_empty = tensor.empty(%n) : tensor<?x32xf32>
  %t:2 = posenc.sincos #frequencies positions(%positions : tensor<?xi64>)
    outs(%cos_empty, %sin_empty : tensor<?x32xf32>, tensor<?x32xf32>)
  return %t#0, %t#1 : tensor<?x32xf32>, tensor<?x32xf32>
}
