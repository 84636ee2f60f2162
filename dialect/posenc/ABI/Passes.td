//===- Passes.td - the C interface -------------------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_ABI_PASSES_TD
#define POSENC_ABI_PASSES_TD

include "mlir/Pass/PassBase.td"

def PosencEmitCInterfacePass
    : Pass<"posenc-emit-c-interface", "::mlir::ModuleOp"> {
  let summary = "Emit the C entry points and metadata of a kernel library";
  let description = [{
    Input: a module in the LLVM dialect whose kernels have `posenc.abi`. Output:
    for each kernel the function `<kernel>.packed.<variant>`, which takes the
    arguments of a call as an array of words (the packed calling convention).
    Unless `entries` is false, the pass also emits the entry points, which call
    the first variant that the CPU supports: `<prefix>_<kernel>` takes plain
    pointers and sizes, `<prefix>_<kernel>_dl` takes DLPack tensors, and
    `__tvm_ffi_<prefix>_<kernel>` takes values of TVM FFI. It emits
    `<prefix>_metadata` and `<prefix>_set_parallel_for` once per library. All
    other functions become internal.

    A library for several targets is linked from one module per target with the
    same kernels. The pass runs on each with its own `variant` and the same
    `cpu-features`; one of them gets the entry points. With `gpu`, kernels with
    `launches` in `posenc.kernel` get `<kernel>.packed.gpu`; with `cuda` also
    `<prefix>_<kernel>_cuda`, which takes DLPack tensors on a GPU and a stream,
    and, if they have `workspace`, `<prefix>_<kernel>_cuda_workspace`;
    with `vulkan-bytes` also `<prefix>_<kernel>_vulkan`, which takes tensors and
    the function that launches kernels. Left alone: the code of the kernels.

    ```
    llvm.func @rope(%x: !llvm.ptr, ...) attributes {posenc.abi = ...} { ... }
    ```
    becomes
    ```
    llvm.func internal @rope(%x: !llvm.ptr, ...) { ... }
    llvm.func @rope.packed.0(%words: !llvm.ptr) -> i32 { ... llvm.call @rope(...) ... }
    llvm.func @posenc_rope(%x: !llvm.ptr, ...) -> i32 { ... }
    llvm.func @posenc_rope_dl(%x: !llvm.ptr, ...) -> i32 { ... }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
  let options = [
    Option<"prefix", "prefix", "std::string", /*default=*/"\"posenc\"",
           "Prefix of the exported symbols">,
    Option<"targets", "targets", "std::string", /*default=*/"\"\"",
           "Names of the targets, for the metadata">,
    ListOption<"cpuFeatures", "cpu-features", "uint64_t",
               "For each variant, best first, the bit set of the CPU features "
               "that it needs, plus 2^32 times the CPU family that it is tuned "
               "for (default: one variant that needs none)">,
    Option<"variant", "variant", "unsigned", /*default=*/"0",
           "Index of the variant of this module's kernels">,
    Option<"gpu", "gpu", "bool", /*default=*/"false",
           "The kernels launch GPU code: they are a variant of their own, whose "
           "entry points take tensors on the GPU">,
    ListOption<"gpuFunctions", "gpu-functions", "std::string",
               "Functions for which another module of the library has GPU code">,
    ListOption<"cudaWorkspaces", "cuda-workspaces", "std::string",
               "Those of them that take a workspace on CUDA devices, for the "
               "metadata">,
    Option<"cuda", "cuda", "bool", /*default=*/"false",
           "The library has kernels for CUDA">,
    Option<"vulkanBytes", "vulkan-bytes", "uint64_t", /*default=*/"0",
           "Bytes of the library's Vulkan kernels; 0 if there are none">,
    Option<"weights", "weights", "std::string", /*default=*/"\"\"",
           "Name of the file with the library's weights, which "
           "`<prefix>_weights_open` maps (default: there is none)">,
    Option<"entries", "entries", "bool", /*default=*/"true",
           "Emit the entry points and the symbols that exist once per library">,
    ListOption<"sharedBytes", "shared-bytes", "int64_t",
               "For each kernel, the maximum over all variants of the bytes that "
               "the tasks of a call share (default: those of this module)">,
    ListOption<"scratchBytes", "scratch-bytes", "int64_t",
               "For each kernel, the maximum over all variants of the workspace "
               "bytes of a task (default: those of this module)">
  ];
}

def PosencExtractWeightsPass
    : Pass<"posenc-extract-weights", "::mlir::ModuleOp"> {
  let summary = "Move large constants out of the code of a module";
  let description = [{
    Input: functions on memrefs, with constant `memref.global`s. Output: large
    ones have no value, and the attribute `posenc.weights` of the module has
    their elements by symbol; `posenc-load-weights` replaces their addresses
    later. Left alone: globals of fewer bytes than `min-bytes`; all of them, if
    together they have at most `max-embedded-bytes`; elements that files of
    weights have no type for, such as i1, and resources that are not there.

    ```
    memref.global "private" constant @w : memref<64x64xf32> = dense<"0x...">
    ```
    becomes
    ```
    module attributes {posenc.weights = {w = dense<"0x..."> : tensor<64x64xf32>}} {
      memref.global "private" constant @w : memref<64x64xf32>
    ```
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect",
                           "::mlir::posenc::PosencDialect"];
  let options = [
    Option<"minBytes", "min-bytes", "int64_t", /*default=*/"4096",
           "Minimum bytes of a constant that leaves the code">,
    Option<"maxEmbeddedBytes", "max-embedded-bytes", "int64_t", /*default=*/"0",
           "Bytes of such constants up to which they all stay in the code">
  ];
}

def PosencLoadWeightsPass : Pass<"posenc-load-weights", "::mlir::ModuleOp"> {
  let summary = "Load the addresses of weights from the table of a library";
  let description = [{
    Input: a module in the LLVM dialect whose attribute `posenc.weights` has the
    numbers of its weights by symbol. Output: the addresses of their globals are
    loaded from the array `posenc.weights.tensors` of pointers, which
    `<prefix>_weights_open` writes, and functions that read weights, or call such
    functions, have the attribute `posenc.weights`. The globals and the attribute
    of the module are removed. Left alone: all other globals.

    ```
    %0 = llvm.mlir.addressof @w : !llvm.ptr
    ```
    becomes
    ```
    %0 = llvm.mlir.addressof @posenc.weights.tensors : !llvm.ptr
    %1 = llvm.getelementptr %0[3] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %2 = llvm.load %1 invariant : !llvm.ptr -> !llvm.ptr
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::posenc::PosencDialect"];
}

def PosencSimplifySizesPass
    : Pass<"posenc-simplify-sizes", "::mlir::ModuleOp"> {
  let summary = "Simplify arithmetic on sizes of tensors";
  let description = [{
    Input: functions on tensors with dynamic sizes, as torch-mlir writes them.
    Output: equal sizes are one value, conditions on sizes that are known are
    constants, `tensor.reshape` is `tensor.collapse_shape` and
    `tensor.expand_shape` where the sizes say how, an index
    `select(size == 1, 0, i)` of a broadcast is `i` where `i` is less than `size`
    anyway, and assertions that always hold, or that entry points check on the
    elements of an input, are erased. Sizes of inputs that must be equal are
    asserted to be equal at the beginning. Left alone: functions without assertions
    and `tensor.reshape`, and those with operations whose sizes entry points could
    not check.

    ```
    %n = tensor.dim %x, %c0 : tensor<?x64xf32>
    %b = arith.muli %n, %c64 : index
    %m = arith.divsi %b, %c64 : index
    %s = tensor.from_elements %m, %c4, %c16 : tensor<3xindex>
    %y = tensor.reshape %x(%s) : (tensor<?x64xf32>, tensor<3xindex>) -> tensor<?x4x16xf32>
    ```
    becomes
    ```
    %n = tensor.dim %x, %c0 : tensor<?x64xf32>
    %y = tensor.expand_shape %x [[0], [1, 2]] output_shape [%n, 4, 16]
      : tensor<?x64xf32> into tensor<?x4x16xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::posenc::PosencDialect", "::mlir::tensor::TensorDialect"
  ];
}

#endif // POSENC_ABI_PASSES_TD
