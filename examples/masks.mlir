//===- masks.mlir - masks from which bounds on keys follow ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels skip tiles of keys that these masks hide, and do not evaluate the
// masks in tiles that they hide no pair of.
//
//===----------------------------------------------------------------------===//

!q = tensor<1x?x32x128xf32>
!k = tensor<1x?x8x128xf32>

// No mask, to compare with.
func.func @full(%q: !q, %k: !k, %v: !k, %o: !q) -> !q {
  %r = posenc.attention ins(%q, %k, %v : !q, !k, !k) outs(%o : !q)
  return %r : !q
}

// Chunks of 128 tokens that do not see each other.
func.func @chunks(%q: !q, %k: !k, %v: !k, %o: !q) -> !q {
  %r = posenc.attention ins(%q, %k, %v : !q, !k, !k) outs(%o : !q)
    where(%b, %h, %i, %j) {
      %size = arith.constant 128 : index
      %m = arith.floordivsi %i, %size : index
      %n = arith.floordivsi %j, %size : index
      %y = arith.cmpi eq, %m, %n : index
      posenc.yield %y : i1
    }
  return %r : !q
}

// Packed documents; queries and keys are the same tokens.
func.func @documents(%q: !q, %k: !k, %v: !k, %document: tensor<?xi32>, %o: !q) -> !q {
  %r = posenc.attention causal ins(%q, %k, %v : !q, !k, !k) outs(%o : !q)
    where(%b, %h, %i, %j) {
      %m = tensor.extract %document[%i] : tensor<?xi32>
      %n = tensor.extract %document[%j] : tensor<?xi32>
      %y = arith.cmpi eq, %m, %n : i32
      posenc.yield %y : i1
    }
  return %r : !q
}

// A prefix that all tokens see, and causal attention to the rest.
func.func @prefix(%q: !q, %k: !k, %v: !k, %length: index, %o: !q) -> !q {
  %r = posenc.attention ins(%q, %k, %v : !q, !k, !k) outs(%o : !q)
    where(%b, %h, %i, %j) {
      %m = arith.cmpi slt, %j, %length : index
      %n = arith.cmpi sle, %j, %i : index
      %y = arith.ori %m, %n : i1
      posenc.yield %y : i1
    }
  return %r : !q
}

// A sliding window, and four tokens that are always seen.
func.func @sinks(%q: !q, %k: !k, %v: !k, %o: !q) -> !q {
  %r = posenc.attention causal ins(%q, %k, %v : !q, !k, !k) outs(%o : !q)
    where(%b, %h, %i, %j) {
      %window = arith.constant 256 : index
      %four = arith.constant 4 : index
      %d = arith.subi %i, %j : index
      %m = arith.cmpi slt, %d, %window : index
      %n = arith.cmpi slt, %j, %four : index
      %y = arith.ori %m, %n : i1
      posenc.yield %y : i1
    }
  return %r : !q
}

// Causal by the positions of queries and keys, which may be in any order: shards of
// a long sequence in zig-zag or stripes.
func.func @positions(%q: !q, %k: !k, %v: !k, %of_query: tensor<?xi64>, %of_key: tensor<?xi64>, %o: !q) -> !q {
  %r = posenc.attention ins(%q, %k, %v : !q, !k, !k) outs(%o : !q)
    where(%b, %h, %i, %j) {
      %m = tensor.extract %of_query[%i] : tensor<?xi64>
      %n = tensor.extract %of_key[%j] : tensor<?xi64>
      %y = arith.cmpi sle, %n, %m : i64
      posenc.yield %y : i1
    }
  return %r : !q
}
