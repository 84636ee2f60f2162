//===- KernelLibrary.h - An open kernel library -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_KERNELLIBRARY_H
#define POSENC_RUNTIME_LIB_KERNELLIBRARY_H

#include "SharedObject.h"
#include "Signature.h"
#include "VulkanProgram.h"

struct posenc_library {
  posenc::runtime::SharedObject object; ///< empty for code in memory
  std::string text;                     ///< the metadata as JSON
  posenc::runtime::Metadata metadata;
  void *setParallelFor = nullptr;   ///< X_set_parallel_for; may be null
  const void *vulkanCode = nullptr; ///< metadata.vulkanBytes bytes; may be null
  /// The programs of posenc_vulkan_call(), which opens devices itself.
  posenc::runtime::VulkanPrograms vulkan;
};

#endif // POSENC_RUNTIME_LIB_KERNELLIBRARY_H
