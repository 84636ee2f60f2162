//===- SpirvCodeAbsent.cpp - builds without Vulkan ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes the place of SpirvCode.cpp if POSENC_ENABLE_VULKAN is off.
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/SpirvCode.h"

using namespace mlir;
using namespace mlir::posenc;

static void refuse(ModuleOp module) {
  module.emitError("cannot compile for the target 'vulkan': Posenc was built "
                   "without it; build it with -DPOSENC_ENABLE_VULKAN=ON");
}

std::optional<SpirvCode> mlir::posenc::generateSpirvCode(ModuleOp module,
                                                         StringRef prefix) {
  refuse(module);
  return std::nullopt;
}

std::optional<std::vector<uint32_t>>
mlir::posenc::generateVulkanCode(ModuleOp module) {
  refuse(module);
  return std::nullopt;
}

StringRef mlir::posenc::getSpirvBytes(ArrayRef<uint32_t> vulkanCode) {
  return StringRef();
}
