//===- Operands.cpp - the tensors of a case in device memory --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Operands.h"

#include "Compare.h"
#include "Integers.h"
#include "Launch.h"
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
  if (function.cudaWorkspace)
    workspace = std::make_unique<Memory>(
        device, getWorkspaceBytes(function, measured.sizes));
  fillSources();
}

void Operands::layOutInputs() {
  int64_t rowHeads = 0, headSize = 0;
  for (const posenc_argument &argument : function.inputs) {
    if (argument.kind == POSENC_SCALAR)
      throw Failure(function.name + ": scalar inputs are not supported");
    TensorLayout layout = {isNumeric(argument.dtype),
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
    if (outputs.size() < function.outputs.size())
      throw Failure(function.name +
                    ": 'in-place' requires an input for each output");
    outputs.erase(outputs.begin(), outputs.end() - function.outputs.size());
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
  if (!measured.isGraph || measured.isRead)
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
    if ((measured.isAttention || measured.isRead) && layout.isSource)
      fillNormal(data.data(), layout.dtype, count, /*seed=*/7);
    else
      fill(data.data(), layout.dtype, count, order, /*seed=*/7);
  };
  bool isFilled = false;
  size_t numIntegers = 0;
  for (const TensorLayout &layout : inputs) {
    if (!layout.isSource && numIntegers < measured.values.size()) {
      writeIntegers(layout, measured.values[numIntegers++]);
    } else if (!layout.isSource) {
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
  if (numIntegers < measured.values.size())
    throw Failure(function.name + ": 'values' has too many tensors");
  // Copies from the host may be asynchronous, and the non-blocking stream does
  // not wait for them.
  device.check(device.driver->synchronizeContext(),
               "cannot copy data to the device");
}

void Operands::writeIntegers(const TensorLayout &layout,
                             const std::string &text) {
  std::vector<int64_t> wide = makeIntegers(text, layout.shape);
  std::vector<int32_t> narrow(wide.begin(), wide.end());
  bool isNarrow = layout.dtype == POSENC_I32;
  if (!isNarrow && layout.dtype != POSENC_I64 && layout.dtype != POSENC_INDEX)
    throw Failure(function.name + ": 'values' requires i32 or i64");
  indices->write(layout.offset,
                 isNarrow ? static_cast<void *>(narrow.data()) : wide.data(),
                 wide.size() * (isNarrow ? 4 : 8));
}

uint64_t Operands::getAddress(const TensorLayout &layout, int copy) const {
  if (layout.isSource)
    return sources->address + copy * sourceBytes + layout.offset;
  return indices->address + layout.offset;
}

void Operands::launch(int copy) const {
  std::vector<DeviceTensor> tensors;
  auto add = [&](const TensorLayout &layout, uint64_t address) {
    tensors.push_back({address, layout.dtype, &layout.shape, &layout.strides});
  };
  for (const TensorLayout &layout : inputs)
    add(layout, getAddress(layout, copy));
  for (const TensorLayout &layout : outputs)
    add(layout, layout.isSource
                    ? getAddress(layout, copy)
                    : results->address + copy * resultBytes + layout.offset);
  launchFunction(device, function, tensors, workspace ? workspace->address : 0);
}

double Operands::countOperations() const {
  if (measured.operations > 0)
    return measured.operations;
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
