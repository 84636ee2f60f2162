//===- decompose-attention-masks.mlir - tiles that mask_mod masks ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-decompose-attention --canonicalize --cse --split-input-file | FileCheck %s
// RUN: posenc-opt %s --pass-pipeline='builtin.module(posenc-decompose-attention{bound-elements=true groups=2},canonicalize,cse)' \
// RUN:   --split-input-file | FileCheck %s --check-prefix=ELEMENTS
// RUN: posenc-opt %s --posenc-decompose-attention --split-input-file --remarks-filter=posenc -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

!q = tensor<1x?x4x16xf64>

// Empty tiles are skipped, and `where` is evaluated in partial tiles only.
// REMARK: [Passed] posenc-decompose-attention | {{.*}}Function=before | Remark="skips tiles that 'where' masks, and evaluates it in partial tiles only"
// CHECK-LABEL: func.func @before(
// CHECK:       scf.for %[[J:.*]] = %c0 to %{{.*}} step %c32
// CHECK:         %[[J0:.*]] = arith.index_cast %[[J]] : index to i64
// CHECK:         %[[ANY:.*]] = arith.cmpi slt, %[[J0]], %[[I1:.*]] : i64
// CHECK-NEXT:    %[[ALL:.*]] = arith.cmpi slt, %[[J1:.*]], %[[I0:.*]] : i64
// CHECK-NEXT:    scf.if %[[ANY]]
// CHECK:           scf.if %[[ALL]]
// CHECK:             posenc.online_attention
// CHECK-NOT:         where
// CHECK:           } else {
// CHECK:             posenc.online_attention
// CHECK:             where
// CHECK:         } else {
// CHECK-NEXT:      scf.yield
func.func @before(%q: !q) -> !q {
  %r = posenc.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    where(%b, %h, %i, %j) {
      %y = arith.cmpi slt, %j, %i : index
      posenc.yield %y : i1
    }
  return %r : !q
}

// -----

!q = tensor<1x?x4x16xf64>

// Tensors are read only on request, as entry points cannot prove these reads.
// REMARK: [Missed] posenc-decompose-attention | {{.*}}Function=documents | {{.*}}'where' is evaluated for all pairs: tiles have no bounds of tensor.extract
// CHECK-LABEL: func.func @documents(
// CHECK-NOT:   scf.if
// CHECK:       posenc.online_attention
// ELEMENTS-LABEL: func.func @documents(
// ELEMENTS-SAME:  %{{.*}}: tensor<1x?x4x16xf64>, %[[T:.*]]: tensor<?xi32>)
// ELEMENTS:       scf.for {{.*}} step %c32
// ELEMENTS:         tensor.extract %[[T]]
// ELEMENTS:         scf.for {{.*}} -> (i32, i32)
// ELEMENTS:           tensor.extract %[[T]]
// ELEMENTS:         scf.for {{.*}} -> (i32, i32)
// ELEMENTS:         scf.if
// ELEMENTS:           scf.for
// ELEMENTS:             scf.for {{.*}} -> (i32, i32)
// ELEMENTS:             scf.if
// ELEMENTS:               scf.if
// ELEMENTS:                 posenc.online_attention
// ELEMENTS-NOT:             where
// ELEMENTS:               } else {
// ELEMENTS:                 posenc.online_attention
// ELEMENTS:                 where
func.func @documents(%q: !q, %t: tensor<?xi32>) -> !q {
  %r = posenc.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    where(%b, %h, %i, %j) {
      %d = tensor.extract %t[%i] : tensor<?xi32>
      %e = tensor.extract %t[%j] : tensor<?xi32>
      %y = arith.cmpi eq, %d, %e : i32
      posenc.yield %y : i1
    }
  return %r : !q
}
