//===- signatures.mlir - arguments of every kind --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#rotation = #posenc.rotation<pairing = half, frequencies = <dim = 64, base = 10000.0>>

// i1 inputs and outputs, and scalars of every type, in mixed order.
func.func @select(%mask: tensor<?x?xi1> {posenc.name = "mask"}, %scale: f32 {posenc.name = "scale"},
                  %x: tensor<?x?xf32> {posenc.name = "x"}, %bias: f64 {posenc.name = "bias"},
                  %i: i64 {posenc.name = "i"}, %j: i32 {posenc.name = "j"}, %k: index {posenc.name = "k"},
                  %column: tensor<?xi1> {posenc.name = "column"}, %limit: f32 {posenc.name = "limit"})
    -> (tensor<?x?xf32> {posenc.name = "y"}, tensor<?x?xi1> {posenc.name = "above"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %x, %c0 : tensor<?x?xf32>
  %columns = tensor.dim %x, %c1 : tensor<?x?xf32>
  %y = tensor.empty(%rows, %columns) : tensor<?x?xf32>
  %b = tensor.empty(%rows, %columns) : tensor<?x?xi1>
  %r:2 = linalg.generic {indexing_maps = [#id, #id, #row, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%mask, %x, %column : tensor<?x?xi1>, tensor<?x?xf32>, tensor<?xi1>)
      outs(%y, %b : tensor<?x?xf32>, tensor<?x?xi1>) {
    ^bb0(%m: i1, %e: f32, %c: i1, %o0: f32, %o1: i1):
      %ki = arith.index_cast %k : index to i64
      %ji = arith.extsi %j : i32 to i64
      %ij = arith.addi %i, %ji : i64
      %ijk = arith.addi %ij, %ki : i64
      %n = arith.sitofp %ijk : i64 to f64
      %all = arith.addf %bias, %n : f64
      %add = arith.truncf %all : f64 to f32
      %p = arith.mulf %e, %scale : f32
      %q = arith.addf %p, %add : f32
      %s = arith.select %m, %q, %zero : f32
      %above = arith.cmpf ogt, %s, %limit : f32
      %both = arith.xori %above, %c : i1
      linalg.yield %s, %both : f32, i1
  } -> (tensor<?x?xf32>, tensor<?x?xi1>)
  return %r#0, %r#1 : tensor<?x?xf32>, tensor<?x?xi1>
}

// Only the shape of the destination is used.
func.func @attention(%q: tensor<?x?x8x64xf32> {posenc.name = "q"}, %k: tensor<?x?x2x64xf32> {posenc.name = "k"},
                     %v: tensor<?x?x2x64xf32> {posenc.name = "v"}, %m: tensor<1x1x?x?xi1> {posenc.name = "m"},
                     %o: tensor<?x?x8x64xf32> {posenc.name = "o"}) -> (tensor<?x?x8x64xf32> {posenc.name = "r"}) {
  %r = posenc.attention causal query_rotation = #rotation key_rotation = #rotation
    ins(%q, %k, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>)
    mask(%m : tensor<1x1x?x?xi1>) outs(%o : tensor<?x?x8x64xf32>)
  return %r : tensor<?x?x8x64xf32>
}

// No other tensor has the size of this destination.
func.func @fill(%value: f32 {posenc.name = "value"}, %o: tensor<?xf32> {posenc.name = "o"})
    -> (tensor<?xf32> {posenc.name = "r"}) {
  %r = linalg.fill ins(%value : f32) outs(%o : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
