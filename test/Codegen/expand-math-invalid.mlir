//===- expand-math-invalid.mlir - math functions without expansion --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-expand-math --split-input-file --verify-diagnostics

func.func @extended(%x: f80) -> f80 {
  // expected-error @below {{'math.sin' of 'f80' is not supported: a kernel cannot call libm, and expansions exist for f16, bf16, f32 and f64 only}}
  %r = math.sin %x : f80
  return %r : f80
}

// -----

func.func @quadruple(%x: vector<4xf128>) -> vector<4xf128> {
  // expected-error @below {{'math.sqrt' of 'vector<4xf128>' is not supported}}
  %r = math.sqrt %x : vector<4xf128>
  return %r : vector<4xf128>
}

// -----

// All unsupported functions are reported, not only the first.
func.func @powers(%x: i32) -> (i32, i32) {
  %least = arith.constant -1 : i32
  // expected-error @below {{'math.ipowi' of 'i32' is not supported: a kernel cannot call libm, and this operation has no expansion}}
  %a = math.ipowi %x, %x : i32
  // expected-error @below {{'math.ipowi' of 'i32' is not supported}}
  %b = math.ipowi %x, %least : i32
  return %a, %b : i32, i32
}
