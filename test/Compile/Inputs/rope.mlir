//===- rope.mlir - a small kernel -----------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @rope(%x: tensor<?x4x64xf32> {posenc.name = "x"},
                %p: tensor<?xi64> {posenc.name = "positions"})
    -> (tensor<?x4x64xf32> {posenc.name = "y"}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4x64xf32>
  %e = tensor.empty(%n) : tensor<?x4x64xf32>
  %r = posenc.rope half #posenc.frequencies<dim = 64, base = 10000.0>
    ins(%x : tensor<?x4x64xf32>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%e : tensor<?x4x64xf32>)
  return %r : tensor<?x4x64xf32>
}
