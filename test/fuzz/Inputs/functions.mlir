//===- functions.mlir - modules of unusual form ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#f = #posenc.frequencies<dim = 8, base = 1.000000e+04>
func.func @chain(%x: tensor<?x8xf32>, %p: tensor<?xi64>, %q: tensor<?xi64>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %a = posenc.rope half #f ins(%x : tensor<?x8xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x8xf32>)
  %b = posenc.rope half #f ins(%a : tensor<?x8xf32>) positions(%q : tensor<?xi64>) dims = [0] outs(%a : tensor<?x8xf32>)
  %c = posenc.rope half inverse #f ins(%b : tensor<?x8xf32>) positions(%q : tensor<?xi64>) dims = [0] outs(%b : tensor<?x8xf32>)
  return %b, %c, %x : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}
// -----
#f = #posenc.frequencies<dim = 8>
func.func @shared(%x: tensor<?x2x8xf32>, %y: tensor<?x4x8xf32>, %p: tensor<?xi64>) -> (tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4x8xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %p, %c0 : tensor<?xi64>
  %t = tensor.empty(%n) : tensor<?x4xf32>
  %cs:2 = posenc.sincos #f positions(%p : tensor<?xi64>) outs(%t, %t : tensor<?x4xf32>, tensor<?x4xf32>)
  %a = posenc.rotate half ins(%x : tensor<?x2x8xf32>) tables(%cs#0, %cs#1 : tensor<?x4xf32>) dims = [0] outs(%x : tensor<?x2x8xf32>)
  %b = posenc.rotate half ins(%y : tensor<?x4x8xf32>) tables(%cs#0, %cs#1 : tensor<?x4xf32>) dims = [0] outs(%y : tensor<?x4x8xf32>)
  return %a, %b, %b : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4x8xf32>
}
// -----
func.func private @helper(%x: tensor<?x8xf32>, %p: tensor<?xi64>) -> tensor<?x8xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<?x8xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x8xf32>)
  return %r : tensor<?x8xf32>
}
func.func @caller(%x: tensor<?x8xf32>, %p: tensor<?xi64>) -> tensor<?x8xf32> {
  %r = call @helper(%x, %p) : (tensor<?x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}
// -----
func.func private @outside(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @caller(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %r = call @outside(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}
// -----
func.func @branches(%x: tensor<?x8xf32>, %p: tensor<?xi64>, %c: i1) -> tensor<?x8xf32> {
  cf.cond_br %c, ^bb1, ^bb2(%x : tensor<?x8xf32>)
^bb1:
  %r = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<?x8xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x8xf32>)
  cf.br ^bb2(%r : tensor<?x8xf32>)
^bb2(%y: tensor<?x8xf32>):
  return %y : tensor<?x8xf32>
}
// -----
func.func @loop(%x: tensor<4x8xf32>, %p: tensor<4xi64>, %n: index) -> tensor<4x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<4x8xf32> {
    %z = posenc.rope half #posenc.frequencies<dim = 8> ins(%y : tensor<4x8xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%y : tensor<4x8xf32>)
    scf.yield %z : tensor<4x8xf32>
  }
  return %r : tensor<4x8xf32>
}
// -----
func.func @nothing() {
  return
}
func.func @scalar(%n: i64) -> i64 {
  return %n : i64
}
// -----
func.func @identity(%x: tensor<?x8xf32>, %y: tensor<f32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<f32>) {
  return %x, %x, %y : tensor<?x8xf32>, tensor<?x8xf32>, tensor<f32>
}
// -----
func.func @unranked(%x: tensor<*xf32>) -> tensor<*xf32> {
  return %x : tensor<*xf32>
}
// -----
module @outer {
  module @inner {
    func.func @rope(%x: tensor<?x8xf32>, %p: tensor<?xi64>) -> tensor<?x8xf32> {
      %r = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<?x8xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x8xf32>)
      return %r : tensor<?x8xf32>
    }
  }
  module {
  }
  func.func @keep(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
    return %x : tensor<?x8xf32>
  }
}
// -----
func.func @cast(%x: tensor<?x8xf32>, %p: tensor<4xi64>) -> tensor<4x8xf32> {
  %s = tensor.cast %x : tensor<?x8xf32> to tensor<4x8xf32>
  %r = posenc.rope half #posenc.frequencies<dim = 8> ins(%s : tensor<4x8xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%s : tensor<4x8xf32>)
  return %r : tensor<4x8xf32>
}
// -----
func.func @zero(%x: tensor<?x8xf32>, %n: index) -> tensor<?x8xf32> {
  %p = arith.constant dense<0> : tensor<4xi64>
  %q = tensor.cast %p : tensor<4xi64> to tensor<?xi64>
  %r = posenc.rope half #posenc.frequencies<dim = 8> ins(%x : tensor<?x8xf32>) positions(%q : tensor<?xi64>) dims = [0] outs(%x : tensor<?x8xf32>)
  %s = tensor.extract_slice %r[0, 0] [%n, 8] [1, 1] : tensor<?x8xf32> to tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}
// -----
func.func @linalg(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %a : f32
    linalg.yield %m : f32
  } -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}
// -----
func.func @no_return(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  llvm.unreachable
}
// -----
llvm.func @assembly(%a: !llvm.ptr, %b: !llvm.ptr, %o: i64, %s: i64, %t: i64) attributes {posenc.abi = #posenc.abi<inputs = [], outputs = [#posenc.arg<"o", tensor<4xf32>, []>], sizes = [], in_place = [-1]>} {
  llvm.inline_asm has_side_effects "nop", "r" %o : (i64) -> ()
  llvm.return
}
// -----
%p = arith.constant dense<0> : tensor<4xi64>
%o = tensor.empty() : tensor<4x8xf32>
%a = posenc.rope half #posenc.frequencies<dim = 8> ins(%b : tensor<4x8xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%o : tensor<4x8xf32>)
%b = posenc.rope half inverse #posenc.frequencies<dim = 8> ins(%a : tensor<4x8xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%o : tensor<4x8xf32>)
%c = tensor.cast %a : tensor<4x8xf32> to tensor<?x8xf32>
%d = tensor.cast %b : tensor<4x8xf32> to tensor<?x8xf32>
