//===- GpuCode.h - GPU code of a library ------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGET_GPUCODE_H
#define POSENC_TARGET_GPUCODE_H

#include "posenc/Pipelines/Pipelines.h"
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

/// The GPU code of a library.
struct GpuCode {
  /// The functions that launch the kernels, in the LLVM dialect, and with the
  /// signatures that their CPU code has.
  OwningOpRef<ModuleOp> host;
  std::vector<CudaImage> images;
  /// The kernels for Vulkan, in the format of SpirvCode.h; empty if not
  /// requested.
  std::vector<uint32_t> vulkan;
};

/// Lowers a module at any stage before `vector` to launches and kernels.
/// Functions without GPU kernels are removed with a warning; it is an error if
/// none is left.
LogicalResult lowerToGpu(ModuleOp module, const GpuFeatures &features);

/// Compiles the GPU kernels of a module at any stage before `vector`, without
/// changing it. Returns nullopt after an error diagnostic.
std::optional<GpuCode>
generateGpuCode(ModuleOp module, const GpuTargets &targets, bool withCubins);

} // namespace mlir::posenc

#endif // POSENC_TARGET_GPUCODE_H
