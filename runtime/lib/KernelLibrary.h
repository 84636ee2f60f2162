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
  posenc::runtime::SharedObject object; ///< stays empty for code in memory
  std::string text;
  posenc::runtime::Metadata metadata;
  void *setParallelFor = nullptr;
  const void *vulkanCode = nullptr; ///< metadata.vulkanBytes; may be null
  /// Of calls that open a device themselves.
  posenc::runtime::VulkanPrograms vulkan;
};

#endif // POSENC_RUNTIME_LIB_KERNELLIBRARY_H
