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

defvar Posenc_GpuDialects = [
  "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
  "::mlir::bufferization::BufferizationDialect", "::mlir::func::FuncDialect",
  "::mlir::gpu::GPUDialect", "::mlir::linalg::LinalgDialect",
  "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
  "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
  "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
  "::mlir::vector::VectorDialect"];

class Posenc_ToGpuPass<string flag> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = Posenc_GpuDialects;
}

def PosencAttachGpuPass
    : Pass<"posenc-attach-gpu", "::mlir::ModuleOp"> {
  let summary = "Attach to a module what its GPU kernels may use";
  let description = [{
    Input: a module. Output: the same module with `posenc.gpu`, which later passes
    read. Left alone: all operations.

    ```mlir
    module {
    }
    ```
    becomes, with `functions` and `attention`,
    ```mlir
    module attributes {posenc.gpu = #posenc.gpu<functions = true, attention = true>} {
    }
    ```
  }];
  let options = [
    Option<"functions", "functions", "bool", /*default=*/"false",
           "Divisions and math functions give the bits of the CPU">,
    Option<"attention", "attention", "bool", /*default=*/"false",
           "Attention has kernels">,
    Option<"warpgroups", "warpgroups", "bool", /*default=*/"false",
           "Attention has kernels for sm_90a, too">,
    Option<"smallSharedMemory", "small-shared-memory", "bool", /*default=*/"false",
           "Multiprocessors have 100 KiB of shared memory">];
  let dependentDialects = ["::mlir::posenc::PosencDialect"];
}

def PosencSelectGpuKernelsPass
    : Pass<"posenc-select-gpu-kernels", "::mlir::ModuleOp"> {
  let summary = "Remove functions that have no GPU kernels";
  let description = [{
    Input: a module of kernels on memrefs. Output: the same module without the
    functions that have operations without GPU kernels. There are GPU kernels for
    sincos, rotate, rope, sinusoidal, copies, elementwise linalg operations and,
    with `attention` of `posenc.gpu`, attention; with `functions`, for loops over
    rows, divisions and math functions, too. The pass warns about each kernel that
    it removes, and says why. Left alone: functions whose operations all have GPU
    kernels.

    ```
    func.func @rope(...) { posenc.rope ... }
    func.func @append(...) { posenc.kv_append ... }
    ```
    becomes
    ```
    func.func @rope(...) { posenc.rope ... }
    ```
  }];
}

def ConvertPosencRowsToGpuPass
    : Posenc_ToGpuPass<"convert-posenc-rows-to-gpu"> {
  let summary = "Convert loops over rows and reductions to GPU kernels";
  let description = [{
    Input: `scf.forall` on memrefs whose iterations consist of linalg operations,
    ropes, copies and buffers of bounded size, and reductions on memrefs. Output:
    `gpu.func` and their launches. A warp or a block executes an iteration, or
    reduces a row; the buffers of an iteration are in shared memory. The order of
    a sum follows from the static sizes of the operation. Left alone: all other
    operations, and loops that contain operations without a form in a kernel.

    ```
    scf.forall (%i) in (%n) {
      %s = memref.alloc() : memref<1xf32>
      linalg.reduce { arith.addf } ins(%row : ...) outs(%s : ...) dimensions = [1]
      linalg.generic ins(%row, %s : ...) outs(%result : ...) { arith.divf }
    }
    ```
    becomes
    ```
    gpu.launch_func @kernels::@f_rows blocks in (%n, ...) threads in (...) ...
    ```
  }];
}

def PosencNestAttentionPass
    : Posenc_ToGpuPass<"posenc-nest-attention"> {
  let summary = "Convert attention on memrefs to loops over tiles for GPUs";
  let description = [{
    Input: `posenc.attention` on memrefs. Output: the loops of
    `posenc-decompose-attention` on tensors of the same memory, with the tiles of
    the GPU's kernels, whose tiles of keys start at multiples of their size. Keys
    are rotated beforehand by `posenc.rope`, unless they have lengths, pages, a
    norm, or another type than queries, or are ragged without positions; other
    rotations become `posenc.sincos` before the loops and `posenc.rotate` inside.
    Left alone: attention without a GPU kernel.

    With `warpgroups` of `posenc.gpu`, attention that has a kernel for sm_90a has
    two such loops. Those with the attribute `posenc.chip = #posenc.chip<"sm_90a">`
    run if `@posenc_runs_on` returns true on the host, and if all rows are aligned
    to 16 bytes.

    ```
    posenc.attention causal ins(%q, %k, %v : memref<...>, ...) outs(%o : memref<...>)
    ```
    becomes
    ```
    %query = bufferization.to_tensor %q restrict : memref<...> to tensor<...>
    %r = scf.forall (%batch, %head, %tile) in ... {
      %state:3 = scf.for %key = ... {
        posenc.online_attention causal ins(...) outs(...)
      }
    }
    bufferization.materialize_in_destination %r in restrict writable %o
    ```
  }];
}

def ConvertPosencAttentionToGpuPass
    : Posenc_ToGpuPass<"convert-posenc-attention-to-gpu"> {
  let summary = "Convert loops over tiles of attention to GPU kernels";
  let description = [{
    Input: the loops of `posenc-nest-attention`. Output: launches of a `gpu.func`
    whose blocks compute one iteration of the `scf.forall` each; another kernel,
    which reads one element at a time, is launched if rows of the operands are not
    aligned to 16 bytes. Queries, and one or two tiles of keys and values, are in
    shared memory; scores and accumulators are fragments of `mma.sync` in
    registers. f32 and f64 have the same fragments, and fused multiply-adds
    instead. Regions are evaluated for each element of a fragment.

    Loops for sm_90a become a kernel with the same attribute `posenc.chip`. A
    warpgroup of it copies tiles of keys and values by tensor maps to a ring of
    stages, and others multiply them by `wgmma`.

    Left alone: all other operations.

    ```
    %r = scf.forall ... { ... posenc.online_attention ... }
    ```
    becomes
    ```
    gpu.launch_func @kernels::@f_attention blocks in (%blocks, %c1, %c1)
      threads in (%c128, %c1, %c1) dynamic_shared_memory_size %bytes args(...)
    ```
  }];
  let dependentDialects =
      !listconcat(Posenc_GpuDialects, ["::mlir::nvgpu::NVGPUDialect"]);
}

def ConvertPosencRopeToGpuPass
    : Posenc_ToGpuPass<"convert-posenc-rope-to-gpu"> {
  let summary = "Convert rotate and rope on memrefs to GPU kernels";
  let description = [{
    Input: `posenc.rotate` and `posenc.rope` on memrefs. Output: each becomes a
    launch of a `gpu.func` in `gpu.module @kernels`. A block processes all rows of
    all tensors at one position, or at several positions if there are few rows.
    Its threads load 16 bytes each, then compute the cos and sin that the rows
    share, with the same bits as on the CPU. Both lanes of a pair are in one
    thread, so a destination may be its input. If addresses or strides are not
    multiples of 16 bytes, a second kernel with single-element accesses is
    launched instead. Left alone: all other operations.

    The code of a thread consists of linalg operations on views of its lanes, as
    in `posenc-decompose-rotations`; `posenc-vectorize-tiles` and
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
  let summary = "Replace scratch memory of a thread by vectors";
  let description = [{
    Input: a `memref.alloca` that is written by one `vector.store` and read only
    by later `vector.load`s of the same type. Output: uses of the stored vector,
    without the memory. Left alone: all other memory.

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
    Output: one access per element, since a GPU faults on unaligned vector
    accesses. Left alone: accesses with an alignment.

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

def PosencCanonicalizeKernelsPass
    : Pass<"posenc-canonicalize-kernels", "::mlir::ModuleOp"> {
  let summary = "Canonicalize kernels whose loops carry many values";
  let description = [{
    Input: kernels of any size. Output: the result of `canonicalize` without three
    of its patterns, which take time quadratic in the number of values that a loop
    or branch carries. Left alone: carried values that never change, are equal to
    others, or are unused. On the way to SPIR-V, `canonicalize` runs again later.

    ```
    %r:2 = scf.for ... iter_args(%a = %x, %b = %x) {
      %c = arith.addi %a, %zero
      scf.yield %c, %c
    }
    ```
    becomes
    ```
    %r:2 = scf.for ... iter_args(%a = %x, %b = %x) {
      scf.yield %a, %a
    }
    ```
  }];
}

def ConvertPosencSinusoidalToGpuPass
    : Posenc_ToGpuPass<"convert-posenc-sinusoidal-to-gpu"> {
  let summary = "Convert sincos and sinusoidal on memrefs to GPU kernels";
  let description = [{
    Input: `posenc.sincos` and `posenc.sinusoidal` on memrefs. Output: each
    becomes a launch of a `gpu.func`. A thread writes 16 bytes of each row of a
    run of consecutive positions (32, or 64 for bf16; 16 for f64). It computes the
    run by angle addition from a base position, with the same bits as on the CPU;
    f64 uses the exact phase of each position. Left alone: all other operations.

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
    memrefs. Output: each becomes a launch of a `gpu.func` in which a thread
    computes one element of each output. Left alone: reductions and contractions.

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
  let summary = "Convert math operations with PTX instructions to LLVM intrinsics";
  let description = [{
    Input: `absf`, `ceil`, `copysign`, `floor`, `round`, `roundeven` and `sqrt` of
    the math dialect and `maxnumf` and `minnumf` of the arith dialect, on f32 and
    f64, for which `convert-gpu-to-nvvm` would call libdevice. Output:
    `llvm.call_intrinsic`. Left alone: all other operations.

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

def PosencDeclareSharedMemoryPass
    : Pass<"posenc-declare-shared-memory", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Declare the dynamic shared memory of kernels";
  let description = [{
    Input: kernels after `convert-gpu-to-nvvm`, which lowers
    `gpu.dynamic_shared_memory` to an internal global without elements. Output:
    an external global, which becomes `.extern .shared` in PTX: the memory that
    the launch asks for. LLVM would place an internal one in static shared
    memory, as one byte. Left alone: other globals.

    ```
    llvm.mlir.global internal @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
    ```
    becomes
    ```
    llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
    ```
  }];
}

def PosencLowerTensorMapsPass
    : Pass<"posenc-lower-tensor-maps", "::mlir::ModuleOp"> {
  let summary = "Lower arguments that are tensor maps to parameters by value";
  let description = [{
    Runs before and after the conversion of kernels by `convert-gpu-to-nvvm`,
    which loses attributes of arguments. Input: kernels with arguments of type
    `!nvgpu.tensormap.descriptor`, and their launches. Output: pointers, and then
    pointers to parameters of 128 bytes, constant over the grid, which bulk copies
    (TMA) read. In between, `nvgpu.tensor_maps` has their positions. On the host,
    `posenc-lower-launches` lowers the results of `nvgpu.tma.create.descriptor`
    that are passed. Left alone: other arguments.

    ```
    gpu.func @k(%map: !nvgpu.tensormap.descriptor<...>) kernel {
      %pointer = builtin.unrealized_conversion_cast %map : !nvgpu.tensormap.descriptor<...> to !llvm.ptr
    ```
    becomes
    ```
    llvm.func @k(%pointer: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<16 x i64>, nvvm.grid_constant}) attributes {nvvm.kernel, ...} {
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::nvgpu::NVGPUDialect"];
}

def PosencLowerLaunchesPass
    : Pass<"posenc-lower-launches", "::mlir::ModuleOp"> {
  let summary = "Lower kernel launches to calls of the kernel support library";
  let description = [{
    Input: kernels (functions with `posenc.abi`) with `gpu.launch_func`,
    `memref.alloc` and `nvgpu.tma.create.descriptor`. Output: calls of the kernel
    support library, which launches on the caller's stream. A kernel takes one
    more argument, the handle of the call that its launches belong to, and has
    `launches` in `posenc.kernel`. Allocations become parts of the caller's
    workspace (`workspace`), so their sizes must follow from those of tensors. A
    tensor takes over the memory of an earlier one with the same
    size that no later launch uses. The dynamic shared memory of a launch
    must be a constant: the library asks for the largest one of a kernel's
    launches when it loads the kernel. A tensor map is encoded by the driver in
    each call: its tensor is a strided memref, its box constant. A call of
    `@posenc_runs_on` asks the library whether the device has exactly the
    architecture that its argument says, 90 for sm_90a. Left alone: other
    functions.

    ```
    func.func @f(...) attributes {posenc.abi = ...} {
      gpu.launch_func @kernels::@k blocks in ... threads in ... args(...)
    ```
    becomes
    ```
    func.func @f(..., %call: i64) attributes {posenc.abi = ..., posenc.kernel = #posenc.kernel<launches = true>} {
      ... store the arguments of the launch to the stack ...
      llvm.call @posenc.enqueue(%call, ...)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect"];
}

#endif // POSENC_CODEGEN_GPUPASSES_TD
