//===- CheckStrides.cpp - strides of keys and values on the GPU -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Calls.h"
#include "Checks.h"
#include "Compare.h"
#include "Launch.h"
#include "Signature.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

using namespace posenc;
using namespace posenc::hardware;
using runtime::Array;

namespace {

/// A layout of tensors [sequence, token, head, channel].
struct Layout {
  const char *name;
  /// The dimensions from the outermost in memory to the innermost.
  int order[3];
  int expanded = -1;       ///< the dimension of keys and values of stride 0
  bool hasKeys = true;     ///< otherwise there are no keys
  int64_t padding = 0;     ///< elements after each row of channels
  int64_t offset = 0;      ///< elements before the first one
  bool isReversed = false; ///< tokens have a negative stride
  /// Whether bulk copies can read the layout, so that bits are those of
  /// contiguous tensors; otherwise it has another kernel.
  bool isSameKernel = true;
};

// Stride 0 comes first: the documentation of tensor maps neither permits nor
// forbids it.
constexpr Layout kLayouts[] = {
    {"heads-of-stride-0", {0, 1, 2}, 2},
    {"sequences-of-stride-0", {0, 1, 2}, 0},
    {"tokens-of-stride-0", {0, 1, 2}, 1},
    {"no-keys", {0, 1, 2}, -1, false},
    {"no-keys-heads-of-stride-0", {0, 1, 2}, 2, false},
    {"no-keys-sequences-of-stride-0", {0, 1, 2}, 0, false},
    {"head-major", {0, 2, 1}},
    {"heads-outermost", {2, 0, 1}},
    {"tokens-outermost", {1, 0, 2}},
    {"descending", {2, 1, 0}},
    {"padded-rows", {0, 1, 2}, -1, true, 8},
    {"odd-rows", {0, 1, 2}, -1, true, 1, 0, false, false},
    {"odd-address", {0, 1, 2}, -1, true, 0, 1, false, false},
    {"reversed-tokens", {0, 1, 2}, -1, true, 0, 0, true, false}};

/// A tensor with a layout on the device, and a contiguous one on the host.
class Strided {
public:
  Strided(const Device &device, posenc_dtype dtype, std::vector<int64_t> sizes,
          const Layout &layout, bool isExpanded, uint64_t seed)
      : shape(std::move(sizes)), strides(shape.size()),
        contiguous(allocate(dtype, shape)) {
    int64_t stride = shape[3] + layout.padding;
    strides[3] = 1;
    for (int i = 2; i >= 0; --i) {
      int dim = layout.order[i];
      bool isRepeated = isExpanded && dim == layout.expanded;
      strides[dim] = isRepeated ? 0 : stride;
      stride *= isRepeated ? 1 : std::max<int64_t>(shape[dim], 1);
    }
    first = layout.offset;
    if (layout.isReversed) {
      first += (shape[1] - 1) * strides[1];
      strides[1] = -strides[1];
    }
    Array data = allocate(dtype, {stride + layout.offset});
    fillNormal(data.data(), dtype, data.numElements(), seed);
    copyContiguous(data);
    size = posenc_dtype_size(dtype);
    memory = std::make_unique<Memory>(device, data.sizeInBytes());
    memory->write(0, data.data(), data.sizeInBytes());
  }

  DeviceTensor get() const {
    return {memory->address + first * size, contiguous.dtype(), &shape,
            &strides};
  }

  std::vector<int64_t> shape, strides;
  Array contiguous;

private:
  void copyContiguous(const Array &data) {
    int64_t rowBytes = shape[3] * posenc_dtype_size(data.dtype());
    char *to = contiguous.dataAs<char>();
    const char *from = data.dataAs<char>();
    for (int64_t i = 0; i < shape[0]; ++i)
      for (int64_t j = 0; j < shape[1]; ++j)
        for (int64_t k = 0; k < shape[2]; ++k, to += rowBytes)
          std::memcpy(to,
                      from + (first + i * strides[0] + j * strides[1] +
                              k * strides[2]) *
                                 posenc_dtype_size(data.dtype()),
                      rowBytes);
  }

  int64_t first = 0, size = 0;
  std::unique_ptr<Memory> memory;
};

} // namespace

static const Layout &findLayout(const std::string &name) {
  for (const Layout &layout : kLayouts)
    if (name == layout.name)
      return layout;
  throw Failure("unknown layout '" + name + "'");
}

static bool hasFourDimensions(const posenc_function &function) {
  if (function.inputs.size() != 3 || function.outputs.size() != 1 ||
      function.sizes.size() != 3)
    return false;
  for (const posenc_argument &argument : function.inputs)
    if (argument.shape.size() != 4 || argument.dtype != POSENC_BF16)
      return false;
  return true;
}

/// Finds the function of the library whose tensors get strides; null if there
/// is none.
static runtime::Function findStrided(const runtime::Library &library) {
  std::string error;
  for (const char *name : {"full_bf16", "causal_bf16"}) {
    runtime::Function function = library.find(name, error);
    if (!function)
      continue;
    if (!hasFourDimensions(*function.get()))
      throw Failure(function.name() +
                    ": expected queries, keys and values [sequence, token, "
                    "head, channel] of bf16");
    return function;
  }
  return {};
}

std::vector<std::string> hardware::listStrides(const Subject &subject) {
  runtime::Library library = openLibrary(subject.library);
  std::vector<std::string> forms;
  if (!findStrided(library))
    return forms;
  for (const Layout &layout : kLayouts)
    forms.emplace_back(layout.name);
  return forms;
}

std::string hardware::checkStrides(const Subject &subject,
                                   const std::string &form) {
  const Layout &layout = findLayout(form);
  runtime::Library library = openLibrary(subject.library);
  runtime::Function called = findStrided(library);
  if (!called)
    throw Failure("the library has no function for tensors with strides");
  const posenc_function &function = *called.get();
  Device device(subject.device);
  // Two tiles of queries and three of keys.
  int64_t numQueries = subject.isSmall ? 17 : 130;
  int64_t numKeys = !layout.hasKeys ? 0 : subject.isSmall ? 90 : 200;
  std::vector<std::unique_ptr<Strided>> inputs;
  std::vector<posenc_value> values;
  for (const posenc_argument &argument : function.inputs) {
    bool isQuery = inputs.empty();
    std::vector<int64_t> shape = {2, isQuery ? numQueries : numKeys,
                                  argument.shape[2].value,
                                  argument.shape[3].value};
    inputs.push_back(std::make_unique<Strided>(
        device, argument.dtype, shape, layout, !isQuery, inputs.size() + 1));
    values.push_back(inputs.back()->contiguous.value());
  }
  printProgress("on the CPU");
  Array right = std::move(run(called, -1, values, 0x33).front());
  printProgress("contiguous");
  Array contiguous =
      std::move(run(called, subject.device, values, 0x55).front());

  printProgress(form);
  std::vector<DeviceTensor> tensors;
  for (const auto &input : inputs)
    tensors.push_back(input->get());
  // The result is contiguous.
  Memory memory(device, right.sizeInBytes());
  std::vector<int64_t> strides(4, 1);
  for (int dim = 3; dim-- > 0;)
    strides[dim] = strides[dim + 1] * right.shape()[dim + 1];
  std::vector<int64_t> shape = right.shape();
  tensors.push_back({memory.address, right.dtype(), &shape, &strides});
  Memory workspace(device,
                   getWorkspaceBytes(function, {2, numQueries, numKeys}));
  launchFunction(device, function, tensors, workspace.address);
  device.wait();
  Array result = allocate(right.dtype(), right.shape());
  memory.read(result.data(), result.sizeInBytes());

  Distance distance = getDistance(result, right);
  Distance limit = getLimit(right.dtype());
  if (!(distance.all <= limit.all && distance.row <= limit.row)) {
    char text[128];
    std::snprintf(
        text, sizeof(text), "%.2e from the CPU's result, and %.2e in row %lld",
        distance.all, distance.row, static_cast<long long>(distance.rowIndex));
    throw Failure(text);
  }
  if (layout.isSameKernel && !hasSameBits(result, contiguous))
    throw Failure("other bits than for contiguous tensors");
  return layout.isSameKernel ? "the bits of contiguous tensors"
                             : "close to the CPU's result";
}
