//===- VulkanProgram.h - a module's functions on Vulkan ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host's part of a function runs on the CPU, as it does for any GPU, on
// addresses that are none: they have the number of a tensor in their upper
// bits. A launch finds its buffers by them.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUN_VULKANPROGRAM_H
#define POSENC_RUN_VULKANPROGRAM_H

#include "posenc/runtime/vulkan.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mlir::posenc {

/// An argument of a call: a number, or a tensor that gets memory of its own.
struct VulkanArgument {
  VulkanArgument(const posenc_value &value) : value(value) {}

  posenc_value value;
  /// For a destination in place: the argument before whose memory it is.
  std::optional<size_t> alias;
  /// Bytes in front of the tensor, and elements behind each row.
  int64_t shift = 0, gap = 0;
};

class VulkanProgram {
public:
  /// Compiles the functions of a module that a GPU has kernels for, for the
  /// device of this number. The module is consumed; what it is short of is
  /// told by diagnostics as well.
  static llvm::Expected<std::unique_ptr<VulkanProgram>> create(ModuleOp module,
                                                               uint32_t device);
  ~VulkanProgram();

  /// Runs the function on its inputs and outputs, in that order, and reads back
  /// what the tensors have become. Shapes are taken as they are.
  llvm::Error call(StringRef function, ArrayRef<VulkanArgument> arguments);

  /// The kernels that the last call has launched.
  ArrayRef<std::string> getLaunched() const;
  /// What the memory of an argument has become, its gaps included.
  ArrayRef<char> getMemory(size_t argument) const;
  /// Launches at most so many blocks at once.
  void setMostBlocks(uint32_t count);

private:
  struct Impl;
  explicit VulkanProgram(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace mlir::posenc

#endif // POSENC_RUN_VULKANPROGRAM_H
