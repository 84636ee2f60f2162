//===- select-gpu-kernels.mlir - what a GPU cannot run yet ===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-to-nvvm=chip=sm_90 --verify-diagnostics | FileCheck %s

// CHECK: func.func @rope
func.func @rope(%x: tensor<?x2x2xf32>, %p: tensor<?xi64>) -> tensor<?x2x2xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 2> ins(%x : tensor<?x2x2xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x2x2xf32>)
  return %r : tensor<?x2x2xf32>
}

// expected-warning @below {{'sum' is left out for the GPU: it has operations that only a CPU runs}}
func.func @sum(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @below {{such as 'linalg.add'}}
  %r = linalg.add ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// expected-warning @below {{'between' is left out for the GPU: it needs memory for what is between its operations}}
func.func @between(%x: tensor<?x2x2xf32>, %p: tensor<?xi64>) -> tensor<?x2x2xf32> {
  // expected-note @below {{such as 'memref.alloc'}}
  %0 = posenc.rope half #posenc.frequencies<dim = 2> ins(%x : tensor<?x2x2xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x2x2xf32>)
  %1 = posenc.rope interleaved #posenc.frequencies<dim = 2, base = 5.0> ins(%0 : tensor<?x2x2xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x2x2xf32>)
  return %1 : tensor<?x2x2xf32>
}

// A sum of positions needs no memory.
// CHECK-LABEL: func.func @twice
// CHECK-NOT: memref.alloc
// CHECK: gpu.launch_func @kernels::@twice_narrow
func.func @twice(%x: tensor<?x2x2xf32>, %p: tensor<?xi64>, %q: tensor<?xi64>) -> tensor<?x2x2xf32> {
  %0 = posenc.rope half #posenc.frequencies<dim = 2> ins(%x : tensor<?x2x2xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x2x2xf32>)
  %1 = posenc.rope half #posenc.frequencies<dim = 2> ins(%0 : tensor<?x2x2xf32>) positions(%q : tensor<?xi64>) dims = [0] outs(%x : tensor<?x2x2xf32>)
  return %1 : tensor<?x2x2xf32>
}

// CHECK: gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_90">]
// CHECK: llvm.func @rope_narrow({{.*}}gpu.kernel
// CHECK-NOT: @__nv
