//===- Operands.cpp - the tensors of a case in device memory --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Operands.h"

#include "Dispatch.h"
#include "DlTensor.h"
#include "Signature.h"

#include <algorithm>

using namespace posenc;
using namespace posenc::hardware;

// Rounds up to the alignment of device allocations.
static uint64_t align(uint64_t offset) { return (offset + 511) / 512 * 512; }

static std::vector<int64_t> getStrides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    strides[dim] = stride;
    stride *= shape[dim];
  }
  return strides;
}

Operands::Operands(const Device &device, const posenc_function &function,
                   const Case &measured)
    : device(device), function(function), measured(measured) {
  layOutInputs();
  layOutOutputs();
  chooseCopies();
  sources = std::make_unique<Memory>(device, copies * sourceBytes);
  indices = std::make_unique<Memory>(device, indexBytes);
  results = std::make_unique<Memory>(device, copies * resultBytes);
  if (function.cudaWorkspace) {
    int64_t bytes = runtime::dispatch<int64_t>(
        function.cudaWorkspace, measured.sizes.data(), measured.sizes.size());
    if (bytes < 0)
      throw Failure(function.name + ": the workspace is too large");
    workspace = std::make_unique<Memory>(device, bytes);
  }
  fillSources();
}

void Operands::layOutInputs() {
  int64_t rowHeads = 0, headSize = 0;
  for (const posenc_argument &argument : function.inputs) {
    if (argument.kind == POSENC_SCALAR)
      throw Failure(function.name + ": scalar inputs are not supported");
    TensorLayout layout = {isFloating(argument.dtype),
                           0,
                           argument.dtype,
                           getShape(function, argument, measured.sizes),
                           {}};
    layout.strides = getStrides(layout.shape);
    uint64_t elementSize = posenc_dtype_size(argument.dtype);
    uint64_t bytes = countElements(layout.shape) * elementSize;
    if (!layout.isSource) {
      layout.offset = indexBytes;
      indexBytes = align(indexBytes + bytes);
    } else if (!measured.isStrided) {
      layout.offset = sourceBytes;
      sourceBytes = align(sourceBytes + bytes);
      readBytes += bytes;
    } else {
      if (layout.shape.size() != 3)
        throw Failure(function.name + ": 'strided' requires tensors of rank 3");
      headSize = layout.shape[2];
      layout.offset = rowHeads * headSize * elementSize;
      rowHeads += layout.shape[1];
      readBytes += bytes;
    }
    inputs.push_back(std::move(layout));
  }
  if (!measured.isStrided || readBytes == 0)
    return;
  const TensorLayout *last = nullptr;
  for (const TensorLayout &layout : inputs)
    if (layout.isSource)
      last = &layout;
  rowHeads += last->shape[1];
  for (TensorLayout &layout : inputs)
    if (layout.isSource)
      layout.strides[0] = rowHeads * headSize;
  sourceBytes = align(last->shape[0] * rowHeads * headSize *
                      posenc_dtype_size(last->dtype));
}

void Operands::layOutOutputs() {
  if (measured.isInPlace) {
    writtenBytes = readBytes;
    for (const TensorLayout &layout : inputs)
      if (layout.isSource)
        outputs.push_back(layout);
    if (outputs.size() != function.outputs.size())
      throw Failure(function.name +
                    ": 'in-place' requires an input for each output");
    return;
  }
  for (const posenc_argument &argument : function.outputs) {
    TensorLayout layout = {false,
                           resultBytes,
                           argument.dtype,
                           getShape(function, argument, measured.sizes),
                           {}};
    layout.strides = getStrides(layout.shape);
    uint64_t bytes =
        countElements(layout.shape) * posenc_dtype_size(argument.dtype);
    resultBytes = align(resultBytes + bytes);
    writtenBytes += bytes;
    outputs.push_back(std::move(layout));
  }
}

void Operands::chooseCopies() {
  // Padding between tensors is not accessed.
  uint64_t touched = readBytes + (measured.isInPlace ? 0 : writtenBytes);
  if (touched == 0)
    throw Failure(function.name + ": all tensors are empty");
  // In place, the limit copies one set of tensors to the next.
  copies = measured.isInPlace ? 2 : 1;
  if (!measured.isGraph)
    copies = std::max<uint64_t>(
        2, (4 * uint64_t(device.l2Bytes) + touched - 1) / touched);
  if (copies * (sourceBytes + resultBytes) > device.facts.memory_bytes / 2)
    throw Failure("the tensors are too large for the device's memory");
}

void Operands::fillSources() {
  // Repeats a block of data: the work of a kernel does not depend on it.
  constexpr int64_t maxElements = 1 << 20;
  std::vector<char> data;
  auto fillData = [&](const TensorLayout &layout, int64_t count, Order order) {
    data.resize(count * posenc_dtype_size(layout.dtype));
    // The power that tensor cores take depends on values.
    if (measured.isAttention && layout.isSource)
      fillNormal(data.data(), layout.dtype, count, /*seed=*/7);
    else
      fill(data.data(), layout.dtype, count, order, /*seed=*/7);
  };
  bool isFilled = false;
  for (const TensorLayout &layout : inputs) {
    if (!layout.isSource) {
      fillData(layout, countElements(layout.shape), measured.order);
      indices->write(layout.offset, data.data(), data.size());
    } else if (!isFilled) {
      fillData(layout, maxElements, Order::Ascending);
      uint64_t bytes = std::min<uint64_t>(data.size(), sources->bytes);
      sources->write(0, data.data(), bytes);
      sources->repeat(bytes);
      isFilled = true;
    }
  }
  // Copies from the host may be asynchronous, and the non-blocking stream does
  // not wait for them.
  device.check(device.driver->synchronizeContext(),
               "cannot copy data to the device");
}

uint64_t Operands::getAddress(const TensorLayout &layout, int copy) const {
  if (layout.isSource)
    return sources->address + copy * sourceBytes + layout.offset;
  return indices->address + layout.offset;
}

void Operands::launch(int copy) const {
  PosencDlTensor tensors[POSENC_MAX_ARGUMENTS];
  int64_t arguments[POSENC_MAX_ARGUMENTS];
  size_t count = 0;
  if (inputs.size() + outputs.size() + 4 > POSENC_MAX_ARGUMENTS)
    throw Failure(function.name + ": too many arguments");
  auto add = [&](const posenc_argument &argument, const TensorLayout &layout,
                 uint64_t address) {
    posenc_tensor tensor = {reinterpret_cast<void *>(address), layout.dtype,
                            int32_t(layout.shape.size()), layout.shape.data()};
    tensors[count] = runtime::toDlTensor(argument, tensor);
    tensors[count].deviceType = kDLCUDA;
    tensors[count].deviceId = device.index;
    tensors[count].strides = layout.strides.data();
    arguments[count] = runtime::toWord(&tensors[count]);
    ++count;
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    add(function.inputs[i], inputs[i], getAddress(inputs[i], copy));
  for (size_t i = 0; i < outputs.size(); ++i)
    add(function.outputs[i], outputs[i],
        measured.isInPlace
            ? getAddress(outputs[i], copy)
            : results->address + copy * resultBytes + outputs[i].offset);
  char message[512] = "";
  if (workspace)
    arguments[count++] = static_cast<int64_t>(workspace->address);
  arguments[count++] = runtime::toWord(device.stream);
  arguments[count++] = runtime::toWord(message);
  arguments[count++] = sizeof(message);
  int32_t code =
      runtime::dispatch<int32_t>(function.cudaEntry, arguments, count);
  if (code != 0)
    throw Failure(function.name + " returns " + std::to_string(code) + ": " +
                  message);
}

double Operands::countOperations() const {
  if (inputs.size() < 3 || inputs[0].shape.size() != 4 ||
      inputs[1].shape.size() != 4)
    throw Failure(function.name + ": 'attention' requires queries, keys and "
                                  "values [sequence, token, head, channel]");
  const std::vector<int64_t> &query = inputs[0].shape;
  double products = double(query[0]) * query[1] * query[2] * inputs[1].shape[1];
  if (measured.isCausal)
    products /= 2;
  return 2 * products * (query[3] + inputs[2].shape.back());
}

uint64_t Operands::getCopiedBytes() const {
  return std::min(readBytes, writtenBytes);
}

uint64_t Operands::limitBytes() const {
  return hasSources() ? 2 * getCopiedBytes() : writtenBytes / 4 * 4;
}

void Operands::runLimit(int copy) const {
  if (!hasSources()) {
    device.check(device.streams.fillAsync(results->address + copy * resultBytes,
                                          0x3f803f80, writtenBytes / 4,
                                          device.stream),
                 "cannot fill memory");
    return;
  }
  uint64_t from = sources->address + copy * sourceBytes;
  uint64_t to = measured.isInPlace
                    ? sources->address + (copy + 1) % copies * sourceBytes
                    : results->address + copy * resultBytes;
  device.check(
      device.streams.copyAsync(to, from, getCopiedBytes(), device.stream),
      "cannot copy memory");
}
