//===- VulkanProgram.cpp - A library's functions on Vulkan ------*- C++ -*-===//
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

#include <algorithm>
#include <cinttypes>
#include <iterator>

using namespace posenc::runtime;

/// Bits of an address within a buffer.
static constexpr int kPlaceBits = 40;

/// More words than this are in a buffer (SpirvKernels.h of posenc-compile).
static constexpr size_t kMostPushWords = 32;

posenc_vulkan_program::posenc_vulkan_program(
    std::shared_ptr<VulkanDevice> device, const posenc_library &library)
    : library(library), module(device), device(std::move(device)) {}

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
  // A binding needs a buffer, also where nothing of it is read.
  constexpr uint32_t zeros[4] = {};
  return makeBuffer(device, zeros, std::size(zeros), nothing);
}

posenc_status posenc_vulkan_program::compile(const char *name, Kernel &entry) {
  size_t numBuffers = constants ? 1 : 0, numWords = 1;
  for (char letter : entry.arguments) {
    numBuffers += letter >= '1' && letter <= '8';
    numWords += letter == 'd' ? 2 : 1;
  }
  entry.isPushed = numWords <= kMostPushWords;
  numBuffers += !entry.isPushed;
  auto made = std::make_unique<VulkanKernel>(device);
  posenc_status status =
      made->create(module, name, static_cast<uint32_t>(numBuffers),
                   entry.isPushed ? static_cast<uint32_t>(4 * numWords) : 0);
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
  given.clear();
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
      // A memref: an address twice, an offset, a size and a stride.
      next();
      int64_t offset = next();
      next();
      next();
      size_t number = static_cast<uint64_t>(value) >> kPlaceBits;
      if (number > buffers.size())
        return fail(POSENC_KERNEL_FAILED, "%s: the address of no tensor",
                    kernel);
      given.push_back(number ? buffers[number - 1] : program.nothing.get());
      int64_t place = value & ((int64_t(1) << kPlaceBits) - 1);
      int64_t bytes = letter - '0';
      status = addIndex(kernel, place / bytes + offset);
      // That the elements of a view have indices was checked.
      bool isOwn = std::any_of(own.begin(), own.end(), [&](const auto &buffer) {
        return buffer.get() == given.back();
      });
      if (!status && isOwn && given.back()->buffer.size / bytes > INT32_MAX)
        return fail(POSENC_UNSUPPORTED,
                    "%s: what is between operations is too large for a Vulkan "
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
    program.observer(program.observed, name, blocks);
  if (program.constants)
    given.push_back(program.constants.get());
  std::unique_ptr<posenc_vulkan_buffer> wordBuffer;
  if (!entry.isPushed) {
    if (posenc_status status =
            makeBuffer(program.device, words.data(), words.size(), wordBuffer))
      return status;
    given.push_back(wordBuffer.get());
  }
  int64_t most = program.device->facts().max_grid[0];
  if (program.mostBlocks)
    most = std::min<int64_t>(most, program.mostBlocks);
  for (int64_t first = 0; first < blocks; first += most) {
    words[0] = static_cast<uint32_t>(first);
    if (wordBuffer)
      if (posenc_status status = wordBuffer->buffer.upload(0, words.data(), 4))
        return status;
    auto numWorkgroups = static_cast<uint32_t>(std::min(most, blocks - first));
    if (posenc_status status =
            entry.kernel->run(numWorkgroups, given.data(), words.data()))
      return status;
  }
  return POSENC_OK;
}

/// That the elements of a view are in its buffer, which no driver looks at.
static posenc_status checkView(const posenc_function &function,
                               const posenc_argument &argument,
                               const posenc_vulkan_argument &view,
                               uint64_t element) {
  const char *text[] = {function.name.c_str(), argument.name.c_str()};
  if (view.rank < 0 || view.rank > POSENC_MAX_RANK ||
      (view.rank > 0 && !view.shape))
    return fail(POSENC_INVALID_ARGUMENT, "%s: '%s' has no shape", text[0],
                text[1]);
  // Negative ones are for the entry to refuse.
  for (int32_t dim = 0; dim < view.rank; ++dim)
    if (view.shape[dim] <= 0)
      return POSENC_OK;
  if (argument.isShapeOnly)
    return POSENC_OK;
  // In elements.
  using Wide = __int128;
  constexpr Wide most = INT64_MAX;
  Wide first = 0, last = 0, stride = 1;
  bool fits = true;
  for (int32_t dim = view.rank; dim-- > 0 && fits;) {
    Wide size = view.shape[dim];
    Wide reach = (size - 1) * (view.strides ? view.strides[dim] : stride);
    (reach < 0 ? first : last) += reach;
    stride = std::min(stride * size, most);
    fits = last <= most && first >= -most;
  }
  if (!view.buffer)
    return fail(POSENC_INVALID_ARGUMENT, "%s: the buffer of '%s' is NULL",
                text[0], text[1]);
  // What does not fit is no number of bytes.
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
      return fail(POSENC_INVALID_ARGUMENT, "a buffer is of another device");
    if (buffer->buffer.size >> kPlaceBits)
      return fail(POSENC_UNSUPPORTED, "a buffer of %" PRIu64 " bytes",
                  buffer->buffer.size);
    it = buffers.insert(it, buffer);
  }
  address = static_cast<uint64_t>(it - buffers.begin() + 1) << kPlaceBits;
  return POSENC_OK;
}

posenc_status VulkanLaunch::allocate(int64_t bytes, uint64_t &address) {
  auto made = std::make_unique<posenc_vulkan_buffer>(program.device);
  posenc_status status = made->buffer.create(static_cast<uint64_t>(bytes));
  if (status)
    return status;
  own.push_back(std::move(made));
  return addBuffer(own.back().get(), address);
}

posenc_status VulkanLaunch::call(const posenc_function &function,
                                 const posenc_vulkan_argument *arguments,
                                 size_t count) {
  size_t numInputs = function.inputs.size();
  size_t expected = numInputs + function.outputs.size();
  if (count != expected)
    return fail(POSENC_INVALID_ARGUMENT, "%s: %zu arguments, expected %zu",
                function.name.c_str(), count, expected);
  DlTensor tensors[POSENC_MAX_ARGUMENTS];
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
    tensors[i] = describe(argument, {nullptr, 0, view.rank, view.shape});
    tensors[i].data = reinterpret_cast<void *>(address);
    tensors[i].byteOffset = view.offset;
    tensors[i].strides = view.strides;
    tensors[i].deviceType = kDlVulkan;
    entryArguments.add(toWord(&tensors[i]));
  }
  VulkanLauncher launcher{
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
  if (function.workspace)
    entryArguments.add(0); // only the CPU's code uses it
  entryArguments.add(toWord(&launcher));
  entryArguments.add(toWord(message));
  entryArguments.add(sizeof(message));
  int32_t code = dispatch<int32_t>(function.vulkan, entryArguments);
  if (!code || status)
    return status;
  return fail(toStatus(code), "%s", *message ? message : function.name.c_str());
}
