//===- shift.mlir - algebra of rotations, in numbers ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The compiler folds two rotations into one, which the oracle evaluates one after
// the other.
// RUN: posenc-run %s --function=rerotate --input=5x2x16xf32=random --input=5xi64=iota --input=5xi64=1000 --reference | FileCheck %s
// RUN: posenc-run %s --function=shift --input=5xi64=iota --input=5xi64=-3 --reference | FileCheck %s
// RUN: posenc-run %s --function=shift_back --input=5xi64=iota --input=5xi64=-3 --reference | FileCheck %s
// CHECK: result #0: max error

// RUN: posenc-opt %s --canonicalize | FileCheck %s --check-prefix=FOLDED
// FOLDED-LABEL: func.func @rerotate(
// FOLDED-COUNT-1: posenc.rope
// FOLDED-NEXT: return
// FOLDED-LABEL: func.func @shift(
// FOLDED-NOT: posenc.rope
// FOLDED-LABEL: func.func @shift_back(
// FOLDED-NOT: posenc.rope

#y = #posenc.frequencies<dim = 16, scaling = #posenc.yarn<factor = 4, original_max_position = 4096>>
#f = #posenc.frequencies<dim = 16>

func.func @rerotate(%x: tensor<?x2x16xf32>, %p: tensor<?xi64>, %q: tensor<?xi64>) -> tensor<?x2x16xf32> {
  %0 = posenc.rope half inverse #y ins(%x : tensor<?x2x16xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x2x16xf32>)
  %1 = posenc.rope half #y ins(%0 : tensor<?x2x16xf32>) positions(%q : tensor<?xi64>) dims = [0] outs(%0 : tensor<?x2x16xf32>)
  return %1 : tensor<?x2x16xf32>
}

// The row of p + 3 is the rope of the row of p by -3.
func.func @shift(%p: tensor<?xi64>, %k: tensor<?xi64>) -> tensor<?x16xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %p, %c0 : tensor<?xi64>
  %t = tensor.empty(%n) : tensor<?x16xf32>
  %0 = posenc.sinusoidal sin_cos #f positions(%p : tensor<?xi64>) outs(%t : tensor<?x16xf32>)
  %1 = posenc.rope half #f ins(%0 : tensor<?x16xf32>) positions(%k : tensor<?xi64>) dims = [0] outs(%t : tensor<?x16xf32>)
  return %1 : tensor<?x16xf32>
}

func.func @shift_back(%p: tensor<?xi64>, %k: tensor<?xi64>) -> tensor<?x16xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %p, %c0 : tensor<?xi64>
  %t = tensor.empty(%n) : tensor<?x16xf32>
  %0 = posenc.sinusoidal cos_sin #f positions(%p : tensor<?xi64>) outs(%t : tensor<?x16xf32>)
  %1 = posenc.rope half inverse #f ins(%0 : tensor<?x16xf32>) positions(%k : tensor<?xi64>) dims = [0] outs(%t : tensor<?x16xf32>)
  return %1 : tensor<?x16xf32>
}
