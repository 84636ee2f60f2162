//===- kernel-attr.mlir - attributes that pass from pass to pass ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-roundtrip | FileCheck %s

// CHECK: module attributes {posenc.gpu = #posenc.gpu<functions = true, small_shared_memory = true>, posenc.stack_limit = 65536 : i64}
module attributes {posenc.gpu = #posenc.gpu<small_shared_memory = true, functions = true>, posenc.stack_limit = 65536 : i64} {

// Defaults are omitted.
// CHECK: @defaults() attributes {posenc.kernel = #posenc.kernel<>}
func.func private @defaults() attributes {
  posenc.kernel = #posenc.kernel<tasks_by = outputs, tasks = false, shared_bytes = 0>
}

// CHECK: @tasks(memref<4x8xf32> {posenc.name = "x"}, index, index)
// CHECK-SAME: posenc.kernel = #posenc.kernel<tasks = true>}
func.func private @tasks(memref<4x8xf32> {posenc.name = "x"}, index, index) attributes {
  posenc.abi = #posenc.abi<inputs = [], outputs = [#posenc.arg<"x", tensor<4x8xf32>, []>], sizes = [], in_place = [-1]>,
  posenc.kernel = #posenc.kernel<tasks = true>
}

// Parameters are in any order.
// CHECK: @phases
// CHECK-SAME: #posenc.kernel<tasks_by = inputs, tasks = true, phases = [true, false], measured = true, shared_bytes = 64, scratch_bytes = [256, 64], workspace = true>}
func.func private @phases(memref<?xi8>, memref<64xi8>, memref<256xi8>, memref<64xi8>, memref<1xi64>, index, index) attributes {
  posenc.kernel = #posenc.kernel<workspace = true, scratch_bytes = [256, 64], shared_bytes = 64, measured = true, phases = [true, false], tasks = true, tasks_by = inputs>
}

// CHECK: @launches(i64) attributes {posenc.kernel = #posenc.kernel<launches = true, assertions = ["a", "b"]>}
func.func private @launches(i64) attributes {
  posenc.kernel = #posenc.kernel<launches = true, assertions = ["a", "b"]>
}

// CHECK: @layout(tensor<4xf32> {posenc.packed}, tensor<4xf32> {posenc.layout = "panels32"})
func.func private @layout(tensor<4xf32> {posenc.packed}, tensor<4xf32> {posenc.layout = "panels32"})

// CHECK-LABEL: @operations
func.func @operations(%n: index) attributes {posenc.chip = #posenc.chip<"sm_90a">} {
  // CHECK: memref.alloca() {posenc.shared_buffer}
  %a = memref.alloca() {posenc.shared_buffer} : memref<4xf32>
  // CHECK: {posenc.chip = #posenc.chip<"sm_80">, posenc.tasks_by = #posenc.tasks_by<all>}
  scf.forall (%i) in (%n) {
  } {posenc.chip = #posenc.chip<"sm_80">, posenc.tasks_by = #posenc.tasks_by<all>}
  return
}

}
