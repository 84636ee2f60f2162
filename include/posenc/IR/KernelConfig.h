//===- KernelConfig.h - attributes of kernels -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_KERNELCONFIG_H
#define POSENC_IR_KERNELCONFIG_H

#include "posenc/IR/Posenc.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace mlir::posenc {

/// Returns the C signature of a function; null if it is not a kernel.
AbiAttr getAbi(Operation *function);

/// The parameters of `#posenc.kernel`, which ODS documents.
struct KernelConfig {
  TasksBy tasksBy = TasksBy::Outputs;
  bool hasTasks = false;
  ArrayRef<bool> phases;
  bool isMeasured = false;
  int64_t sharedBytes = 0;
  ArrayRef<int64_t> scratchBytes;
  bool hasWorkspace = false;
  bool hasLaunches = false;
  /// Null if there are none.
  ArrayAttr assertions;
};

/// Returns `posenc.kernel` of a function, or the defaults. Lists have the
/// lifetime of the context.
KernelConfig getKernelConfig(Operation *function);

/// Changes parameters of `posenc.kernel` of a function.
void updateKernelConfig(Operation *function,
                        llvm::function_ref<void(KernelConfig &)> update);

/// Sets one parameter of `posenc.kernel` of a function.
template <typename FieldTy, typename ValueTy>
void updateKernelConfig(Operation *function, FieldTy KernelConfig::*field,
                        ValueTy value) {
  updateKernelConfig(function,
                     [=](KernelConfig &config) { config.*field = value; });
}

/// Returns `posenc.gpu` of a module, or the defaults.
GpuAttr getGpu(Operation *module);

/// Returns the bytes of stack that a function of the module may need.
std::optional<int64_t> getStackLimit(Operation *module);

} // namespace mlir::posenc

#endif // POSENC_IR_KERNELCONFIG_H
