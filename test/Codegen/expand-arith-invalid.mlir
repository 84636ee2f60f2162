//===- expand-arith-invalid.mlir - arith ops that would need library calls ===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-expand-arith --split-input-file --verify-diagnostics

func.func @divide(%x: i128) -> i128 {
  // expected-error @below {{cannot compile 'arith.divsi' with 'i128': it needs a library of functions, which kernels do not have; divide integers of at most 64 bits}}
  %r = arith.divsi %x, %x : i128
  return %r : i128
}

// -----

func.func @convert(%x: vector<4xf64>) -> vector<4xi128> {
  // expected-error @below {{cannot compile 'arith.fptosi' with 'vector<4xi128>': it needs a library of functions, which kernels do not have; convert integers of at most 64 bits}}
  %r = arith.fptosi %x : vector<4xf64> to vector<4xi128>
  return %r : vector<4xi128>
}

// -----

func.func @quad(%x: f128) -> f128 {
  // expected-error @below {{cannot compile 'arith.addf' with 'f128': kernels compute in f16, bf16, f32 and f64}}
  %r = arith.addf %x, %x : f128
  return %r : f128
}

// -----

func.func @narrow(%x: f32) -> f8E4M3FN {
  // expected-error @below {{cannot compile 'arith.truncf' with 'f8E4M3FN': kernels compute in f16, bf16, f32 and f64}}
  %r = arith.truncf %x : f32 to f8E4M3FN
  return %r : f8E4M3FN
}

// -----

// Sums and products of wide integers need no library call.
func.func @fine(%x: i128, %c: i1) -> i128 {
  %a = arith.addi %x, %x : i128
  %b = arith.muli %a, %x : i128
  %r = arith.select %c, %a, %b : i128
  return %r : i128
}
