//===- GpuCode.h - what a library has for GPUs ------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGET_GPUCODE_H
#define POSENC_TARGET_GPUCODE_H

#include "posenc/Target/CudaCode.h"

#include "mlir/IR/OwningOpRef.h"

namespace mlir::posenc {

/// The GPUs that there is to be code for.
struct GpuTargets {
  std::vector<CudaTarget> cuda;
  bool vulkan = false;

  bool empty() const { return cuda.empty() && !vulkan; }
};

/// The name of the target for Vulkan, which is one for all devices.
inline constexpr llvm::StringLiteral kVulkanTarget = "vulkan";

/// What a library has of a module for GPUs.
struct GpuCode {
  /// The functions that launch the kernels, in the LLVM dialect, and with the
  /// signatures that their CPU code has.
  OwningOpRef<ModuleOp> host;
  std::vector<CudaImage> images;
  /// The kernels for Vulkan, as SpirvCode.h describes them; empty if not asked
  /// for.
  std::vector<uint32_t> vulkan;
};

/// Lowers a module at any stage before `vector` to launches and kernels.
/// Functions without kernels are left out with a warning; if none is left, that
/// is an error. With `hasFunctions`, kernels may have quotients and functions of
/// math, for which there is no SPIR-V.
LogicalResult lowerToGpu(ModuleOp module, bool hasFunctions);

/// Compiles what a module at any stage before `vector` has for GPUs; the module
/// stays as it is. Nothing after an error diagnostic.
std::optional<GpuCode>
generateGpuCode(ModuleOp module, const GpuTargets &targets, bool withCubins);

} // namespace mlir::posenc

#endif // POSENC_TARGET_GPUCODE_H
