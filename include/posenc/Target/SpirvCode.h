//===- SpirvCode.h - kernels for Vulkan devices -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGET_SPIRVCODE_H
#define POSENC_TARGET_SPIRVCODE_H

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
/// library has for Vulkan. Nothing after an error diagnostic. In 32-bit words
/// of the host's order:
///
///   0  "PSNV", as kVulkanMagic
///   1  the version of this form, kVulkanVersion
///   2  how many words there are in all
///   3  the sum of what follows: FNV-1a of 32 bits, a word at a time
///   4  how many words the SPIR-V module has
///   5  how many constants there are
///   6  how many kernels there are
///
/// and then the SPIR-V module, the constants, and for each kernel: the bytes of
/// its name; how many arguments it has, as the host passes them; the name; the
/// arguments, a byte each, where '1', '2', '4' and '8' are tensors of elements
/// of so many bytes, 'i' is an index, 'w' has 32 bits and 'd' has 64. Name and
/// arguments end with zeros up to a whole word. SpirvKernels.h says what a
/// kernel makes of them.
std::optional<std::vector<uint32_t>> generateVulkanCode(ModuleOp module);

/// The bytes of the SPIR-V module in it.
llvm::StringRef getSpirvBytes(llvm::ArrayRef<uint32_t> vulkanCode);

inline constexpr uint32_t kVulkanMagic = 0x564e5350, kVulkanVersion = 1;

} // namespace mlir::posenc

#endif // POSENC_TARGET_SPIRVCODE_H
