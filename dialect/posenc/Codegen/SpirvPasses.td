//===- SpirvPasses.td - code generation for Vulkan ---------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CODEGEN_SPIRVPASSES_TD
#define POSENC_CODEGEN_SPIRVPASSES_TD

include "mlir/Pass/PassBase.td"

def PosencUnrollVectorsPass
    : Pass<"posenc-unroll-vectors", "::mlir::ModuleOp"> {
  let summary = "Unroll vectors and legalize types for SPIR-V";
  let description = [{
    Input: a module with a `gpu.module` of kernels. Output: the `gpu.module` only,
    with kernels on scalars, so that upstream's conversions to SPIR-V apply.
    Memory consists of buffers of integers, or of vectors of 32-bit words;
    operations on bf16 and f16 become integer arithmetic; constants are in one
    buffer; scalar arguments are words of the push constants. The attribute
    `posenc.kernel_type` has the type of a kernel before the pass, and
    `posenc.kernel_constants` has the constants. SpirvKernels.h documents the
    kernel's interface. Left alone: nothing; a kernel that cannot be converted is
    an error.

    SPIR-V does not specify whether its Fma rounds once. Unless `fused-fma` says
    that it does on the device, a fused multiply-add is emulated by products and
    sums that give the same result.

    ```
    %v = vector.load %m[%i] {alignment = 8} : memref<?xf32>, vector<2xf32>
    ```
    becomes
    ```
    %0 = memref.load %words[%i] : memref<?xvector<2xi32>, ...>
    ... each word of %0 as an f32 ...
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::spirv::SPIRVDialect",
    "::mlir::vector::VectorDialect"];
  let options = [Option<"fusedFma", "fused-fma", "bool", /*default=*/"false",
                        "The device's Fma rounds once">];
}

def PosencFinishSpirvPass : Pass<"posenc-finish-spirv"> {
  let summary = "Add NoContraction decorations and remove push constant bindings";
  let description = [{
    Input: `spirv.module`s from upstream's conversions. Output: sums and products
    have the decoration NoContraction, so each is rounded separately, in the
    given order, as on other targets. Push constant variables lose the binding
    that `spirv-lower-abi-attrs` gives to every argument. Left alone: all other
    operations.

    ```
    %r = spirv.FMul %x, %y : f32
    ```
    becomes
    ```
    %r = spirv.FMul %x, %y {no_contraction} : f32
    ```
  }];
  let dependentDialects = ["::mlir::spirv::SPIRVDialect"];
}

#endif // POSENC_CODEGEN_SPIRVPASSES_TD
