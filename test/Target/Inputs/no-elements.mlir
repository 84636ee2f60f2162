//===- no-elements.mlir - a function on empty tensors ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @none(%x: tensor<0x2x16xf32>) -> tensor<0x2x16xf32> {
  %p = arith.constant dense<> : tensor<0xi64>
  %r = posenc.rope half #posenc.frequencies<dim = 16> ins(%x : tensor<0x2x16xf32>) positions(%p : tensor<0xi64>) dims = [0] outs(%x : tensor<0x2x16xf32>)
  return %r : tensor<0x2x16xf32>
}
