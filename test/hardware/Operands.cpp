//===- Operands.cpp - tensors of a case on the device -----------*- C++ -*-===//
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

// Where allocations of the driver begin.
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
  placeInputs();
  placeOutputs();
  chooseCopies();
  sources = std::make_unique<Memory>(device, copies * sourceBytes);
  indices = std::make_unique<Memory>(device, indexBytes);
  results = std::make_unique<Memory>(device, copies * resultBytes);
  fillSources();
}

void Operands::placeInputs() {
  int64_t rowHeads = 0, headSize = 0;
  for (const posenc_argument &argument : function.inputs) {
    if (argument.kind == POSENC_SCALAR)
      throw Failure(function.name + ": a scalar is no operand of a case");
    Place place = {isFloating(argument.dtype),
                   0,
                   argument.dtype,
                   getShape(function, argument, measured.sizes),
                   {}};
    place.strides = getStrides(place.shape);
    uint64_t elementSize = posenc_dtype_size(argument.dtype);
    uint64_t bytes = countElements(place.shape) * elementSize;
    if (!place.isSource) {
      place.offset = indexBytes;
      indexBytes = align(indexBytes + bytes);
    } else if (!measured.isStrided) {
      place.offset = sourceBytes;
      sourceBytes = align(sourceBytes + bytes);
      readBytes += bytes;
    } else {
      if (place.shape.size() != 3)
        throw Failure(function.name + ": strided are tensors of rank 3 only");
      headSize = place.shape[2];
      place.offset = rowHeads * headSize * elementSize;
      rowHeads += place.shape[1];
      readBytes += bytes;
    }
    inputs.push_back(std::move(place));
  }
  if (!measured.isStrided || readBytes == 0)
    return;
  const Place *last = nullptr;
  for (const Place &place : inputs)
    if (place.isSource)
      last = &place;
  rowHeads += last->shape[1];
  for (Place &place : inputs)
    if (place.isSource)
      place.strides[0] = rowHeads * headSize;
  sourceBytes = align(last->shape[0] * rowHeads * headSize *
                      posenc_dtype_size(last->dtype));
}

void Operands::placeOutputs() {
  if (measured.isInPlace) {
    writtenBytes = readBytes;
    for (const Place &place : inputs)
      if (place.isSource)
        outputs.push_back(place);
    if (outputs.size() != function.outputs.size())
      throw Failure(function.name + ": not every output has an input");
    return;
  }
  for (const posenc_argument &argument : function.outputs) {
    Place place = {false,
                   resultBytes,
                   argument.dtype,
                   getShape(function, argument, measured.sizes),
                   {}};
    place.strides = getStrides(place.shape);
    uint64_t bytes =
        countElements(place.shape) * posenc_dtype_size(argument.dtype);
    resultBytes = align(resultBytes + bytes);
    writtenBytes += bytes;
    outputs.push_back(std::move(place));
  }
}

void Operands::chooseCopies() {
  // What is between the tensors is not touched.
  uint64_t touched = readBytes + (measured.isInPlace ? 0 : writtenBytes);
  if (touched == 0)
    throw Failure(function.name + ": there is nothing to measure");
  // One is copied to the next where the limit is a copy.
  copies = measured.isInPlace ? 2 : 1;
  if (!measured.isGraph)
    copies = std::max<uint64_t>(
        2, (4 * uint64_t(device.l2Bytes) + touched - 1) / touched);
  if (copies * (sourceBytes + resultBytes) > device.facts.memory_bytes / 2)
    throw Failure("the tensors are too large for the device's memory");
}

void Operands::fillSources() {
  // The same again and again: what a kernel does depends on no value.
  constexpr int64_t most = 1 << 20;
  std::vector<char> data;
  auto fillData = [&](const Place &place, int64_t count, Order order) {
    data.resize(count * posenc_dtype_size(place.dtype));
    fill(data.data(), place.dtype, count, order, /*seed=*/7);
  };
  bool isFilled = false;
  for (const Place &place : inputs) {
    if (!place.isSource) {
      fillData(place, countElements(place.shape), measured.order);
      indices->write(place.offset, data.data(), data.size());
    } else if (!isFilled) {
      fillData(place, most, Order::Ascending);
      uint64_t bytes = std::min<uint64_t>(data.size(), sources->bytes);
      sources->write(0, data.data(), bytes);
      sources->repeat(bytes);
      isFilled = true;
    }
  }
  // Copies from the host may still be on their way, and the stream, which is
  // no blocking one, would not wait for them.
  device.check(device.driver->synchronizeContext(),
               "data cannot be copied to the device");
}

uint64_t Operands::getAddress(const Place &place, int copy) const {
  if (place.isSource)
    return sources->address + copy * sourceBytes + place.offset;
  return indices->address + place.offset;
}

void Operands::launch(int copy) const {
  PosencDlTensor tensors[POSENC_MAX_ARGUMENTS];
  int64_t arguments[POSENC_MAX_ARGUMENTS];
  size_t count = 0;
  if (inputs.size() + outputs.size() + 3 > POSENC_MAX_ARGUMENTS)
    throw Failure(function.name + ": too many arguments");
  auto add = [&](const posenc_argument &argument, const Place &place,
                 uint64_t address) {
    posenc_tensor tensor = {reinterpret_cast<void *>(address), place.dtype,
                            int32_t(place.shape.size()), place.shape.data()};
    tensors[count] = runtime::toDlTensor(argument, tensor);
    tensors[count].deviceType = kDLCUDA;
    tensors[count].deviceId = device.index;
    tensors[count].strides = place.strides.data();
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
  arguments[count++] = runtime::toWord(device.stream);
  arguments[count++] = runtime::toWord(message);
  arguments[count++] = sizeof(message);
  int32_t code =
      runtime::dispatch<int32_t>(function.cudaEntry, arguments, count);
  if (code != 0)
    throw Failure(function.name + " returns " + std::to_string(code) + ": " +
                  message);
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
                 "memory cannot be filled");
    return;
  }
  uint64_t from = sources->address + copy * sourceBytes;
  uint64_t to = measured.isInPlace
                    ? sources->address + (copy + 1) % copies * sourceBytes
                    : results->address + copy * resultBytes;
  device.check(
      device.streams.copyAsync(to, from, getCopiedBytes(), device.stream),
      "memory cannot be copied");
}
