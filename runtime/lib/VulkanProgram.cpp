//===- VulkanProgram.cpp - The programs of a library on Vulkan ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VulkanLaunch.h"

#include "Binding.h"
#include "Dispatch.h"
#include "DlTensor.h"
#include "Error.h"
#include "KernelLibrary.h"
#include "Types.h"
#include "posenc/kernel/CallLayout.h"

#include <algorithm>
#include <cinttypes>
#include <iterator>

using namespace posenc::runtime;

/// The number of address bits that are the offset in a buffer, in bytes.
static constexpr int kOffsetBits = 40;

posenc_vulkan_program::posenc_vulkan_program(
    std::shared_ptr<VulkanDevice> device, const posenc_library &library)
    : library(library), module(device), device(std::move(device)) {}

/// Creates a buffer that contains `words`.
static posenc_status makeBuffer(const std::shared_ptr<VulkanDevice> &device,
                                const uint32_t *words, size_t numWords,
                                std::unique_ptr<posenc_vulkan_buffer> &out) {
  auto made = std::make_unique<posenc_vulkan_buffer>(device);
  posenc_status status = made->buffer.create(4 * numWords);
  if (!status)
    status = made->buffer.upload(0, words, 4 * numWords);
  if (!status)
    out = std::move(made);
  return status;
}

posenc_status posenc_vulkan_program::create() {
  const char *prefix = library.metadata.prefix.c_str();
  if (!library.vulkanCode)
    return fail(POSENC_UNSUPPORTED,
                "the library '%s' has no code for Vulkan: compile it with "
                "--target=vulkan",
                prefix);
  VulkanCode code;
  std::string error;
  const void *words = library.vulkanCode;
  if (toWord(words) % 4 || !code.read(static_cast<const uint32_t *>(words),
                                      library.metadata.vulkanBytes / 4, error))
    return fail(POSENC_BAD_LIBRARY, "%s: %s", prefix, error.c_str());
  if (posenc_status status = module.create(code.spirv, code.numSpirvWords))
    return status;
  for (auto &[name, arguments] : code.kernels)
    kernels[name].arguments = arguments;
  if (code.numConstants)
    if (posenc_status status =
            makeBuffer(device, code.constants, code.numConstants, constants))
      return status;
  constexpr uint32_t zeros[4] = {};
  return makeBuffer(device, zeros, std::size(zeros), emptyBuffer);
}

posenc_status posenc_vulkan_program::compile(const char *name, Kernel &entry) {
  size_t numBuffers = constants ? 1 : 0, numWords = 1;
  for (char letter : entry.arguments) {
    numBuffers += letter >= '1' && letter <= '8';
    numWords += letter == 'd' ? 2 : 1;
  }
  entry.usesPush = numWords <= kMaxPushWords;
  numBuffers += !entry.usesPush;
  auto made = std::make_unique<VulkanKernel>(device);
  posenc_status status =
      made->create(module, name, static_cast<uint32_t>(numBuffers),
                   entry.usesPush ? static_cast<uint32_t>(4 * numWords) : 0);
  if (!status)
    entry.kernel = std::move(made);
  return status;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

posenc_status VulkanLaunch::addIndex(const char *kernel, int64_t value) {
  words.push_back(static_cast<uint32_t>(value));
  if (value == static_cast<int32_t>(value))
    return POSENC_OK;
  return fail(POSENC_UNSUPPORTED,
              "%s: %" PRId64 " is too large for a Vulkan kernel, whose indices "
              "have 32 bits",
              kernel, value);
}

posenc_status VulkanLaunch::addParameters(const char *kernel,
                                          const std::string &letters,
                                          void *const *parameters) {
  auto next = [&] { return *static_cast<const int64_t *>(*parameters++); };
  words.assign(1, 0);
  kernelBuffers.clear();
  for (char letter : letters) {
    int64_t value = next();
    posenc_status status = POSENC_OK;
    if (letter == 'i') {
      status = addIndex(kernel, value);
    } else if (letter == 'w' || letter == 'd') {
      words.push_back(static_cast<uint32_t>(value));
      if (letter == 'd')
        words.push_back(static_cast<uint32_t>(value >> 32));
    } else {
      // A memref of rank 1: the address twice, the offset, the size, the
      // stride.
      next();
      int64_t offset = next();
      next();
      next();
      size_t number = static_cast<uint64_t>(value) >> kOffsetBits;
      if (number > buffers.size())
        return fail(POSENC_KERNEL_FAILED,
                    "%s: an argument is not the address of a buffer", kernel);
      kernelBuffers.push_back(number ? buffers[number - 1]
                                     : program.emptyBuffer.get());
      int64_t byteOffset = value & ((int64_t(1) << kOffsetBits) - 1);
      int64_t bytes = letter - '0';
      status = addIndex(kernel, byteOffset / bytes + offset);
      // checkView() has checked the indices of tensors of the caller.
      bool isTemporary = std::any_of(
          temporaries.begin(), temporaries.end(), [&](const auto &buffer) {
            return buffer.get() == kernelBuffers.back();
          });
      if (!status && isTemporary &&
          kernelBuffers.back()->buffer.size / bytes > INT32_MAX)
        return fail(POSENC_UNSUPPORTED,
                    "%s: an intermediate tensor is too large for a Vulkan "
                    "kernel, whose indices have 32 bits",
                    kernel);
    }
    if (status)
      return status;
  }
  return POSENC_OK;
}

posenc_status VulkanLaunch::launch(const char *name, int64_t blocks,
                                   void *const *parameters) {
  auto it = program.kernels.find(name);
  if (it == program.kernels.end())
    return fail(POSENC_BAD_LIBRARY, "there is no kernel %s", name);
  posenc_vulkan_program::Kernel &entry = it->second;
  if (!entry.kernel)
    if (posenc_status status = program.compile(name, entry))
      return status;
  if (posenc_status status = addParameters(name, entry.arguments, parameters))
    return status;
  if (program.observer)
    program.observer(program.observerContext, name, blocks);
  if (program.constants)
    kernelBuffers.push_back(program.constants.get());
  std::unique_ptr<posenc_vulkan_buffer> wordBuffer;
  if (!entry.usesPush) {
    if (posenc_status status =
            makeBuffer(program.device, words.data(), words.size(), wordBuffer))
      return status;
    kernelBuffers.push_back(wordBuffer.get());
  }
  int64_t maxBlocks = program.device->facts().max_grid[0];
  if (program.maxBlocks)
    maxBlocks = std::min<int64_t>(maxBlocks, program.maxBlocks);
  for (int64_t first = 0; first < blocks; first += maxBlocks) {
    words[0] = static_cast<uint32_t>(first);
    if (wordBuffer)
      if (posenc_status status = wordBuffer->buffer.upload(0, words.data(), 4))
        return status;
    auto numWorkgroups =
        static_cast<uint32_t>(std::min(maxBlocks, blocks - first));
    if (posenc_status status = entry.kernel->run(
            numWorkgroups, kernelBuffers.data(), words.data()))
      return status;
  }
  return POSENC_OK;
}

/// Checks that all elements of a view are in its buffer, which drivers do not
/// check, and that their indices fit in 32 bits. `element` is the size of an
/// element in bytes.
static posenc_status checkView(const posenc_function &function,
                               const posenc_argument &argument,
                               const posenc_vulkan_argument &view,
                               uint64_t element) {
  const char *text[] = {function.name.c_str(), argument.name.c_str()};
  if (view.rank < 0 || view.rank > POSENC_MAX_RANK ||
      (view.rank > 0 && !view.shape))
    return fail(POSENC_INVALID_ARGUMENT, "%s: '%s' has no shape", text[0],
                text[1]);
  // The entry point refuses negative sizes.
  for (int32_t dim = 0; dim < view.rank; ++dim)
    if (view.shape[dim] <= 0)
      return POSENC_OK;
  if (argument.isShapeOnly)
    return POSENC_OK;
  // Elements before and after the one at index 0.
  using Wide = __int128;
  constexpr Wide limit = INT64_MAX;
  Wide first = 0, last = 0, stride = 1;
  bool fits = true;
  for (int32_t dim = view.rank; dim-- > 0 && fits;) {
    Wide size = view.shape[dim];
    Wide reach = (size - 1) * (view.strides ? view.strides[dim] : stride);
    (reach < 0 ? first : last) += reach;
    stride = std::min(stride * size, limit);
    fits = last <= limit && first >= -limit;
  }
  if (!view.buffer)
    return fail(POSENC_INVALID_ARGUMENT, "%s: the buffer of '%s' is NULL",
                text[0], text[1]);
  // A view beyond int64_t is refused as one that begins before its buffer.
  Wide begin = fits ? view.offset + first * element : -1;
  Wide end = fits ? view.offset + (last + 1) * element : 0;
  if (begin < 0 || end > Wide(view.buffer->buffer.size))
    return fail(POSENC_INVALID_ARGUMENT,
                "%s: '%s' goes beyond its buffer of %" PRIu64 " bytes", text[0],
                text[1], view.buffer->buffer.size);
  if (end / element > INT32_MAX)
    return fail(POSENC_UNSUPPORTED,
                "%s: '%s' is too large for a Vulkan kernel, whose indices have "
                "32 bits",
                text[0], text[1]);
  return POSENC_OK;
}

posenc_status VulkanLaunch::addBuffer(posenc_vulkan_buffer *buffer,
                                      uint64_t &address) {
  auto it = std::find(buffers.begin(), buffers.end(), buffer);
  if (it == buffers.end()) {
    if (buffer->buffer.device != program.device)
      return fail(POSENC_INVALID_ARGUMENT,
                  "a buffer belongs to another device");
    if (buffer->buffer.size >> kOffsetBits)
      return fail(POSENC_UNSUPPORTED,
                  "a buffer of %" PRIu64 " bytes exceeds the limit of 2^40",
                  buffer->buffer.size);
    it = buffers.insert(it, buffer);
  }
  address = static_cast<uint64_t>(it - buffers.begin() + 1) << kOffsetBits;
  return POSENC_OK;
}

posenc_status VulkanLaunch::allocate(int64_t bytes, uint64_t &address) {
  auto made = std::make_unique<posenc_vulkan_buffer>(program.device);
  posenc_status status = made->buffer.create(static_cast<uint64_t>(bytes));
  if (status)
    return status;
  temporaries.push_back(std::move(made));
  return addBuffer(temporaries.back().get(), address);
}

posenc_status VulkanLaunch::call(const posenc_function &function,
                                 const posenc_vulkan_argument *arguments,
                                 size_t count) {
  size_t numInputs = function.inputs.size();
  size_t expected = numInputs + function.outputs.size();
  if (count != expected)
    return fail(POSENC_INVALID_ARGUMENT, "%s: %zu arguments, expected %zu",
                function.name.c_str(), count, expected);
  PosencDlTensor tensors[POSENC_MAX_ARGUMENTS];
  CallArguments entryArguments;
  if (count + 4 > POSENC_MAX_ARGUMENTS)
    return fail(POSENC_UNSUPPORTED, "%s: too many arguments for this runtime",
                function.name.c_str());
  for (size_t i = 0; i < count; ++i) {
    const posenc_argument &argument =
        i < numInputs ? function.inputs[i] : function.outputs[i - numInputs];
    const posenc_vulkan_argument &view = arguments[i];
    if (argument.kind == POSENC_SCALAR) {
      if (posenc_status status = checkScalar(function, argument, view.scalar))
        return status;
      entryArguments.addScalar(argument, view.scalar, view.real);
      continue;
    }
    if (posenc_status status = checkView(function, argument, view,
                                         posenc_dtype_size(argument.dtype)))
      return status;
    uint64_t address = 0;
    if (view.buffer && !argument.isShapeOnly)
      if (posenc_status status = addBuffer(view.buffer, address))
        return status;
    tensors[i] = toDlTensor(argument, {nullptr, 0, view.rank, view.shape});
    tensors[i].data = reinterpret_cast<void *>(address);
    tensors[i].byteOffset = view.offset;
    tensors[i].strides = view.strides;
    tensors[i].deviceType = kDLVulkan;
    entryArguments.add(toWord(&tensors[i]));
  }
  PosencVulkanLauncher launcher{
      this,
      [](void *self, const char *kernel, int64_t blocks,
         void *const *parameters) -> int32_t {
        auto *launch = static_cast<VulkanLaunch *>(self);
        launch->status =
            guarded([&] { return launch->launch(kernel, blocks, parameters); });
        return launch->status;
      },
      [](void *self, int64_t bytes) -> uint64_t {
        auto *launch = static_cast<VulkanLaunch *>(self);
        uint64_t address = 0;
        launch->status =
            guarded([&] { return launch->allocate(bytes, address); });
        return launch->status ? 0 : address;
      }};
  char message[512] = "";
  entryArguments.add(toWord(&launcher));
  entryArguments.add(toWord(message));
  entryArguments.add(sizeof(message));
  int32_t code = dispatch<int32_t>(function.vulkanEntry, entryArguments);
  if (!code || status)
    return status;
  return fail(toStatus(code), "%s", *message ? message : function.name.c_str());
}
