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
  let summary = "Leave out the functions that a GPU cannot run yet";
  let description = [{
    Removes the functions on memrefs that do more than the operations with
    kernels for a GPU (sincos, rotate, rope and sinusoidal), copies, and loops of
    linalg that compute each element alone, with a warning for each that is
    public.
  }];
  let options = [
    Option<"functions", "functions", "bool", /*default=*/"false",
           "Keep quotients and functions of math: NVIDIA GPUs compute them with "
           "the bits of the CPU, and not all Vulkan devices do">];
}

def ConvertPosencRopeToGpuPass
    : Posenc_ToGpuPass<"convert-posenc-rope-to-gpu"> {
  let summary = "Convert rotate and rope on memrefs to GPU kernels";
  let description = [{
    An operation becomes a launch of a `gpu.func` in `gpu.module @kernels`. A
    block has a position, or some of few rows, and all its rows of all tensors.
    Its threads load 16 bytes each, then compute the cos and sin that the rows
    share, with the same bits as on the CPU; lanes of a pair are in one thread,
    so that a destination may be its input. Where addresses or strides are no
    multiples of 16 bytes, a second kernel accesses single elements.

    Copies and rotations are linalg on views of a thread's lanes, as
    `posenc-decompose-rotations` emits them; `posenc-vectorize-tiles` and
    `posenc-promote-allocs-to-registers` are to follow.
  }];
}

def PosencPromoteAllocsToRegistersPass
    : Pass<"posenc-promote-allocs-to-registers", "::mlir::ModuleOp"> {
  let summary = "Keep scratch memory of a thread in registers";
  let description = [{
    A `memref.alloca` that one `vector.store` writes, and that is only read by
    `vector.load`s of the same type behind it, is replaced by the vector. Others
    stay as they are.

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
  let summary = "Access elements of vectors that are not known to be aligned";
  let description = [{
    A `vector.load` or `vector.store` without `alignment` in a `gpu.module`
    becomes one for each element.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::vector::VectorDialect"];
}

def ConvertPosencSinusoidalToGpuPass
    : Posenc_ToGpuPass<"convert-posenc-sinusoidal-to-gpu"> {
  let summary = "Convert sincos and sinusoidal on memrefs to GPU kernels";
  let description = [{
    A thread writes 16 bytes of each of 16 rows, whose positions follow each
    other in the grid, and steps from one position to the next as the CPU does.
  }];
}

def ConvertPosencElementsToGpuPass
    : Posenc_ToGpuPass<"convert-posenc-elements-to-gpu"> {
  let summary = "Convert copies and loops of linalg to GPU kernels";
  let description = [{
    What is between the operations of this dialect: a thread has an element of
    each tensor that is written.
  }];
}

def PosencMathToIntrinsicsPass : Pass<"posenc-math-to-intrinsics"> {
  let summary = "Convert instructions of math to calls of LLVM's intrinsics";
  let description = [{
    `absf`, `ceil`, `copysign`, `floor`, `round`, `roundeven` and `sqrt` of f32 and
    f64, which `convert-gpu-to-nvvm` would make calls of libdevice. All else is
    left alone.

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
  let summary = "Turn launches of kernels into calls of the library's own code";
  let description = [{
    A function with `posenc.abi` gets one more argument, the call that its
    launches belong to, and the attribute `posenc.launches`. What it allocates
    is asked for by that call, and given back at the end.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PosencUnrollVectorsPass
    : Pass<"posenc-unroll-vectors", "::mlir::ModuleOp"> {
  let summary = "Bring GPU kernels into a form that converts to SPIR-V";
  let description = [{
    Leaves of a module its kernels alone, and of those no vectors: they come
    from and go to buffers of words, bf16 and f16 are arithmetic on integers,
    constants a buffer of the module, and the arguments that are numbers words
    of push constants. The attribute `posenc.kernel_type` says what a kernel was
    called with, `posenc.kernel_constants` has the constants; `SpirvKernels.h`
    tells how to launch it.

    SPIR-V does not say whether its Fma rounds once. Unless `fused-fma` promises
    that the device does so, products and sums are taken apart so that the
    results are the same.
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
    Sums and products in `spirv.module`s round on their own, in the order given,
    as they do on other targets. Variables that are push constants lose the
    binding that `spirv-lower-abi-attrs` gives to every argument.
  }];
  let dependentDialects = ["::mlir::spirv::SPIRVDialect"];
}

#endif // POSENC_CODEGEN_GPUPASSES_TD
