//===- GpuPasses.td - code generation for GPUs -------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CODEGEN_GPUPASSES_TD
#define POSENC_CODEGEN_GPUPASSES_TD

include "mlir/Pass/PassBase.td"

class Posenc_ToGpuPass<string flag> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def PosencSelectGpuKernelsPass
    : Pass<"posenc-select-gpu-kernels", "::mlir::ModuleOp"> {
  let summary = "Remove the functions that have no GPU code";
  let description = [{
    Input: a module of kernels on memrefs. Output: the same module without the
    functions that have no GPU code: those with other operations than sincos,
    rotate, rope and sinusoidal, copies, and elementwise loops of linalg. Each
    public function that is removed causes a warning. Left alone: functions that
    the GPU can run.

    ```
    func.func @rope(...) { posenc.rope ... }
    func.func @attention(...) { posenc.attention ... }
    ```
    becomes
    ```
    func.func @rope(...) { posenc.rope ... }
    ```
  }];
  let options = [
    Option<"functions", "functions", "bool", /*default=*/"false",
           "Keep quotients and functions of math, which have the bits of the CPU "
           "on NVIDIA GPUs, but not on all Vulkan devices">];
}

def ConvertPosencRopeToGpuPass
    : Posenc_ToGpuPass<"convert-posenc-rope-to-gpu"> {
  let summary = "Convert rotate and rope on memrefs to GPU kernels";
  let description = [{
    Input: `posenc.rotate` and `posenc.rope` on memrefs. Output: each is a launch
    of a `gpu.func` in `gpu.module @kernels`. A block has a position, or several
    where rows are few, and all rows of all tensors of its positions. Its threads
    load 16 bytes each, then compute the cos and sin that the rows share, with
    the same bits as on the CPU. Both lanes of a pair are in one thread, so that a
    destination may be its input. Where addresses or strides are no multiples of
    16 bytes, a second kernel accesses single elements. Left alone: all other
    operations.

    The code of a thread consists of linalg on views of its lanes, as
    `posenc-decompose-rotations` emits it; `posenc-vectorize-tiles` and
    `posenc-promote-allocs-to-registers` lower it further.

    ```
    posenc.rope half #f ins(%x : memref<?x8x64xf32, ...>) positions(%p : ...) ...
    ```
    becomes
    ```
    gpu.launch_func @kernels::@f blocks in (%n, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%x : memref<?x8x64xf32, ...>, %p : memref<?xi64, ...>)
    ```
  }];
}

def PosencPromoteAllocsToRegistersPass
    : Pass<"posenc-promote-allocs-to-registers", "::mlir::ModuleOp"> {
  let summary = "Keep scratch memory of a thread in registers";
  let description = [{
    Input: a `memref.alloca` that one `vector.store` writes and that only later
    `vector.load`s of the same type read. Output: the vector. Left alone: all
    other memory.

    ```mlir
    func.func @f(%v: vector<4xf32>) -> vector<4xf32> {
      %c0 = arith.constant 0 : index
      %m = memref.alloca() : memref<4xf32>
      vector.store %v, %m[%c0] : memref<4xf32>, vector<4xf32>
      %w = vector.load %m[%c0] : memref<4xf32>, vector<4xf32>
      return %w : vector<4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%v: vector<4xf32>) -> vector<4xf32> {
      return %v : vector<4xf32>
    }
    ```
  }];
}

def PosencSplitAccessesPass : Pass<"posenc-split-accesses", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Split vector accesses that are not known to be aligned";
  let description = [{
    Input: `vector.load` and `vector.store` without `alignment` in a `gpu.module`.
    Output: one access for each element, since a GPU faults on vectors that are
    not aligned. Left alone: accesses with an alignment.

    ```
    %v = vector.load %m[%i] : memref<?xf32>, vector<2xf32>
    ```
    becomes
    ```
    %0 = vector.load %m[%i] : memref<?xf32>, vector<1xf32>
    %1 = vector.load %m[%next] : memref<?xf32>, vector<1xf32>
    %v = ... both as vector<2xf32> ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::vector::VectorDialect"];
}

def ConvertPosencSinusoidalToGpuPass
    : Posenc_ToGpuPass<"convert-posenc-sinusoidal-to-gpu"> {
  let summary = "Convert sincos and sinusoidal on memrefs to GPU kernels";
  let description = [{
    Input: `posenc.sincos` and `posenc.sinusoidal` on memrefs. Output: each is a
    launch of a `gpu.func`. A thread writes 16 bytes of each of 16 rows that
    follow each other, and advances from one position to the next by angle
    addition, with the same bits as on the CPU. Left alone: all other operations.

    ```
    posenc.sincos #f positions(%p : memref<?xi64, ...>) outs(%cos, %sin : ...)
    ```
    becomes
    ```
    gpu.launch_func @kernels::@f blocks in (%blocks, %c1, %c1) threads in (%c128, %c1, %c1)
      args(%p : memref<?xi64, ...>, %cos : ..., %sin : ...)
    ```
  }];
}

def ConvertPosencElementsToGpuPass
    : Posenc_ToGpuPass<"convert-posenc-elements-to-gpu"> {
  let summary = "Convert copies and elementwise linalg to GPU kernels";
  let description = [{
    Input: `memref.copy`, `linalg.fill` and elementwise linalg operations on
    memrefs, which stand between the operations of this dialect. Output: each is
    a launch of a `gpu.func` in which a thread computes one element of each
    output. Left alone: reductions and contractions.

    ```
    linalg.square ins(%x : memref<?x64xf32, ...>) outs(%y : memref<?x64xf32, ...>)
    ```
    becomes
    ```
    gpu.launch_func @kernels::@f_elements blocks in (%blocks, %c1, %c1) threads in (%c256, %c1, %c1)
      args(%x : memref<?x64xf32, ...>, %y : memref<?x64xf32, ...>)
    ```
  }];
}

def PosencMathToIntrinsicsPass : Pass<"posenc-math-to-intrinsics"> {
  let summary = "Convert operations of math that are instructions to LLVM intrinsics";
  let description = [{
    Input: `absf`, `ceil`, `copysign`, `floor`, `round`, `roundeven` and `sqrt` of
    f32 and f64, for which `convert-gpu-to-nvvm` would call libdevice. Output:
    calls of LLVM's intrinsics. Left alone: all other operations.

    ```mlir
    func.func @f(%x: f32) -> f32 {
      %r = math.sqrt %x : f32
      return %r : f32
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: f32) -> f32 {
      %r = llvm.call_intrinsic "llvm.sqrt.f32"(%x) : (f32) -> f32
      return %r : f32
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def PosencLowerLaunchesPass
    : Pass<"posenc-lower-launches", "::mlir::ModuleOp"> {
  let summary = "Lower kernel launches to calls of the kernel support library";
  let description = [{
    Input: kernels (functions with `posenc.abi`) with `gpu.launch_func`,
    `memref.alloc` and `memref.dealloc`. Output: calls of the kernel support
    library, which launches and allocates on the caller's stream. A kernel takes
    one more argument, the handle of the call that its launches belong to, and
    has the attribute `posenc.launches`. Left alone: other functions.

    ```
    func.func @f(...) attributes {posenc.abi = ...} {
      gpu.launch_func @kernels::@k blocks in ... threads in ... args(...)
    ```
    becomes
    ```
    func.func @f(..., %call: i64) attributes {posenc.abi = ..., posenc.launches} {
      ... store the arguments of the launch to the stack ...
      llvm.call @posenc.enqueue(%call, ...)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PosencUnrollVectorsPass
    : Pass<"posenc-unroll-vectors", "::mlir::ModuleOp"> {
  let summary = "Unroll vectors and legalize types for SPIR-V";
  let description = [{
    Input: a module with a `gpu.module` of kernels. Output: the kernels alone, on
    scalars only, so that upstream's conversions to SPIR-V apply. Memory is
    buffers of 32-bit words; bf16 and f16 are integer arithmetic; constants are a
    buffer of the module; scalar arguments are words of the push constants. The
    attribute `posenc.kernel_type` is the type of a kernel before the pass and
    `posenc.kernel_constants` has the constants; SpirvKernels.h
    documents how to launch it. Left alone: nothing; a kernel that cannot be
    converted is an error.

    SPIR-V does not say whether its Fma rounds once. Unless `fused-fma` promises
    that the device does so, a fused multiply-add is emulated with products and
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
  let summary = "Forbid contractions, and give push constants no binding";
  let description = [{
    Input: `spirv.module`s of upstream's conversions. Output: sums and products
    have the decoration NoContraction, so that each rounds on its own, in the
    order given, as on other targets; variables in push constants lose the
    binding that `spirv-lower-abi-attrs` gives to every argument. Left alone: all
    other operations.

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

#endif // POSENC_CODEGEN_GPUPASSES_TD
