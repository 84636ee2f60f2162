//===- fold-masks.mlir - masks by relative position -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-fold-masks | FileCheck %s
// RUN: posenc-opt %s --posenc-fold-masks --remarks-filter=posenc -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

!t = tensor<1x?x2x8xf32>

// A mask that is causal leaves no region.
// REMARK: remark: [Passed] posenc-fold-masks | {{.*}}Function=causal | Remark="1 of 1 conditions of 'where' folded into causal and windows"
// CHECK-LABEL: func.func @causal(
// CHECK: posenc.attention causal ins
// CHECK-NOT: where
// CHECK: return
func.func @causal(%q: !t) -> !t {
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %y = arith.cmpi sle, %j, %i : index
      posenc.yield %y : i1
    }
  return %r : !t
}

// The same with operands exchanged, and as a difference.
// CHECK-LABEL: func.func @causal_reversed(
// CHECK: posenc.attention causal ins
// CHECK-NOT: where
// CHECK: return
func.func @causal_reversed(%q: !t) -> !t {
  %m1 = arith.constant -1 : index
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %x = arith.cmpi sge, %i, %j : index
      %d = arith.subi %i, %j : index
      %z = arith.cmpi sgt, %d, %m1 : index
      %y = arith.andi %x, %z : i1
      posenc.yield %y : i1
    }
  return %r : !t
}

// A sliding window in both directions: i - 5 <= j, j < i + 4.
// CHECK-LABEL: func.func @window(
// CHECK: posenc.attention window_left = 5 window_right = 3 ins
// CHECK-NOT: where
// CHECK: return
func.func @window(%q: !t) -> !t {
  %c5 = arith.constant 5 : index
  %c4 = arith.constant 4 : index
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %d = arith.subi %i, %c5 : index
      %a = arith.cmpi sge, %j, %d : index
      %e = arith.addi %i, %c4 : index
      %z = arith.cmpi slt, %j, %e : index
      %y = arith.andi %a, %z : i1
      posenc.yield %y : i1
    }
  return %r : !t
}

// |i - j| < 6, and as an unsigned comparison 0 <= i - j < 8.
// CHECK-LABEL: func.func @absolute(
// CHECK: posenc.attention causal window_left = 5 ins
// CHECK-NOT: where
// CHECK: return
func.func @absolute(%q: !t) -> !t {
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %d = arith.subi %j, %i : index
      %a = math.absi %d : index
      %x = arith.cmpi slt, %a, %c6 : index
      %e = arith.subi %i, %j : index
      %z = arith.cmpi ult, %e, %c8 : index
      %y = arith.andi %x, %z : i1
      posenc.yield %y : i1
    }
  return %r : !t
}

// A query that sees its own key only.
// CHECK-LABEL: func.func @diagonal(
// CHECK: posenc.attention causal window_left = 0 ins
// CHECK-NOT: where
// CHECK: return
func.func @diagonal(%q: !t) -> !t {
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %y = arith.cmpi eq, %i, %j : index
      posenc.yield %y : i1
    }
  return %r : !t
}

// Windows that are present are narrowed, not widened.
// CHECK-LABEL: func.func @narrower(
// CHECK: posenc.attention window_left = 5 window_right = 3 ins
// CHECK-NOT: where
// CHECK: return
func.func @narrower(%q: !t) -> !t {
  %c5 = arith.constant 5 : index
  %false = arith.constant false
  %r = posenc.attention window_left = 9 window_right = 3 ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %d = arith.subi %i, %j : index
      %x = arith.cmpi sle, %d, %c5 : index
      %e = arith.subi %j, %i : index
      %z = arith.cmpi sle, %e, %c5 : index
      %y = arith.select %x, %z, %false : i1
      posenc.yield %y : i1
    }
  return %r : !t
}

// Casts to i64 are exact.
// CHECK-LABEL: func.func @i64(
// CHECK: posenc.attention causal ins
// CHECK-NOT: where
// CHECK: return
func.func @i64(%q: !t) -> !t {
  %c0 = arith.constant 0 : i64
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %p = arith.index_cast %i : index to i64
      %q1 = arith.index_cast %j : index to i64
      %d = arith.subi %q1, %p : i64
      %y = arith.cmpi sle, %d, %c0 : i64
      posenc.yield %y : i1
    }
  return %r : !t
}

// Positions and their differences fit in i32.
// CHECK-LABEL: func.func @i32(
// CHECK: posenc.attention window_left = 7 ins
// CHECK-NOT: where
// CHECK: return
func.func @i32(%q: !t) -> !t {
  %c7 = arith.constant 7 : i32
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %p = arith.index_cast %i : index to i64
      %p32 = arith.trunci %p : i64 to i32
      %q32 = arith.index_cast %j : index to i32
      %d = arith.subi %p32, %q32 : i32
      %y = arith.cmpi sle, %d, %c7 : i32
      posenc.yield %y : i1
    }
  return %r : !t
}

// Terms of i and j are added up: 3i + 1 - (2i + j) <= 4.
// CHECK-LABEL: func.func @multiples(
// CHECK: posenc.attention window_left = 3 ins
// CHECK-NOT: where
// CHECK: return
func.func @multiples(%q: !t) -> !t {
  %c3 = arith.constant 3 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %t = arith.muli %i, %c3 : index
      %u = arith.addi %t, %c1 : index
      %v = arith.addi %i, %i : index
      %w = arith.addi %v, %j : index
      %d = arith.subi %u, %w : index
      %y = arith.cmpi sle, %d, %c4 : index
      posenc.yield %y : i1
    }
  return %r : !t
}

// Conditions that always hold vanish.
// CHECK-LABEL: func.func @always(
// CHECK: posenc.attention ins
// CHECK-NOT: where
// CHECK: return
func.func @always(%q: !t) -> !t {
  %c0 = arith.constant 0 : index
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %y = arith.cmpi sge, %j, %c0 : index
      posenc.yield %y : i1
    }
  return %r : !t
}

// Other conditions are kept, and operations without users are erased.
// CHECK-LABEL: func.func @some(
// CHECK: posenc.attention causal ins
// CHECK: where(%{{.*}}, %{{.*}}, %i, %j)
// CHECK-NEXT: %[[Z:.*]] = tensor.extract %{{.*}}[%j]
// CHECK-NEXT: %[[N:.*]] = arith.cmpi ne, %i, %j
// CHECK-NEXT: %[[Y:.*]] = arith.andi %[[Z]], %[[N]]
// CHECK-NEXT: posenc.yield %[[Y]]
func.func @some(%q: !t, %t: tensor<?xi1>) -> !t {
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %x = arith.cmpi sle, %j, %i : index
      %z = tensor.extract %t[%j] : tensor<?xi1>
      %n = arith.cmpi ne, %i, %j : index
      %u = arith.andi %x, %z : i1
      %y = arith.andi %u, %n : i1
      posenc.yield %y : i1
    }
  return %r : !t
}

// The rest is left alone.
// Alternatives, such as the visible prefix of a prefix language model.
// REMARK: remark: [Missed] posenc-fold-masks | {{.*}}Function=alternative | {{.*}}no condition of 'where' is a window
// CHECK-LABEL: func.func @alternative(
// CHECK: posenc.attention ins
// CHECK: where(
// CHECK: posenc.yield
func.func @alternative(%q: !t) -> !t {
  %c5 = arith.constant 5 : index
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %x = arith.cmpi sle, %j, %i : index
      %z = arith.cmpi slt, %j, %c5 : index
      %y = arith.ori %x, %z : i1
      posenc.yield %y : i1
    }
  return %r : !t
}

// Windows without i itself.
// CHECK-LABEL: func.func @strict(
// CHECK: posenc.attention ins
// CHECK: where(
// CHECK: posenc.yield
func.func @strict(%q: !t) -> !t {
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %x = arith.cmpi slt, %j, %i : index
      %y = arith.andi %x, %x : i1
      posenc.yield %y : i1
    }
  return %r : !t
}

// A negative i is a large unsigned number.
// CHECK-LABEL: func.func @unsigned(
// CHECK: posenc.attention ins
// CHECK: where(
// CHECK: posenc.yield
func.func @unsigned(%q: !t) -> !t {
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %y = arith.cmpi ule, %j, %i : index
      posenc.yield %y : i1
    }
  return %r : !t
}

// A factor other than 1.
// CHECK-LABEL: func.func @other_scale(
// CHECK: posenc.attention ins
// CHECK: where(
// CHECK: posenc.yield
func.func @other_scale(%q: !t) -> !t {
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %d = arith.addi %i, %i : index
      %y = arith.cmpi sle, %j, %d : index
      posenc.yield %y : i1
    }
  return %r : !t
}

// A limit that is not constant.
// CHECK-LABEL: func.func @dynamic(
// CHECK: posenc.attention ins
// CHECK: where(
// CHECK: posenc.yield
func.func @dynamic(%q: !t, %n: index) -> !t {
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %d = arith.subi %i, %j : index
      %y = arith.cmpi sle, %d, %n : index
      posenc.yield %y : i1
    }
  return %r : !t
}

// Casts that truncate positions.
// CHECK-LABEL: func.func @narrow(
// CHECK: posenc.attention ins
// CHECK: where(
// CHECK: posenc.yield
func.func @narrow(%q: !t) -> !t {
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %p = arith.index_cast %i : index to i16
      %k1 = arith.index_cast %j : index to i16
      %y = arith.cmpi sle, %k1, %p : i16
      posenc.yield %y : i1
    }
  return %r : !t
}

// A sum that could wrap in i32.
// CHECK-LABEL: func.func @wraps(
// CHECK: posenc.attention ins
// CHECK: where(
// CHECK: posenc.yield
func.func @wraps(%q: !t) -> !t {
  %c5 = arith.constant 5 : i32
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %p = arith.index_cast %i : index to i32
      %k1 = arith.index_cast %j : index to i32
      %d = arith.addi %p, %c5 : i32
      %y = arith.cmpi sle, %k1, %d : i32
      posenc.yield %y : i1
    }
  return %r : !t
}

// A sum that could wrap in 64 bits.
// CHECK-LABEL: func.func @wraps_far(
// CHECK: posenc.attention ins
// CHECK: where(
// CHECK: posenc.yield
func.func @wraps_far(%q: !t) -> !t {
  %far = arith.constant 9223372036854775807 : index
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %d = arith.addi %i, %far : index
      %e = arith.addi %d, %far : index
      %z = arith.addi %j, %far : index
      %w = arith.addi %z, %far : index
      %y = arith.cmpi sle, %w, %e : index
      posenc.yield %y : i1
    }
  return %r : !t
}

// An unsigned cast of a number that may be negative.
// CHECK-LABEL: func.func @unsigned_cast(
// CHECK: posenc.attention ins
// CHECK: where(
// CHECK: posenc.yield
func.func @unsigned_cast(%q: !t) -> !t {
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %p = arith.index_cast %i : index to i32
      %p64 = arith.extui %p : i32 to i64
      %k1 = arith.index_cast %j : index to i64
      %y = arith.cmpi sle, %k1, %p64 : i64
      posenc.yield %y : i1
    }
  return %r : !t
}

// A mask that hides every key.
// CHECK-LABEL: func.func @never(
// CHECK: posenc.attention ins
// CHECK: where(
// CHECK: posenc.yield
func.func @never(%q: !t) -> !t {
  %c0 = arith.constant 0 : index
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %d = arith.subi %i, %j : index
      %a = math.absi %d : index
      %y = arith.cmpi slt, %a, %c0 : index
      posenc.yield %y : i1
    }
  return %r : !t
}

// A condition on the head.
// CHECK-LABEL: func.func @other_head(
// CHECK: posenc.attention ins
// CHECK: where(
// CHECK: posenc.yield
func.func @other_head(%q: !t) -> !t {
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %y = arith.cmpi sle, %h, %i : index
      posenc.yield %y : i1
    }
  return %r : !t
}

// Not folded: the smallest number has no absolute value, and sums with it wrap.
// CHECK-LABEL: func.func @not_smallest(
// CHECK: posenc.attention ins
// CHECK: where
// CHECK: arith.cmpi sle
func.func @not_smallest(%q: !t) -> !t {
  %min = arith.constant -9223372036854775808 : i64
  %r = posenc.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    where(%b, %h, %i, %j) {
      %key = arith.index_cast %j : index to i64
      %y = arith.cmpi sle, %key, %min : i64
      posenc.yield %y : i1
    }
  return %r : !t
}
