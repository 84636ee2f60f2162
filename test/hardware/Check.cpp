//===- Check.cpp - compares results of the GPU and the CPU ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check.h"

#include "Arguments.h"
#include "Device.h"
#include "Signature.h"

#include <algorithm>
#include <cstdio>
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

static Array allocate(posenc_dtype dtype, std::vector<int64_t> shape) {
  Array array;
  std::string error;
  if (!Array::allocate(dtype, std::move(shape), array, error))
    throw Failure(error);
  return array;
}

/// Returns the offset of the first byte that differs, or -1.
static int64_t compare(const Array &left, const Array &right) {
  auto *a = left.dataAs<uint8_t>(), *b = right.dataAs<uint8_t>();
  size_t size = left.sizeInBytes();
  if (size == 0 || std::memcmp(a, b, size) == 0)
    return -1;
  return std::mismatch(a, a + size, b).first - a;
}

static bool check(const runtime::Function &called, int device,
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
    std::printf("%s: result %zu differs in byte %lld\n", function.name.c_str(),
                i, static_cast<long long>(at));
    return false;
  }
  return true;
}

bool hardware::checkLibrary(const std::string &path, int device, bool isSmall) {
  std::string error;
  runtime::Library library = runtime::Library::open(path, error);
  if (!library)
    throw Failure(error);
  int equal = 0, failed = 0;
  for (size_t i = 0; i < library.numFunctions(); ++i) {
    runtime::Function function = library.function(i);
    for (const auto &sizes : getSizes(function.get()->sizes.size(), isSmall)) {
      bool isEqual = false;
      try {
        isEqual = check(function, device, sizes);
      } catch (const Failure &failure) {
        std::printf("%s: %s\n", function.name().c_str(), failure.what());
      }
      ++(isEqual ? equal : failed);
    }
  }
  std::printf("%s: %d equal, %d different or failed\n", path.c_str(), equal,
              failed);
  return failed == 0 && equal > 0;
}
