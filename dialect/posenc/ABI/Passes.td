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
  let summary = "Emit the C entries and metadata of a kernel library";
  let description = [{
    For each function with `posenc.abi` in the LLVM dialect, emits its packed
    form `<function>.packed.<variant>`, which takes the arguments of a call as
    an array of words. Unless `entries` is false, emits also what calls the
    first variant that the CPU can run: `<prefix>_<function>`, which takes plain
    pointers and sizes, `<prefix>_<function>_dl`, which takes DLPack tensors,
    and `__tvm_ffi_<prefix>_<function>`, which takes values of TVM FFI; and once
    `<prefix>_metadata` and `<prefix>_set_parallel_for`. All else becomes
    internal.

    A library for several targets is made of one module for each, with the same
    functions: the pass gives each its own `variant`, all of them the same
    `cpu-features`, and one of them the entries; then the modules are linked.
    With `gpu`, for functions with `posenc.launches`, what is emitted is
    `<function>.packed.gpu`; with `cuda`, `<prefix>_<function>_cuda`, which takes
    DLPack tensors on a GPU and a stream; and for Vulkan
    `<prefix>_<function>_vulkan`, which takes them and who launches.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
  let options = [
    Option<"prefix", "prefix", "std::string", /*default=*/"\"posenc\"",
           "Prefix of the exported symbols">,
    Option<"targets", "targets", "std::string", /*default=*/"\"\"",
           "Names of the targets, for the metadata">,
    ListOption<"cpuFeatures", "cpu-features", "uint64_t",
               "For each variant, best first, the bit set of the CPU features "
               "that it needs, and 2^32 times the family of CPUs that it is "
               "tuned for (default: one that needs none)">,
    Option<"variant", "variant", "unsigned", /*default=*/"0",
           "Which of the variants the kernels of this module are">,
    Option<"gpu", "gpu", "bool", /*default=*/"false",
           "The kernels launch others on a GPU: they are a variant of their own, "
           "whose entries take tensors there">,
    ListOption<"gpuFunctions", "gpu-functions", "std::string",
               "The functions that another module of the library has for GPUs, "
               "for the metadata">,
    Option<"cuda", "cuda", "bool", /*default=*/"false",
           "The library has kernels for CUDA">,
    Option<"vulkanBytes", "vulkan-bytes", "uint64_t", /*default=*/"0",
           "The size of the library's kernels for Vulkan; 0 if there are none">,
    Option<"entries", "entries", "bool", /*default=*/"true",
           "Emit the entries, and what a library has once">,
    ListOption<"sharedBytes", "shared-bytes", "int64_t",
               "For each kernel, the most bytes that the chunks of a call share "
               "in any variant (default: those of this module)">,
    ListOption<"scratchBytes", "scratch-bytes", "int64_t",
               "For each kernel, the most bytes of its workspace that a chunk has "
               "in any variant (default: those of this module)">
  ];
}

#endif // POSENC_ABI_PASSES_TD
