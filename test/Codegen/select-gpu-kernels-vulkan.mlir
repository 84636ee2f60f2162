//===- select-gpu-kernels-vulkan.mlir - functions without Vulkan kernels --===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// REQUIRES: spirv
// RUN: posenc-opt %s --posenc-to-spirv --verify-diagnostics

func.func @product(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = arith.mulf %a, %a : tensor<4xf32>
  return %r : tensor<4xf32>
}

// expected-warning @below {{'quotient' is left out for the GPU: it has operations that Vulkan devices round differently}}
func.func @quotient(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @below {{such as 'arith.divf'}}
  %r = arith.divf %a, %a : tensor<4xf32>
  return %r : tensor<4xf32>
}

// expected-warning @below {{'angle' is left out for the GPU: it has operations that Vulkan devices round differently}}
func.func @angle(%a: tensor<4xf16>) -> tensor<4xf16> {
  %b = arith.mulf %a, %a : tensor<4xf16>
  // expected-note @below {{such as 'math.sin'}}
  %r = math.sin %b : tensor<4xf16>
  return %r : tensor<4xf16>
}

// expected-warning @below {{'remainder' is left out for the GPU: it has operations without a GPU kernel}}
func.func @remainder(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @below {{such as 'arith.remf'}}
  %r = arith.remf %a, %a : tensor<4xf32>
  return %r : tensor<4xf32>
}
