//===- attach-gpu.mlir - what GPU kernels may use -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-attach-gpu | FileCheck %s
// CHECK: module attributes {posenc.gpu = #posenc.gpu<>} {

// A later pass replaces the attribute.
// RUN: posenc-opt %s --posenc-attach-gpu=attention=true --posenc-attach-gpu="functions=true small-shared-memory=true" | FileCheck %s --check-prefix=LAST
// LAST: module attributes {posenc.gpu = #posenc.gpu<functions = true, small_shared_memory = true>} {

// RUN: posenc-opt %s --posenc-to-nvvm=chip=sm_75 | FileCheck %s --check-prefix=TURING
// RUN: posenc-opt %s --posenc-to-nvvm=chip=sm_80 | FileCheck %s --check-prefix=AMPERE
// RUN: posenc-opt %s --posenc-to-nvvm=chip=sm_90 | FileCheck %s --check-prefix=AMPERE
// RUN: posenc-opt %s --posenc-to-nvvm=chip=sm_90a | FileCheck %s --check-prefix=HOPPER
// RUN: posenc-opt %s --posenc-to-nvvm=chip=sm_120 | FileCheck %s --check-prefix=SMALL
// TURING: posenc.gpu = #posenc.gpu<functions = true>
// AMPERE: posenc.gpu = #posenc.gpu<functions = true, attention = true>
// HOPPER: posenc.gpu = #posenc.gpu<functions = true, attention = true, warpgroups = true>
// SMALL: posenc.gpu = #posenc.gpu<functions = true, attention = true, small_shared_memory = true>

func.func @copy(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
