//===- SpirvCode.h - code for Vulkan devices --------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGET_SPIRVCODE_H
#define POSENC_TARGET_SPIRVCODE_H

#include "posenc/kernel/VulkanCode.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::posenc {

/// The kernels of a module in SPIR-V.
struct SpirvCode {
  /// The words of the SPIR-V module, as they are in a file.
  std::string binary;
  /// A C header with the arguments of each kernel (SpirvKernels.h) and the
  /// constants that kernels read.
  std::string header;
};

/// Compiles the GPU kernels of a module at any stage before `vector`, which is
/// lowered in place. Functions without kernels are removed with a warning.
/// Returns nullopt after an error diagnostic, also if no function is left.
/// `prefix` is that of the names in the header.
std::optional<SpirvCode> generateSpirvCode(ModuleOp module,
                                           llvm::StringRef prefix);

/// Compiles a module of launches and kernels, without changing it, to the
/// Vulkan code of a library. Returns nullopt after an error diagnostic. The
/// format is that of posenc/kernel/VulkanCode.h; SpirvKernels.h describes how
/// arguments are passed.
std::optional<std::vector<uint32_t>> generateVulkanCode(ModuleOp module);

/// The bytes of the SPIR-V module in it.
llvm::StringRef getSpirvBytes(llvm::ArrayRef<uint32_t> vulkanCode);

} // namespace mlir::posenc

#endif // POSENC_TARGET_SPIRVCODE_H
