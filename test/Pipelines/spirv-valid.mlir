//===- spirv-valid.mlir - valid SPIR-V kernels for Vulkan -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// REQUIRES: spirv, spirv-val

// RUN: posenc-opt %s --posenc-to-spirv \
// RUN:   | sed -n '/^  spirv.module/,/^  }$/p' > %t.mlir
// RUN: mlir-translate --no-implicit-module --serialize-spirv %t.mlir -o %t.spv
// RUN: spirv-val --target-env vulkan1.1 %t.spv
// RUN: posenc-opt %s --posenc-to-spirv=fused-fma \
// RUN:   | sed -n '/^  spirv.module/,/^  }$/p' > %t2.mlir
// RUN: mlir-translate --no-implicit-module --serialize-spirv %t2.mlir -o %t2.spv
// RUN: spirv-val --target-env vulkan1.1 %t2.spv

// Control: the validator rejects a binding among push constants.
// RUN: sed 's/\(GlobalVariable.*_arg_4\) : \(.*PushConstant\)/\1 bind(0, 4) : \2/' %t.mlir > %t3.mlir
// RUN: mlir-translate --no-implicit-module --serialize-spirv %t3.mlir -o %t3.spv
// RUN: not spirv-val --target-env vulkan1.1 %t3.spv

func.func @rope(%x: tensor<?x4x64xbf16>, %p: tensor<?xi64>) -> tensor<?x4x64xbf16> {
  %r = posenc.rope interleaved #posenc.frequencies<dim = 64> ins(%x : tensor<?x4x64xbf16>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x4x64xbf16>)
  return %r : tensor<?x4x64xbf16>
}

func.func @wide(%x: tensor<?x4x64xf64>, %p: tensor<?xi32>) -> tensor<?x4x64xf64> {
  %r = posenc.rope half #posenc.frequencies<dim = 64> ins(%x : tensor<?x4x64xf64>) positions(%p : tensor<?xi32>) dims = [0] outs(%x : tensor<?x4x64xf64>)
  return %r : tensor<?x4x64xf64>
}

func.func @table(%p: tensor<?xi64>) -> tensor<?x64xf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %p, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x64xf16>
  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 64> positions(%p : tensor<?xi64>) outs(%e : tensor<?x64xf16>)
  return %r : tensor<?x64xf16>
}
