//===- CheckBits.cpp - bits of the GPU and the CPU ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Calls.h"
#include "Checks.h"
#include "Device.h"
#include "Signature.h"

#include <algorithm>
#include <cstring>

using namespace posenc;
using namespace posenc::hardware;
using runtime::Array;

/// Returns sets of values for `count` dynamic sizes. Large ones, which fill a
/// GPU, are left out if isSmall.
static std::vector<std::vector<int64_t>> getSizes(size_t count, bool isSmall) {
  std::vector<std::vector<int64_t>> all = {{2, 5, 3}, {1, 37, 3}};
  if (!isSmall)
    all.insert(all.end(), {{1, 1, 3}, {3, 341, 5}, {1, 2050, 2}});
  for (std::vector<int64_t> &sizes : all) {
    if (count == 1)
      sizes.erase(sizes.begin());
    sizes.resize(count, 1);
  }
  return all;
}

/// Returns the offset of the first byte that differs, or -1.
static int64_t compare(const Array &left, const Array &right) {
  auto *a = left.dataAs<uint8_t>(), *b = right.dataAs<uint8_t>();
  size_t size = left.sizeInBytes();
  if (size == 0 || std::memcmp(a, b, size) == 0)
    return -1;
  return std::mismatch(a, a + size, b).first - a;
}

/// Throws Failure if a result differs.
static void compareCall(const runtime::Function &called, int device,
                        const std::vector<int64_t> &sizes) {
  const posenc_function &function = *called.get();
  std::vector<Array> arrays, results[2];
  std::vector<posenc_value> inputs, outputs[2];
  for (const posenc_argument &argument : function.inputs) {
    if (argument.kind == POSENC_SCALAR) {
      inputs.push_back(runtime::scalar(-123456));
      continue;
    }
    arrays.push_back(
        allocate(argument.dtype, getShape(function, argument, sizes)));
    fill(arrays.back().data(), argument.dtype, arrays.back().numElements(),
         Order::Extreme, arrays.size());
    inputs.push_back(arrays.back().value());
  }
  for (int on : {0, 1})
    for (const posenc_argument &argument : function.outputs) {
      results[on].push_back(
          allocate(argument.dtype, getShape(function, argument, sizes)));
      // Different patterns, so that bytes which are not written differ.
      if (size_t size = results[on].back().sizeInBytes())
        std::memset(results[on].back().data(), on ? 0x55 : 0xaa, size);
      outputs[on].push_back(results[on].back().value());
    }
  std::string error;
  if (!called.call(inputs, outputs[0], error))
    throw Failure("on the CPU: " + error);
  if (!called.callOnCuda(device, inputs, outputs[1], error))
    throw Failure("on the GPU: " + error);
  for (size_t i = 0; i < results[0].size(); ++i) {
    int64_t at = compare(results[0][i], results[1][i]);
    if (at < 0)
      continue;
    throw Failure("result " + std::to_string(i) + " differs in byte " +
                  std::to_string(at));
  }
}

std::vector<std::string> hardware::listBits(const Subject &subject) {
  runtime::Library library = openLibrary(subject.library);
  std::vector<std::string> forms;
  for (size_t i = 0; i < library.numFunctions(); ++i)
    forms.push_back(library.function(i).name());
  return forms;
}

std::string hardware::checkBits(const Subject &subject,
                                const std::string &form) {
  runtime::Library library = openLibrary(subject.library);
  runtime::Function function = findFunction(library, form);
  size_t calls = 0;
  for (const auto &sizes :
       getSizes(function.get()->sizes.size(), subject.isSmall)) {
    std::string text = "sizes";
    for (int64_t size : sizes)
      text += " " + std::to_string(size);
    printProgress(text);
    compareCall(function, subject.device, sizes);
    ++calls;
  }
  return std::to_string(calls) + " calls with the CPU's bits";
}
