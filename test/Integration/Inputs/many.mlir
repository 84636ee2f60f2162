//===- many.mlir - a function with many tensors ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

!t = tensor<2x8xf32>

// Eighteen tensors; each output is a copy of an input.
func.func @many(%a: !t, %b: !t, %c: !t, %d: !t, %e: !t, %f: !t, %g: !t, %h: !t, %i: !t)
    -> (!t, !t, !t, !t, !t, !t, !t, !t, !t) {
  return %a, %b, %c, %d, %e, %f, %g, %h, %i
    : !t, !t, !t, !t, !t, !t, !t, !t, !t
}
