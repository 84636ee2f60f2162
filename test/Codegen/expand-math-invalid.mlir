//===- expand-math-invalid.mlir - functions that would be calls -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-expand-math --allow-unregistered-dialect --split-input-file --verify-diagnostics

func.func @power(%x: f32) -> f32 {
  // expected-error @below {{'math.powf' of 'f32' needs a library of functions, which kernels do not have}}
  %r = math.powf %x, %x : f32
  return %r : f32
}

// -----

func.func @wide(%x: vector<4xf64>) -> vector<4xf64> {
  // expected-error @below {{'math.sin' of 'vector<4xf64>' needs a library of functions}}
  %r = math.sin %x : vector<4xf64>
  return %r : vector<4xf64>
}

// -----

// An operation of no dialect is nothing to stumble over.
func.func @unknown(%x: bf16) -> bf16 {
  %y = "other.op"(%x) : (bf16) -> bf16
  %z = math.exp %y : bf16
  return %z : bf16
}

// -----

// What there are instructions for is left.
func.func @fine(%x: f64, %i: i32) -> (f64, i32) {
  %a = math.sqrt %x : f64
  %b = math.fma %a, %x, %x : f64
  %c = math.floor %b : f64
  %d = math.ctpop %i : i32
  return %c, %d : f64, i32
}
