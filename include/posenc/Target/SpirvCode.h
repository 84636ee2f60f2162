//===- SpirvCode.h - kernels for Vulkan devices -----------------*- C++ -*-===//
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
  /// A C header: what each kernel is called with (SpirvKernels.h), and the
  /// constants that they read.
  std::string header;
};

/// Compiles what a module at any stage before `vector` has for GPUs; the module
/// is lowered in place. Functions without kernels are left out with a warning;
/// nothing after an error diagnostic, as when none is left. `prefix` begins the
/// names in the header.
std::optional<SpirvCode> generateSpirvCode(ModuleOp module,
                                           llvm::StringRef prefix);

/// Compiles a module of launches and kernels, which stays as it is, to what a
/// library has for Vulkan. Nothing after an error diagnostic. In the
/// format of posenc/kernel/VulkanCode.h; SpirvKernels.h says what a kernel
/// makes of the arguments.
std::optional<std::vector<uint32_t>> generateVulkanCode(ModuleOp module);

/// The bytes of the SPIR-V module in it.
llvm::StringRef getSpirvBytes(llvm::ArrayRef<uint32_t> vulkanCode);

} // namespace mlir::posenc

#endif // POSENC_TARGET_SPIRVCODE_H
