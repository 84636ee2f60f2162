//===- legalize-bf16.mlir - bf16 that is only moved becomes i16 -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-legalize-bf16 --split-input-file | FileCheck %s

// The C signature keeps bf16.
// CHECK-LABEL: llvm.func @move(
// CHECK-SAME: posenc.abi = #posenc.abi<inputs = [], outputs = [#posenc.arg<"x", tensor<4xbf16>, []>], {{.*}}>}
// CHECK-NOT: bf16
// CHECK: llvm.mlir.constant(16256 : i16) : i16
// CHECK: llvm.mlir.constant(dense<[16256, 16384]> : vector<2xi16>) : vector<2xi16>
// CHECK: llvm.getelementptr %{{.*}} : (!llvm.ptr, i64) -> !llvm.ptr, i16
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> i16
// CHECK: llvm.br ^[[NEXT:.*]](%{{.*}} : i16)
// CHECK: ^[[NEXT]](%[[X:.*]]: i16):
// CHECK: llvm.insertelement %[[X]], %{{.*}} : vector<2xi16>
// CHECK: llvm.store %{{.*}}, %{{.*}} : vector<2xi16>, !llvm.ptr
// CHECK: llvm.call @other(%[[X]]) : (i16) -> i16
llvm.func @move(%p: !llvm.ptr, %i: i64) attributes {posenc.abi = #posenc.abi<inputs = [], outputs = [#posenc.arg<"x", tensor<4xbf16>, []>], sizes = [], in_place = [-1]>} {
  %one = llvm.mlir.constant(1.0 : bf16) : bf16
  %both = llvm.mlir.constant(dense<[1.0, 2.0]> : vector<2xbf16>) : vector<2xbf16>
  %zero = llvm.mlir.constant(0 : i32) : i32
  %q = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, bf16
  llvm.store %one, %q : bf16, !llvm.ptr
  %x = llvm.load %p : !llvm.ptr -> bf16
  llvm.br ^next(%x : bf16)
^next(%y: bf16):
  %v = llvm.insertelement %y, %both[%zero : i32] : vector<2xbf16>
  llvm.store %v, %p : vector<2xbf16>, !llvm.ptr
  %z = llvm.call @other(%y) : (bf16) -> bf16
  llvm.return
}

// CHECK: llvm.func internal @other(%{{.*}}: i16) -> i16
llvm.func internal @other(%x: bf16) -> bf16 {
  llvm.return %x : bf16
}

// -----

// Functions that compute with bf16 keep it.
// CHECK-LABEL: llvm.func @compute(
// CHECK: llvm.fadd %{{.*}} : bf16
llvm.func @compute(%p: !llvm.ptr) {
  %x = llvm.load %p : !llvm.ptr -> bf16
  %y = llvm.fadd %x, %x : bf16
  llvm.store %y, %p : bf16, !llvm.ptr
  llvm.return
}

// -----

// Attributes of the dialect are as they were, also if they are not those of a
// kernel.
// CHECK: llvm.func @described(i16) attributes {argument = #posenc.arg<"x", tensor<4xbf16>, []>}
llvm.func @described(bf16) attributes {argument = #posenc.arg<"x", tensor<4xbf16>, []>}
