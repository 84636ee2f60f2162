//===- skips.mlir - queries that see few tiles of keys --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Queries see the keys of their document, whose numbers have runs of 384.

!t = tensor<1x?x1x64xbf16>

func.func @documents(%q: !t, %k: !t, %v: !t, %x: tensor<?xi64>) -> !t {
  %r = posenc.attention ins(%q, %k, %v : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %size = arith.constant 384 : i64
      %m = tensor.extract %x[%i] : tensor<?xi64>
      %n = tensor.extract %x[%j] : tensor<?xi64>
      %c = arith.divsi %m, %size : i64
      %d = arith.divsi %n, %size : i64
      %same = arith.cmpi eq, %c, %d : i64
      posenc.yield %same : i1
    }
  return %r : !t
}
