//===- VulkanAbsent.cpp - builds without Vulkan ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes the place of the other Vulkan files if POSENC_ENABLE_VULKAN is off.
// Functions that would make an object fail, so the others only see NULL.
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "VulkanProgram.h"

using namespace posenc::runtime;

struct posenc_vulkan_program {};

VulkanPrograms::VulkanPrograms() = default;
VulkanPrograms::~VulkanPrograms() = default;

static posenc_status failAbsent() {
  return fail(POSENC_UNSUPPORTED, "this runtime was built without Vulkan "
                                  "(POSENC_ENABLE_VULKAN=OFF)");
}

posenc_status posenc_vulkan_count_devices(uint32_t *count) {
  if (count)
    *count = 0;
  return failAbsent();
}

posenc_status posenc_vulkan_query_device(uint32_t, posenc_vulkan_facts *facts) {
  if (facts)
    *facts = {};
  return failAbsent();
}

posenc_status posenc_vulkan_open(uint32_t, posenc_vulkan_device **out) {
  if (out)
    *out = nullptr;
  return failAbsent();
}

void posenc_vulkan_close(posenc_vulkan_device *) {}

const posenc_vulkan_facts *
posenc_vulkan_device_facts(const posenc_vulkan_device *) {
  return nullptr;
}

posenc_status posenc_vulkan_create_buffer(posenc_vulkan_device *, uint64_t,
                                          posenc_vulkan_buffer **out) {
  if (out)
    *out = nullptr;
  return failAbsent();
}

void posenc_vulkan_destroy_buffer(posenc_vulkan_buffer *) {}

uint64_t posenc_vulkan_buffer_bytes(const posenc_vulkan_buffer *) { return 0; }

posenc_status posenc_vulkan_upload(posenc_vulkan_buffer *, uint64_t,
                                   const void *, uint64_t) {
  return failAbsent();
}

posenc_status posenc_vulkan_download(const posenc_vulkan_buffer *, uint64_t,
                                     void *, uint64_t) {
  return failAbsent();
}

posenc_status posenc_vulkan_call(const posenc_function *, uint32_t,
                                 const posenc_value *, size_t,
                                 const posenc_value *, size_t) {
  return failAbsent();
}

posenc_status posenc_vulkan_create_program(posenc_vulkan_device *,
                                           const posenc_library *,
                                           posenc_vulkan_program **out) {
  if (out)
    *out = nullptr;
  return failAbsent();
}

void posenc_vulkan_destroy_program(posenc_vulkan_program *) {}

posenc_status posenc_vulkan_launch(posenc_vulkan_program *,
                                   const posenc_function *,
                                   const posenc_vulkan_argument *, size_t) {
  return failAbsent();
}

posenc_status posenc_vulkan_configure_program(posenc_vulkan_program *,
                                              posenc_vulkan_observer, void *,
                                              uint32_t) {
  return failAbsent();
}
