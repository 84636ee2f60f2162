//===- legalize-i1.mlir - i1 in memory becomes a byte ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-legalize-i1 | FileCheck %s

// CHECK-LABEL: llvm.func @scalar
// CHECK-SAME: (%[[P:.*]]: !llvm.ptr)
// CHECK: %[[BYTE:.*]] = llvm.load %[[P]] {alignment = 1 : i64} : !llvm.ptr -> i8
// CHECK: %[[ZERO:.*]] = llvm.mlir.zero : i8
// CHECK: %[[BIT:.*]] = llvm.icmp "ne" %[[BYTE]], %[[ZERO]] : i8
// CHECK: %[[WIDE:.*]] = llvm.zext %[[BIT]] : i1 to i8
// CHECK: llvm.store %[[WIDE]], %[[P]] : i8, !llvm.ptr
llvm.func @scalar(%p: !llvm.ptr) {
  %bit = llvm.load %p {alignment = 1 : i64} : !llvm.ptr -> i1
  llvm.store %bit, %p : i1, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @vector
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> vector<8xi8>
// CHECK: llvm.icmp "ne" %{{.*}} : vector<8xi8>
// CHECK: llvm.zext %{{.*}} : vector<8xi1> to vector<8xi8>
// CHECK: llvm.store %{{.*}} : vector<8xi8>, !llvm.ptr
llvm.func @vector(%p: !llvm.ptr) {
  %bits = llvm.load %p : !llvm.ptr -> vector<8xi1>
  llvm.store %bits, %p : vector<8xi1>, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @other
// CHECK-NEXT: llvm.load %{{.*}} : !llvm.ptr -> i64
// CHECK-NEXT: llvm.store
llvm.func @other(%p: !llvm.ptr) {
  %word = llvm.load %p : !llvm.ptr -> i64
  llvm.store %word, %p : i64, !llvm.ptr
  llvm.return
}
