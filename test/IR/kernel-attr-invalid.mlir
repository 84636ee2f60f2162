//===- kernel-attr-invalid.mlir - errors of attributes of kernels ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'posenc.kernel' is a #posenc.kernel attribute of a function}}
module attributes {posenc.kernel = #posenc.kernel<>} {}

// -----

// expected-error @below {{'posenc.kernel' is a #posenc.kernel attribute of a function}}
func.func private @f() attributes {posenc.kernel}

// -----

// expected-error @below {{unknown attribute 'posenc.tasks'}}
func.func private @f() attributes {posenc.tasks}

// -----

// expected-error @below {{expected a phase or no 'phases' (kernel_c1)}}
func.func private @f() attributes {posenc.kernel = #posenc.kernel<tasks = true, phases = []>}

// -----

// expected-error @below {{expected 'tasks' with 'phases' (kernel_c1)}}
func.func private @f() attributes {posenc.kernel = #posenc.kernel<phases = [true]>}

// -----

// expected-error @below {{expected 'shared_bytes' with 'phases', and not negative, got 64 (kernel_c2)}}
func.func private @f() attributes {posenc.kernel = #posenc.kernel<tasks = true, shared_bytes = 64>}

// -----

// expected-error @below {{expected 'shared_bytes' with 'phases', and not negative, got -1 (kernel_c2)}}
func.func private @f() attributes {posenc.kernel = #posenc.kernel<tasks = true, phases = [true], shared_bytes = -1>}

// -----

// expected-error @below {{expected positive 'scratch_bytes' (kernel_c3)}}
func.func private @f() attributes {posenc.kernel = #posenc.kernel<scratch_bytes = [64, 0], workspace = true>}

// -----

// expected-error @below {{expected 'workspace' with 'scratch_bytes' or 'measured' (kernel_c3)}}
func.func private @f() attributes {posenc.kernel = #posenc.kernel<scratch_bytes = [64]>}

// -----

// expected-error @below {{expected 'workspace' with 'scratch_bytes' or 'measured' (kernel_c3)}}
func.func private @f() attributes {posenc.kernel = #posenc.kernel<measured = true>}

// -----

// expected-error @below {{'tasks' and 'launches' exclude each other (kernel_c4)}}
func.func private @f() attributes {posenc.kernel = #posenc.kernel<tasks = true, launches = true>}

// -----

// expected-error @below {{expected 'assertions' to be strings, got [1] (kernel_c5)}}
func.func private @f() attributes {posenc.kernel = #posenc.kernel<assertions = [1]>}

// -----

// expected-error @below {{expected the last two arguments of a kernel with 'tasks' to be of type index or i64}}
func.func private @f(index) attributes {posenc.kernel = #posenc.kernel<tasks = true>}

// -----

// expected-error @below {{expected the last two arguments of a kernel with 'tasks' to be of type index or i64}}
func.func private @f(index, index, memref<4xf32>) attributes {posenc.kernel = #posenc.kernel<tasks = true>}

// -----

// expected-error @below {{expected the last argument of a kernel with 'launches' to be of type index or i64}}
func.func private @f(memref<4xf32>) attributes {posenc.kernel = #posenc.kernel<launches = true>}

// -----

// expected-error @below {{'posenc.tasks_by' is a #posenc.tasks_by attribute of an scf.forall}}
func.func private @f() attributes {posenc.tasks_by = #posenc.tasks_by<inputs>}

// -----

func.func @f(%n: index) {
  // expected-error @below {{'posenc.tasks_by' is a #posenc.tasks_by attribute of an scf.forall}}
  scf.forall (%i) in (%n) {
  } {posenc.tasks_by = "inputs"}
  return
}

// -----

// expected-error @below {{expected an architecture such as "sm_90a", got "sm90" (chip_c1)}}
func.func private @f() attributes {posenc.chip = #posenc.chip<"sm90">}

// -----

// expected-error @below {{expected an architecture such as "sm_90a", got "sm_a" (chip_c1)}}
func.func private @f() attributes {posenc.chip = #posenc.chip<"sm_a">}

// -----

// expected-error @below {{'posenc.chip' is a #posenc.chip attribute of a function or an scf.forall}}
module attributes {posenc.chip = #posenc.chip<"sm_90a">} {}

// -----

// expected-error @below {{'posenc.chip' is a #posenc.chip attribute of a function or an scf.forall}}
func.func private @f() attributes {posenc.chip = "sm_90a"}

// -----

// expected-error @below {{'posenc.gpu' is a #posenc.gpu attribute of a module}}
func.func private @f() attributes {posenc.gpu = #posenc.gpu<attention = true>}

// -----

// expected-error @below {{'posenc.gpu' is a #posenc.gpu attribute of a module}}
module attributes {posenc.gpu = "sm_90a"} {}

// -----

// expected-error @below {{'posenc.kernel_type' is an attribute of a function, a type of a function}}
func.func private @f() attributes {posenc.kernel_type = f32}

// -----

// expected-error @below {{'posenc.kernel_constants' is an attribute of a module, a list of i32}}
module attributes {posenc.kernel_constants = array<i64: 1>} {}

// -----

// expected-error @below {{'posenc.kernel_constants' is an attribute of a module, a list of i32}}
func.func private @f() attributes {posenc.kernel_constants = array<i32: 1>}

// -----

// expected-error @below {{'posenc.stack_limit' is an attribute of a module, a positive number of bytes as i64}}
module attributes {posenc.stack_limit = 0 : i64} {}

// -----

// expected-error @below {{'posenc.stack_limit' is an attribute of a module, a positive number of bytes as i64}}
func.func private @f() attributes {posenc.stack_limit = 64 : i64}

// -----

// expected-error @below {{expected 'posenc.packed' as a unit, got "panels32"}}
func.func private @f(tensor<4xf32> {posenc.packed = "panels32"})

// -----

// expected-error @below {{expected 'posenc.layout' as a string, got unit}}
func.func private @f(tensor<4xf32> {posenc.layout})

// -----

func.func @f() {
  // expected-error @below {{'posenc.shared_buffer' is a unit attribute of a memref.alloca}}
  %a = memref.alloca() {posenc.shared_buffer = 1 : i64} : memref<4xf32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{'posenc.streamed' is a unit attribute of a linalg operation}}
  %a = memref.alloca() {posenc.streamed} : memref<4xf32>
  return
}
