//===- VulkanCall.cpp - The C interface to functions on Vulkan ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Binding.h"
#include "Error.h"
#include "KernelLibrary.h"
#include "Types.h"
#include "VulkanLaunch.h"

using namespace posenc::runtime;

posenc_status posenc_vulkan_create_program(posenc_vulkan_device *device,
                                           const posenc_library *library,
                                           posenc_vulkan_program **out) {
  if (out)
    *out = nullptr;
  if (!device || !library || !out)
    return fail(POSENC_INVALID_ARGUMENT,
                "posenc_vulkan_create_program: NULL argument");
  return guarded([&] {
    auto created =
        std::make_unique<posenc_vulkan_program>(device->device, *library);
    posenc_status status = created->create();
    if (!status)
      *out = created.release();
    return status;
  });
}

void posenc_vulkan_destroy_program(posenc_vulkan_program *program) {
  delete program;
}

posenc_status posenc_vulkan_configure_program(posenc_vulkan_program *program,
                                              posenc_vulkan_observer observer,
                                              void *ctx, uint32_t max_blocks) {
  if (!program)
    return fail(POSENC_INVALID_ARGUMENT,
                "posenc_vulkan_configure_program: no program");
  program->observer = observer;
  program->observerContext = ctx;
  program->maxBlocks = max_blocks;
  return POSENC_OK;
}

static posenc_status failWithoutCode(const posenc_function &function) {
  return fail(POSENC_UNSUPPORTED, "%s: the library has no code for Vulkan",
              function.name.c_str());
}

posenc_status posenc_vulkan_launch(posenc_vulkan_program *program,
                                   const posenc_function *function,
                                   const posenc_vulkan_argument *arguments,
                                   size_t num_arguments) {
  if (!program || !function || (num_arguments && !arguments))
    return fail(POSENC_INVALID_ARGUMENT, "posenc_vulkan_launch: NULL argument");
  if (function->library != &program->library)
    return fail(POSENC_INVALID_ARGUMENT, "%s: a function of another library",
                function->name.c_str());
  if (!function->vulkanEntry)
    return failWithoutCode(*function);
  return guarded([&] {
    std::lock_guard<std::mutex> lock(program->mutex);
    return VulkanLaunch(*program).call(*function, arguments, num_arguments);
  });
}

VulkanPrograms::VulkanPrograms() = default;
VulkanPrograms::~VulkanPrograms() = default;

posenc_status VulkanPrograms::get(const posenc_library &library, uint32_t index,
                                  posenc_vulkan_program *&out) const {
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<posenc_vulkan_program> &program = programs[index];
  if (!program) {
    std::shared_ptr<VulkanDevice> device;
    if (posenc_status status = VulkanDevice::open(index, device))
      return status;
    auto made = std::make_unique<posenc_vulkan_program>(device, library);
    if (posenc_status status = made->create())
      return status;
    program = std::move(made);
  }
  out = program.get();
  return POSENC_OK;
}

/// Copies the inputs, calls the function and copies the outputs back. Binding
/// has checked the arguments.
static posenc_status runOnDevice(const posenc_function &function,
                                 posenc_vulkan_program &program,
                                 const posenc_value *inputs,
                                 const posenc_value *outputs) {
  size_t numInputs = function.inputs.size();
  size_t count = numInputs + function.outputs.size();
  std::vector<std::unique_ptr<posenc_vulkan_buffer>> buffers(count);
  std::vector<posenc_vulkan_argument> arguments(count);
  auto getValue = [&](size_t i) -> const posenc_value & {
    return i < numInputs ? inputs[i] : outputs[i - numInputs];
  };
  for (size_t i = 0; i < count; ++i) {
    const posenc_value &value = getValue(i);
    const posenc_tensor &tensor = value.tensor;
    arguments[i] = {};
    const posenc_argument &argument =
        i < numInputs ? function.inputs[i] : function.outputs[i - numInputs];
    if (isRealScalar(argument))
      arguments[i].real = value.real;
    else
      arguments[i].scalar = value.scalar;
    if (argument.kind == POSENC_SCALAR)
      continue;
    arguments[i].rank = tensor.rank;
    arguments[i].shape = tensor.shape;
    uint64_t bytes;
    if (!tensorBytes(argument.dtype, tensor.shape, tensor.rank, bytes) ||
        bytes == 0 || argument.isShapeOnly)
      continue;
    // Binding has checked that tensors with the same data are in place.
    for (size_t j = 0; j < i && !arguments[i].buffer; ++j)
      if (buffers[j] && getValue(j).tensor.data == tensor.data &&
          buffers[j]->buffer.size == bytes)
        arguments[i].buffer = buffers[j].get();
    if (arguments[i].buffer)
      continue;
    buffers[i] = std::make_unique<posenc_vulkan_buffer>(program.device);
    VulkanBuffer &buffer = buffers[i]->buffer;
    if (posenc_status status = buffer.create(bytes))
      return status;
    if (i < numInputs)
      if (posenc_status status = buffer.upload(0, tensor.data, bytes))
        return status;
    arguments[i].buffer = buffers[i].get();
  }
  if (posenc_status status =
          posenc_vulkan_launch(&program, &function, arguments.data(), count))
    return status;
  for (size_t i = numInputs; i < count; ++i)
    if (posenc_vulkan_buffer *buffer = arguments[i].buffer)
      if (posenc_status status = buffer->buffer.download(
              0, getValue(i).tensor.data, buffer->buffer.size))
        return status;
  return POSENC_OK;
}

posenc_status posenc_vulkan_call(const posenc_function *function,
                                 uint32_t index, const posenc_value *inputs,
                                 size_t num_inputs, const posenc_value *outputs,
                                 size_t num_outputs) {
  if (!function)
    return fail(POSENC_INVALID_ARGUMENT, "posenc_vulkan_call: no function");
  Binding binding(*function);
  if (posenc_status status =
          binding.bindAll(inputs, num_inputs, outputs, num_outputs))
    return status;
  if (!function->vulkanEntry)
    return failWithoutCode(*function);
  return guarded([&] {
    posenc_vulkan_program *program;
    if (posenc_status status =
            function->library->vulkan.get(*function->library, index, program))
      return status;
    return runOnDevice(*function, *program, inputs, outputs);
  });
}
