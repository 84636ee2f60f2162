//===- scalar.mlir - scalar positions ===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @index(%x: tensor<?x2x4xf32>, %p: index) -> tensor<?x2x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x2x4xf32>
  %e = tensor.empty(%n) : tensor<?x2x4xf32>
  %r = posenc.rope half #posenc.frequencies<dim = 4> ins(%x : tensor<?x2x4xf32>) positions(%p : index) dims = [0] outs(%e : tensor<?x2x4xf32>)
  return %r : tensor<?x2x4xf32>
}

func.func @wide(%x: tensor<?x2x4xf32>, %p: i64) -> tensor<?x2x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x2x4xf32>
  %e = tensor.empty(%n) : tensor<?x2x4xf32>
  %r = posenc.rope half #posenc.frequencies<dim = 4> ins(%x : tensor<?x2x4xf32>) positions(%p : i64) dims = [0] outs(%e : tensor<?x2x4xf32>)
  return %r : tensor<?x2x4xf32>
}
