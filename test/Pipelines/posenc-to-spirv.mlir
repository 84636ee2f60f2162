//===- posenc-to-spirv.mlir - from tensors to SPIR-V kernels --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// REQUIRES: spirv
// RUN: posenc-opt %s --posenc-to-spirv | FileCheck %s
// RUN: posenc-opt %s --posenc-to-spirv=fused-fma | FileCheck %s --check-prefix=FUSED \
// RUN:   --implicit-check-not='spirv.FunctionCall'

// The buffers of x, as input and output, of the positions and of the constants, and
// the push constants.
// CHECK: spirv.module {{.*}}Logical GLSL450 requires #spirv.vce<v1.0, [{{.*}}Int64{{.*}}Float64
// CHECK: spirv.GlobalVariable @rope_arg_0 bind(0, 0) : {{.*}}vector<4xi32>, stride=16{{.*}}, StorageBuffer>
// CHECK: spirv.GlobalVariable @rope_arg_1 bind(0, 1) : {{.*}}vector<4xi32>, stride=16{{.*}}, StorageBuffer>
// CHECK: spirv.GlobalVariable @rope_arg_2 bind(0, 2) : {{.*}}vector<2xi32>, stride=8{{.*}}, StorageBuffer>
// CHECK: spirv.GlobalVariable @rope_arg_3 bind(0, 3) : {{.*}}i32, stride=4{{.*}}, StorageBuffer>
// CHECK: spirv.GlobalVariable @rope_arg_4 : {{.*}}, PushConstant>
// CHECK: spirv.func @rope() "None"
// CHECK-SAME: posenc.kernel_type
// CHECK-NOT: spirv.GL.Fma
// CHECK: spirv.FunctionCall @fma.f64
// CHECK: spirv.ControlBarrier <Workgroup>
// CHECK: spirv.FMul %{{.*}} {no_contraction}
// CHECK: spirv.func @rope_narrow()
// CHECK: spirv.EntryPoint "GLCompute" @rope,
// CHECK: spirv.ExecutionMode @rope "LocalSize", {{[0-9]+}}, 1, 1

// FUSED: spirv.GL.Fma {{.*}} {no_contraction} : f64
func.func @rope(%x: tensor<?x4x64xbf16>, %p: tensor<?xi64>) -> tensor<?x4x64xbf16> {
  %r = posenc.rope half #posenc.frequencies<dim = 64> ins(%x : tensor<?x4x64xbf16>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x4x64xbf16>)
  return %r : tensor<?x4x64xbf16>
}
