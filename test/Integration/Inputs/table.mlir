//===- table.mlir - a function with scalars -------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @table(%first: i32 {posenc.name = "first"},
                 %n: index {posenc.name = "n"})
    -> (tensor<?x16xf32> {posenc.name = "rows"}) {
  %empty = tensor.empty(%n) : tensor<?x16xf32>
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 16>
    positions(%first : i32) outs(%empty : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}
