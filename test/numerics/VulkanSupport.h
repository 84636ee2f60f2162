//===- VulkanSupport.h - checks for a Vulkan device -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_NUMERICS_VULKANSUPPORT_H
#define POSENC_TEST_NUMERICS_VULKANSUPPORT_H

#include "posenc/runtime/vulkan.h"

#include <string>

namespace posenc::test {

/// Returns why kernels cannot run on the first device, or an empty string if
/// they can.
inline std::string whyNoVulkan() {
  uint32_t count = 0;
  posenc_vulkan_facts facts;
  if (posenc_vulkan_count_devices(&count))
    return posenc_last_error();
  if (!count)
    return "no Vulkan device";
  if (posenc_vulkan_query_device(0, &facts))
    return posenc_last_error();
  if (!facts.int64 || !facts.float64)
    return std::string(facts.name) + " supports no i64 or no f64";
  return "";
}

} // namespace posenc::test

#endif // POSENC_TEST_NUMERICS_VULKANSUPPORT_H
