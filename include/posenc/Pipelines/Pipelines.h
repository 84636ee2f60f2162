//===- Pipelines.h - pipelines from posenc to a target ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_PIPELINES_PIPELINES_H
#define POSENC_PIPELINES_PIPELINES_H

#include "posenc/Codegen/Passes.h"
#include "posenc/TargetInfo/CudaTarget.h"
#include "posenc/TargetInfo/Tuning.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir::posenc {

/// Options of `posenc-to-cpu`, which passes of the same option names receive.
struct PosencToCPUOptions : PassPipelineOptions<PosencToCPUOptions> {
  Option<unsigned> vectorBytes{
      *this, "vector-bytes",
      llvm::cl::desc("Bytes of a hardware vector: 16, 32 or 64"),
      llvm::cl::init(32)};
  Option<bool> nativeBF16{
      *this, "native-bf16",
      llvm::cl::desc("Leave conversions from f32 to bf16 and bf16 dot products "
                     "to the backend (needs AVX512-BF16)"),
      llvm::cl::init(false)};
  Option<bool> bf16Dots{
      *this, "bf16-dots",
      llvm::cl::desc("Compute bf16 contractions and attention with bf16 dot "
                     "products (VDPBF16PS)"),
      llvm::cl::init(false)};
  Option<bool> amxBF16{
      *this, "amx-bf16",
      llvm::cl::desc("Compute bf16 dot products with AMX-BF16, and leave its "
                     "tiles to the backend"),
      llvm::cl::init(false)};
  Option<bool> int8Dots{
      *this, "int8-dots",
      llvm::cl::desc("Compute products of integers of 8 bits with dot products "
                     "of bytes (AVX512-VNNI)"),
      llvm::cl::init(false)};
  Option<bool> amxInt8{
      *this, "amx-int8",
      llvm::cl::desc(
          "Compute these products with AMX-INT8, and leave its tiles to the "
          "backend"),
      llvm::cl::init(false)};
  Option<std::string> schedule{
      *this, "schedule",
      llvm::cl::desc("File with a transform.named_sequence @__transform_main "
                     "that tiles operations before the default tiling"),
      llvm::cl::init("")};
#define POSENC_TUNING(MEMBER, NAME, FLAG, INITIAL, MIN, MAX, MULTIPLE, HELP,   \
                      ...)                                                     \
  Option<uint64_t> MEMBER{*this, FLAG, llvm::cl::desc(HELP),                   \
                          llvm::cl::init(uint64_t(INITIAL))};
#include "posenc/TargetInfo/Tuning.def"
};

/// Lowers posenc on tensors to linalg on tensors.
void buildPosencToLinalgPipeline(OpPassManager &manager);

/// Fuses posenc on tensors and gives public functions their C signatures. All
/// targets start with these passes, so that the signatures of a function and
/// the operations that it is lowered from are the same on CPUs and on GPUs.
/// Without `hasAssertions`, those on elements of tensors are left out.
void buildPosencToKernelsPipeline(OpPassManager &manager,
                                  bool hasAssertions = true);

/// Lowers posenc and linalg on tensors to loops over linalg tiles, on tensors.
void buildPosencToTiledPipeline(OpPassManager &manager,
                                const PosencToCPUOptions &options);

/// Lowers tiles on tensors to scf and vector on memrefs.
void buildTiledToVectorPipeline(OpPassManager &manager,
                                const PosencToCPUOptions &options);

/// Lowers scf and vector on memrefs to the LLVM dialect.
void buildVectorToLLVMPipeline(OpPassManager &manager,
                               const PosencToCPUOptions &options);

/// Options of `posenc-to-nvvm`.
struct PosencToNVVMOptions : PassPipelineOptions<PosencToNVVMOptions> {
  Option<std::string> chip{*this, "chip",
                           llvm::cl::desc("GPU architecture, e.g. sm_90a"),
                           llvm::cl::init("sm_80")};
  Option<std::string> features{
      *this, "features",
      llvm::cl::desc("PTX version, e.g. +ptx80 (default: the lowest that "
                     "supports the architecture)"),
      llvm::cl::init("")};
};

/// Options of `posenc-to-spirv`.
struct PosencToSPIRVOptions : PassPipelineOptions<PosencToSPIRVOptions> {
  Option<bool> fusedFma{*this, "fused-fma",
                        llvm::cl::desc("The device's Fma is fused: it rounds "
                                       "once"),
                        llvm::cl::init(false)};
};

/// The parameters of `#posenc.gpu` say what kernels for GPUs may use. ODS
/// documents them, and the defaults are those of Vulkan.
using GpuFeatures = PosencAttachGpuPassOptions;

/// Returns what the kernels of a library for the NVIDIA GPUs may use.
GpuFeatures getGpuFeatures(ArrayRef<CudaTarget> gpus);

/// Lowers posenc on tensors to launches of GPU kernels. Functions that cannot
/// run on a GPU are removed.
void buildPosencToGpuPipeline(OpPassManager &manager,
                              const GpuFeatures &features);

/// The two parts of buildPosencToGpuPipeline: the selection of the functions
/// that can run on a GPU, and the kernels of these, which for attention are
/// large. The first part attaches `posenc.gpu` to the module.
void buildPosencToGpuLoopsPipeline(OpPassManager &manager,
                                   const GpuFeatures &features);
void buildGpuLoopsToKernelsPipeline(OpPassManager &manager,
                                    const GpuFeatures &features);

/// Lowers GPU kernels to the NVVM dialect.
void buildGpuToNVVMPipeline(OpPassManager &manager,
                            const PosencToNVVMOptions &options);

/// Lowers GPU kernels to SPIR-V for Vulkan; see SpirvKernels.h. Not defined if
/// POSENC_ENABLE_VULKAN is off.
void buildGpuToSPIRVPipeline(OpPassManager &manager,
                             const PosencToSPIRVOptions &options);

/// Registers `posenc-to-linalg`, `posenc-to-cpu`, `posenc-to-nvvm` and, unless
/// POSENC_ENABLE_VULKAN is off, `posenc-to-spirv`.
void registerPipelines();

/// Runs passes that lower code, and verifies the module once, after the last
/// one. Verifying vectors after each pass takes a fifth of the time of a
/// compilation; builds with assertions and posenc-opt do so.
LogicalResult runUnverified(PassManager &manager, ModuleOp module);

} // namespace mlir::posenc

#endif // POSENC_PIPELINES_PIPELINES_H
