//===- concat-parts.mlir - concatenations of many operands -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The operands of a concatenation of more than eight are written to slices of its result
// (posenc-decompose-moves).

// An operand that is a start of another one's memory is still read for later slices.
// RUN: posenc-run %s --function=chain --opt-level=0 --reference \
// RUN:   --input=1x2xf32=random:seed=1 | FileCheck %s
// CHECK: result #0: max error 0.00 ulp

// Operands without elements have no slice: one at the end, and several inside.
// RUN: posenc-run %s --function=empty_end --opt-level=0 --reference \
// RUN:   --input=2x4xf32=random:seed=1 --input=0x4xf32=0 | FileCheck %s
// RUN: posenc-run %s --function=empty_inside --opt-level=0 --reference \
// RUN:   --input=2x4xf32=random:seed=1 --input=0x4xf32=0 | FileCheck %s

func.func @chain(%x: tensor<1x2xf32>) -> tensor<1x18xf32> {
  %e = tensor.empty() : tensor<1x2xf32>
  %a = linalg.abs ins(%x : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %s = linalg.sub ins(%a, %x : tensor<1x2xf32>, tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %d = linalg.sub ins(%s, %a : tensor<1x2xf32>, tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %r = tensor.concat dim(1) %d, %s, %a, %d, %s, %a, %d, %s, %a : (tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x18xf32>
  return %r : tensor<1x18xf32>
}

func.func @empty_end(%x: tensor<2x4xf32>, %z: tensor<0x4xf32>) -> tensor<18x4xf32> {
  %r = tensor.concat dim(0) %x, %x, %x, %x, %x, %x, %x, %x, %x, %z : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<0x4xf32>) -> tensor<18x4xf32>
  return %r : tensor<18x4xf32>
}

func.func @empty_inside(%x: tensor<2x4xf32>, %z: tensor<0x4xf32>) -> tensor<18x4xf32> {
  %e = tensor.empty() : tensor<0x4xf32>
  %n = linalg.negf ins(%z : tensor<0x4xf32>) outs(%e : tensor<0x4xf32>) -> tensor<0x4xf32>
  %p = linalg.exp ins(%z : tensor<0x4xf32>) outs(%e : tensor<0x4xf32>) -> tensor<0x4xf32>
  %r = tensor.concat dim(0) %x, %n, %p, %x, %x, %x, %z, %x, %x, %x, %x, %x : (tensor<2x4xf32>, tensor<0x4xf32>, tensor<0x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<0x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<18x4xf32>
  return %r : tensor<18x4xf32>
}
