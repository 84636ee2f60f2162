//===- reference-table.mlir - table elements near zero --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Elements of a bf16 table are rounded from a sum with an absolute error. Near zero
// they may not be the nearest bf16.
// RUN: posenc-run %s --function=table --input=256xi64=random:seed=1000000 \
// RUN:   --reference | FileCheck %s
// CHECK: result #0: max error 0.52 ulp
func.func @table(%p: tensor<?xi64>) -> tensor<?x256xbf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %p, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x256xbf16>
  %r = posenc.sinusoidal interleaved <dim = 256, base = 10000.0>
    positions(%p : tensor<?xi64>) outs(%e : tensor<?x256xbf16>)
  return %r : tensor<?x256xbf16>
}
