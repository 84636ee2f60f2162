//===- VulkanProgram.h - a module's kernels on Vulkan -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host's part of a function runs on the CPU, as it would for any GPU, on
// addresses that are none: the number of a tensor in the upper bits. A launch
// finds its buffers by them.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_NUMERICS_VULKANPROGRAM_H
#define POSENC_TEST_NUMERICS_VULKANPROGRAM_H

#include "posenc/runtime/Array.h"
#include "posenc/runtime/vulkan.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

#include <map>

namespace posenc::test {

/// An argument of a function: a tensor in memory of its own, or a number.
struct VulkanArgument {
  /// Of a dense array; `alias` is the number of the argument before whose
  /// memory it has, for a destination in place.
  VulkanArgument(const runtime::Array &array, int64_t alias = -1)
      : array(&array), alias(alias) {}
  VulkanArgument(int64_t scalar) : scalar(scalar) {}

  const runtime::Array *array = nullptr;
  int64_t alias = -1, scalar = 0;
  /// Bytes in front of the tensor, and elements behind each row.
  int64_t shift = 0, gap = 0;
};

class VulkanProgram {
public:
  /// Failures are test failures. Ops in `module` that have no kernel for a GPU
  /// leave their functions out.
  explicit VulkanProgram(const std::string &module, bool fusedFma = false);
  ~VulkanProgram();

  /// Why there is nothing to run on; empty if there is.
  static std::string whyNot();

  /// Runs the function, whose last arguments are its outputs, and reads those
  /// back: the arrays are filled. False after a test failure.
  bool call(const std::string &function,
            const std::vector<VulkanArgument> &arguments);

  /// The kernels launched by the last call.
  const std::vector<std::string> &launched() const { return names; }
  /// At most so many blocks at once; for tests.
  uint32_t mostBlocks = 0;

private:
  struct Buffer {
    posenc_vulkan_buffer *handle = nullptr;
    int64_t bytes = 0;
  };
  struct Kernel;
  static void enqueue(int64_t call, const char *const *kernel, int64_t blocks,
                      int64_t threads, void *const *places);
  bool launch(const std::string &name, int64_t blocks, void *const *places);
  bool build(bool fusedFma);
  bool buildKernels(mlir::ModuleOp module, bool fusedFma);
  bool buildHost(mlir::ModuleOp module);
  bool createKernel(const std::string &name, mlir::FunctionType type);

  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> hostModule;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  posenc_vulkan_device *device = nullptr;
  posenc_vulkan_module *module = nullptr;
  posenc_vulkan_buffer *constants = nullptr;
  std::map<std::string, Kernel> kernels;
  std::vector<Buffer> buffers;
  std::vector<std::string> names;
  bool failed = false;
};

} // namespace posenc::test

#endif // POSENC_TEST_NUMERICS_VULKANPROGRAM_H
