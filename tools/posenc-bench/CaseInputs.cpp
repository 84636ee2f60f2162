//===- CaseInputs.cpp - inputs of a case ----------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CaseInputs.h"

#include "posenc-bench/Limit.h"
#include "posenc-run/Fill.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

using namespace mlir::posenc;
namespace runtime = ::posenc::runtime;

static bool isInteger(posenc_dtype dtype) {
  return dtype == POSENC_I64 || dtype == POSENC_I32 || dtype == POSENC_INDEX;
}

/// Fills an array with random numbers that repeat after 2^16 elements. More
/// numbers would take longer to generate than the measurement takes.
static llvm::Error fillRepeated(const runtime::Array &array, uint64_t seed) {
  constexpr size_t periodElements = 1 << 16;
  size_t count = std::min<size_t>(array.numElements(), periodElements);
  llvm::Expected<runtime::Array> period =
      allocateArray(array.dtype(), {static_cast<int64_t>(count)});
  if (!period)
    return period.takeError();
  if (llvm::Error error = fillRandom(*period, seed))
    return error;
  char *data = array.dataAs<char>();
  for (size_t done = 0, all = array.sizeInBytes(); done < all;) {
    size_t bytes = std::min(period->sizeInBytes(), all - done);
    std::memcpy(data + done, period->data(), bytes);
    done += bytes;
  }
  return llvm::Error::success();
}

/// Writes integers to every row of an array: those of `row` or, with
/// `isHalved`, those of `row` shifted right by the row's number.
static void storePositions(const runtime::Array &array,
                           const std::vector<int64_t> &row, bool isHalved) {
  for (size_t i = 0, count = array.numElements(); i < count; ++i) {
    int64_t value = row[i % row.size()] >> (isHalved ? i / row.size() : 0);
    if (array.dtype() == POSENC_I32)
      array.dataAs<int32_t>()[i] = static_cast<int32_t>(value);
    else
      array.dataAs<int64_t>()[i] = value;
  }
}

static llvm::Error fillArray(const runtime::Array &array,
                             const CaseInput &wanted, uint64_t seed) {
  CaseInput::Values values = wanted.values;
  if (values == CaseInput::Constant) {
    storePositions(array, {wanted.constant}, /*isHalved=*/false);
    return llvm::Error::success();
  }
  if (values == CaseInput::Random)
    return fillRepeated(array, seed);
  if (values == CaseInput::CuSeqlens || values == CaseInput::BlockTable) {
    int64_t count = array.numElements();
    std::vector<int64_t> all(count);
    for (int64_t i = 0; i < count; ++i)
      all[i] = values == CaseInput::CuSeqlens
                   ? i * wanted.constant / std::max<int64_t>(count - 1, 1)
                   : i % std::max<int64_t>(wanted.constant, 1);
    if (count)
      storePositions(array, all, /*isHalved=*/false);
    return llvm::Error::success();
  }
  std::vector<int64_t> row(array.shape().empty() ? 1 : array.shape().back());
  for (size_t i = 0; i < row.size(); ++i)
    row[i] = static_cast<int64_t>(i);
  if (values == CaseInput::Shuffled) {
    std::mt19937_64 generator(seed);
    for (size_t i = row.size(); i > 1; --i)
      std::swap(row[i - 1], row[generator() % i]);
  }
  storePositions(array, row, values == CaseInput::Grid);
  return llvm::Error::success();
}

llvm::Expected<std::vector<Input>>
mlir::posenc::createCaseInputs(llvm::ArrayRef<CaseInput> inputs) {
  std::vector<Input> created;
  for (auto [number, wanted] : llvm::enumerate(inputs)) {
    Input input;
    input.isScalar = wanted.scalar.has_value();
    if (input.isScalar) {
      input.scalar = *wanted.scalar;
      input.real = static_cast<double>(*wanted.scalar);
      input.isReal = wanted.dtype == POSENC_F64 || wanted.dtype == POSENC_F32;
    } else {
      llvm::Expected<runtime::Array> array =
          allocateArray(wanted.dtype, wanted.shape);
      if (!array)
        return array.takeError();
      if (llvm::Error error = fillArray(*array, wanted, number))
        return std::move(error);
      input.array = std::move(*array);
    }
    created.push_back(std::move(input));
  }
  return created;
}

//===----------------------------------------------------------------------===//
// Defaults
//===----------------------------------------------------------------------===//

/// Returns inputs whose dynamic sizes have the values of `sizes`, by name.
static std::vector<CaseInput>
getInputs(runtime::Function function,
          const std::map<std::string, int64_t> &sizes) {
  std::vector<CaseInput> inputs;
  for (size_t i = 0; i < function.numInputs(); ++i) {
    runtime::Argument argument = function.input(i);
    CaseInput input;
    input.dtype = argument.dtype();
    input.values = isInteger(input.dtype) ? CaseInput::Iota : CaseInput::Random;
    if (argument.isScalar())
      input.scalar = argument.isReal() ? 1 : sizes.at(argument.name());
    for (int32_t dim = 0; dim < argument.rank(); ++dim) {
      std::string name = argument.sizeName(dim);
      input.shape.push_back(name.empty() ? argument.size(dim) : sizes.at(name));
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

/// Returns the bytes of all outputs, or of the windows of their rows that are
/// rotated; 0 if the sizes do not follow from the inputs.
static int64_t getOutputBytes(runtime::Function function,
                              const FunctionInfo &info,
                              const std::vector<CaseInput> &inputs) {
  std::vector<posenc_value> values;
  for (const CaseInput &input : inputs) {
    if (input.scalar)
      values.push_back(runtime::scalar(*input.scalar));
    else
      values.push_back(runtime::tensor(
          {nullptr, input.dtype, static_cast<int32_t>(input.shape.size()),
           input.shape.data()}));
  }
  int64_t total = 0;
  for (size_t i = 0; i < function.numOutputs(); ++i) {
    std::vector<int64_t> shape;
    std::string error;
    if (!function.outputShape(values, i, shape, error))
      return 0;
    int64_t bytes =
        static_cast<int64_t>(posenc_dtype_size(function.output(i).dtype()));
    if (std::optional<int64_t> window = info.results[i].windowSize)
      shape.back() = *window;
    for (int64_t size : shape)
      bytes = llvm::SaturatingMultiply<uint64_t>(bytes, size) & INT64_MAX;
    total += bytes;
  }
  return total;
}

std::optional<AttentionInfo>
mlir::posenc::inferAttentionInfo(runtime::Function function) {
  auto find = [&](std::initializer_list<llvm::StringRef> names) {
    for (size_t i = 0; i < function.numInputs(); ++i)
      if (llvm::is_contained(names, llvm::StringRef(function.input(i).name())))
        return std::optional<size_t>(i);
    return std::optional<size_t>();
  };
  std::optional<size_t> query = find({"q", "query"}),
                        key = find({"k", "key", "k_cache", "k_pages"}),
                        value = find({"v", "value", "v_cache", "v_pages"});
  if (!query || !key || !value)
    return std::nullopt;
  // The first dimension after the batch that is dynamic or, if there is none,
  // that has size 1.
  auto findTokenDim = [&](size_t number) -> unsigned {
    runtime::Argument argument = function.input(number);
    int32_t isBatched = argument.rank() > 3;
    for (int64_t size : {int64_t(POSENC_DYNAMIC), int64_t(1)})
      for (int32_t dim = isBatched; dim < argument.rank(); ++dim)
        if (argument.size(dim) == size)
          return dim;
    return isBatched;
  };
  AttentionInfo inferred;
  inferred.query = *query;
  inferred.key = *key;
  inferred.value = *value;
  inferred.queryTokenDim = findTokenDim(*query);
  inferred.keyTokenDim = findTokenDim(*key);
  // Heads and tokens are the dimensions between the batch and the channels.
  int32_t isBatched = function.input(*query).rank() > 3;
  inferred.queryHeadDim = 2 * isBatched + 1 - inferred.queryTokenDim;
  inferred.lengths = find({"lengths"});
  inferred.blockTable = find({"block_table"});
  if (std::optional<size_t> cuSeqlens = find({"cu_seqlens"}))
    inferred.cuSeqlens.push_back(*cuSeqlens);
  inferred.isDecode = inferred.lengths && inferred.cuSeqlens.empty() &&
                      function.input(*query).size(inferred.queryTokenDim) == 1;
  return inferred;
}

/// Chooses the dynamic sizes of an attention. `sizes` has the initial values.
static std::vector<CaseInput>
getAttentionInputs(runtime::Function function, const AttentionInfo &info,
                   std::map<std::string, int64_t> sizes) {
  constexpr int64_t tokens = 1024, maxBytes = int64_t(256) << 20;
  auto choose = [&](size_t argument, unsigned dim, int64_t size) {
    std::string name =
        function.input(argument).sizeName(static_cast<int32_t>(dim));
    if (!name.empty())
      sizes[name] = size;
  };
  int64_t keys = tokens;
  if (info.isDecode) {
    int64_t bytes = 0;
    for (size_t argument : {info.key, info.value}) {
      CaseInput input = getInputs(function, sizes)[argument];
      int64_t token = static_cast<int64_t>(posenc_dtype_size(input.dtype));
      input.shape[info.keyTokenDim] = 1;
      for (int64_t size : input.shape)
        token = llvm::SaturatingMultiply<uint64_t>(token, size) & INT64_MAX;
      bytes += token;
    }
    int64_t wanted = std::min(4 * getLastLevelCacheBytes(), maxBytes);
    keys = std::max<int64_t>(
        llvm::bit_floor(uint64_t(wanted / std::max<int64_t>(bytes, 1))), 1);
  }
  choose(info.query, info.queryTokenDim, tokens);
  choose(info.key, info.keyTokenDim, keys);
  // One sequence; each block of a paged cache has a page of its own.
  for (size_t cuSeqlens : info.cuSeqlens)
    choose(cuSeqlens, 0, 2);
  if (info.blockTable) {
    constexpr int64_t slots = 16;
    choose(info.key, info.keyTokenDim, slots);
    int64_t slotsPerPage =
        getInputs(function, sizes)[info.key].shape[info.keyTokenDim];
    int64_t blocks = llvm::divideCeil(keys, std::max<int64_t>(slotsPerPage, 1));
    choose(*info.blockTable, 1, blocks);
    choose(info.key, 0, blocks);
  }
  std::vector<CaseInput> inputs = getInputs(function, sizes);
  int64_t capacity = inputs[info.key].shape[info.keyTokenDim];
  if (info.blockTable) {
    CaseInput &table = inputs[*info.blockTable];
    table.values = CaseInput::BlockTable;
    table.constant = inputs[info.key].shape[0];
    capacity *= table.shape.back();
  }
  if (info.lengths) {
    inputs[*info.lengths].values = CaseInput::Constant;
    inputs[*info.lengths].constant = capacity;
  }
  for (auto [number, cuSeqlens] : llvm::enumerate(info.cuSeqlens)) {
    inputs[cuSeqlens].values = CaseInput::CuSeqlens;
    inputs[cuSeqlens].constant =
        number == 0 ? inputs[info.query].shape[info.queryTokenDim]
                    : inputs[info.key].shape[info.keyTokenDim];
  }
  return inputs;
}

std::vector<CaseInput>
mlir::posenc::getDefaultInputs(runtime::Function function,
                               const FunctionInfo &info, int64_t outputBytes) {
  // Sizes appear in the order batch, sequence. All are 1 but the last, which
  // scales the case.
  std::map<std::string, int64_t> sizes;
  std::string last;
  auto addSize = [&](const std::string &name) {
    if (!name.empty() && sizes.try_emplace(name, 1).second)
      last = name;
  };
  for (size_t i = 0; i < function.numInputs(); ++i) {
    runtime::Argument argument = function.input(i);
    if (argument.isScalar() && !argument.isReal())
      addSize(argument.name());
    for (int32_t dim = 0; dim < argument.rank(); ++dim)
      addSize(argument.sizeName(dim));
  }
  std::optional<AttentionInfo> attention =
      info.attention ? info.attention : inferAttentionInfo(function);
  if (attention)
    return getAttentionInputs(function, *attention, std::move(sizes));
  constexpr int64_t minSize = 4096, maxSize = int64_t(1) << 24;
  int64_t bytes = std::max<int64_t>(
      getOutputBytes(function, info, getInputs(function, sizes)), 1);
  int64_t needed = 4 * getLastLevelCacheBytes() / bytes;
  sizes[last] =
      outputBytes
          ? std::clamp<int64_t>(outputBytes / bytes, 1, maxSize)
          : std::clamp<int64_t>(llvm::PowerOf2Ceil(needed), minSize, maxSize);
  return getInputs(function, sizes);
}
