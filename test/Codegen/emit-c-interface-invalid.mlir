//===- emit-c-interface-invalid.mlir - kernels without C entry points -----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-to-cpu --posenc-emit-c-interface --split-input-file --verify-diagnostics

// 2^62 floats: the number of elements fits 63 bits, the number of bytes does
// not.
// expected-error @below {{size of 'in0' of type 'tensor<4611686018427387904xf32>' overflows 2^63 bytes}}
func.func @vast(%x: tensor<4611686018427387904xf32>) {
  return
}

// -----

// expected-error @below {{size of 'in0' of type 'tensor<?x4294967296x4294967296xf64>' overflows 2^63 bytes}}
func.func @square(%x: tensor<?x4294967296x4294967296xf64>) {
  return
}

// -----

// expected-error @below {{'metadata' is a reserved name of the library}}
func.func @metadata() {
  return
}

// -----

// expected-error @below {{'a-b' is not a C identifier}}
func.func @"a-b"() {
  return
}

// -----

// expected-error @below {{symbol 'posenc_f' collides with the library's own}}
func.func @posenc_f() {
  return
}

// -----

// expected-error @below {{symbol '__tvm_ffi_posenc_f' collides with the library's own}}
func.func @__tvm_ffi_posenc_f() {
  return
}

// -----

// expected-error @below {{the tasks of a kernel can share at most 147456 bytes without a workspace, got 1048576}}
llvm.func @sharing(%a: !llvm.ptr, %b: !llvm.ptr, %o: i64, %s: i64, %t: i64, %c: !llvm.ptr, %d: !llvm.ptr, %p: i64, %u: i64, %v: i64, %e: !llvm.ptr, %f: !llvm.ptr, %g: i64, %h: i64, %j: i64, %i: i64, %n: i64) attributes {posenc.kernel = #posenc.kernel<tasks = true, phases = [true], shared_bytes = 1048576>, posenc.abi = #posenc.abi<inputs = [], outputs = [#posenc.arg<"out", tensor<4xf32>, []>], sizes = [], in_place = [-1]>} {
  llvm.return
}

// -----

func.func @f() {
  return
}

// expected-error @below {{the entry point 'posenc_f_dl' of function 'f_dl' collides with one of function 'f', which has an entry point with the suffix '_dl': rename one of the functions}}
func.func @f_dl() {
  return
}

// -----

// Control: a valid kernel.
func.func @g_dl() {
  return
}
